package config

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// OwnSecrets are the secrets that the configuration names for Holdfast's own
// use, copied into m: the webhook's, the values of MCP servers' headers and of
// the traces', the credentials of egress and the addresses of alerts' channels
// that stand in files and variables. One that cannot be read now is left out: what uses it is refused
// as well, and says why.
func OwnSecrets(m *redact.Memory, c *Config) []holdfast.Secret {
	var out []holdfast.Secret
	add := func(text string) {
		if len(text) >= credential.MinSecret &&
			!slices.ContainsFunc(out, func(s holdfast.Secret) bool { return s.Reveal() == text }) {
			out = append(out, m.Secret([]byte(text)))
		}
	}
	if w := &c.Review.Webhook; w.URL != "" {
		if s, err := w.ReadSecret(); err == nil {
			add(s.Reveal())
		}
	}
	for _, server := range slices.Sorted(maps.Keys(c.MCP.Servers)) {
		headers := c.MCP.Servers[server].Headers
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			if s, err := headers[name].ReadValue(name); err == nil && mayBeSecret(name) {
				add(credential.StripScheme(s.Reveal()))
			}
		}
	}
	for _, s := range c.Egress.sources() {
		if s.Command != nil {
			continue // it runs when it is needed; the proxy's own engines learn of it then
		}
		if v, err := new(credential.Reader).Value(context.Background(), s.Text()); err == nil {
			add(credential.StripScheme(v.Reveal()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Alerts.Channels)) {
		if ch := c.Alerts.Channels[name]; ch.Command == nil {
			if v, err := new(credential.Reader).Value(context.Background(), ch.Source()); err == nil {
				for _, secret := range notify.Secrets(v) {
					add(secret)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Telemetry.Headers)) {
		if mayBeSecret(name) {
			add(credential.StripScheme(c.Telemetry.Headers[name].Reveal()))
		}
	}
	return out
}

// ownSources are the places of ownSecrets, but for the values that stand in the
// configuration itself.
func ownSources(c *Config) []string {
	out := []string{"webhook", c.Review.Webhook.SecretFile, c.Review.Webhook.SecretEnv}
	for _, server := range slices.Sorted(maps.Keys(c.MCP.Servers)) {
		headers := c.MCP.Servers[server].Headers
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			out = append(out, server, name, headers[name].File, headers[name].Env)
		}
	}
	for _, s := range c.Egress.sources() {
		if s.Command == nil {
			out = append(out, "egress", s.Text())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Alerts.Channels)) {
		if ch := c.Alerts.Channels[name]; ch.Command == nil {
			out = append(out, "alerts", ch.Source())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Telemetry.Headers)) {
		out = append(out, "telemetry", name)
	}
	return out
}

// mayBeSecret says whether the value of a header can be a secret: it is not one
// of those that say of every request the same.
func mayBeSecret(header string) bool {
	switch strings.ToLower(header) {
	case "accept", "accept-encoding", "accept-language", "cache-control", "content-encoding", "content-type", "origin", "referer", "user-agent":
		return false
	}
	return true
}
