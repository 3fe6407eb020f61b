package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/observe/alert"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// ChannelConfig is a way to people. Its address is a secret: only where it is read
// stands in the configuration. It is read again at each use.
type ChannelConfig struct {
	Kind    string   `yaml:"kind" need:"yes" enum:"sms,mail,chat" doc:"what it is to people: sms, mail or chat; short messages are cut to 300 bytes"`
	File    string   `yaml:"file" doc:"a file of yours (0600) whose first line is the address, relative to this file; one of file, env and command"`
	Env     string   `yaml:"env" doc:"the environment variable of the daemon that holds the address"`
	Command []string `yaml:"command" doc:"program and arguments that prints the address within 5s; asked again after a minute"`
	At      string   `yaml:"-"`
}

// SeveritiesConfig says which channels are told of what (spec 001,
// respond_to_anomaly; D41a).
type SeveritiesConfig struct {
	Critical []string `yaml:"CRITICAL" doc:"names of channels; those of kind sms if absent, else mail, else chat"`
	High     []string `yaml:"HIGH" doc:"names of channels; those of kind mail if absent, else chat, else sms"`
	Medium   []string `yaml:"MEDIUM" doc:"names of channels; those of kind chat if absent, else mail, else sms"`
	Low      []string `yaml:"LOW" doc:"names of channels; none if absent: what is LOW is recorded"`
}

// ReportConfig is who is sent the daily report (spec 001, "Daily Health Report").
type ReportConfig struct {
	To      []string `yaml:"to" doc:"names of channels"`
	DailyAt string   `yaml:"daily_at" doc:"HH:MM, UTC, from which on the report of the day before is sent; 00:00 if absent"`
}

// TimeOfDay is the time of day from which on the report of the day before is due.
func (c *ReportConfig) TimeOfDay() (time.Duration, error) {
	return timeOfDay(cmp.Or(c.DailyAt, "00:00"))
}

// Source returns the place of the channel's address, as a row of the allowlist carries one.
func (c *ChannelConfig) Source() string {
	return (&SourceConfig{File: c.File, Env: c.Env, Command: c.Command}).Text()
}

// routed are the severities that people are told of by themselves, each with the
// kinds of channel it goes by, the document's own first.
func routed() []struct {
	severity watch.Severity
	kinds    []notify.Kind
} {
	return []struct {
		severity watch.Severity
		kinds    []notify.Kind
	}{
		{watch.Critical, []notify.Kind{notify.SMS, notify.Mail, notify.Chat}},
		{watch.High, []notify.Kind{notify.Mail, notify.Chat, notify.SMS}},
		{watch.Medium, []notify.Kind{notify.Chat, notify.Mail, notify.SMS}},
	}
}

func (s *SeveritiesConfig) named(of watch.Severity) []string {
	switch of {
	case watch.Critical:
		return s.Critical
	case watch.High:
		return s.High
	case watch.Medium:
		return s.Medium
	}
	return s.Low
}

// Route are the channels that are told of a severity: those it names, else all of
// the document's kind, else of the next kind there is.
func (c *AlertsConfig) Route(severity watch.Severity) []string {
	names, _ := c.routeBy(severity)
	return names
}

// routeBy is route, and by which kind.
func (c *AlertsConfig) routeBy(severity watch.Severity) ([]string, notify.Kind) {
	if names := c.Severities.named(severity); len(names) > 0 {
		return slices.Clone(names), ""
	}
	for _, r := range routed() {
		if r.severity != severity {
			continue
		}
		for _, kind := range r.kinds {
			if names := c.of(kind); len(names) > 0 {
				return names, kind
			}
		}
	}
	return nil, ""
}

// of are the channels of a kind, by name.
func (c *AlertsConfig) of(kind notify.Kind) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		if c.Channels[name].Kind == string(kind) {
			out = append(out, name)
		}
	}
	return out
}

// Fallen says, one sentence each, which severities go another way than the
// document's, because no channel of its kind is configured.
func (c *AlertsConfig) Fallen() []string {
	if len(c.Channels) == 0 {
		return []string{"alerts reach nobody: no channel is configured"}
	}
	var out []string
	for _, r := range routed() {
		if _, by := c.routeBy(r.severity); by != "" && by != r.kinds[0] {
			out = append(out, fmt.Sprintf("alerts of severity %s go by %s, since there is no channel of kind %s", r.severity, by, r.kinds[0]))
		}
	}
	return out
}

// AlertSettings returns what of the configuration decides what people hear of.
func (c *Config) AlertSettings() alert.Settings {
	s := alert.Settings{Kinds: map[string]string{}, Routes: map[watch.Severity][]string{}, Report: c.Alerts.Report.To,
		Fallbacks: c.Alerts.Fallen(), WebhookURL: c.Review.Webhook.URL, WebhookSecret: c.Review.Webhook.ReadSecret,
		Plain: c.Unsafe.PlainHTTP, ReviewCommand: c.Review.Notify}
	for name, channel := range c.Alerts.Channels {
		s.Kinds[name] = channel.Kind
	}
	for severity := watch.Low; severity <= watch.Critical; severity++ {
		s.Routes[severity] = c.Alerts.Route(severity)
	}
	return s
}

// OpenChannel opens the channel of that name; nothing is sent. The error names the place of the
// address, and never the address.
func (c *AlertsConfig) OpenChannel(ctx context.Context, values *credential.Reader, name string) (*notify.Channel,
	error) {
	of, ok := c.Channels[name]
	if !ok {
		return nil, errors.New("it is configured no more")
	}
	address, err := values.Value(ctx, of.Source())
	if err != nil {
		return nil, err
	}
	ch, err := notify.Open(notify.Kind(of.Kind), address)
	if err != nil {
		return nil, usage.HintErrorf(
			"doc/alerts.md shows one of each service", "%s: %v", credential.DescribeSource(of.Source()), err,
		)
	}
	return ch, nil
}

// ListTroubles returns the channels that a daemon which starts here could not open, and the severities
// that go another way than the specification's, one sentence each. It runs the commands that print
// addresses, within 5 s. Nothing is sent.
func (c *AlertsConfig) ListTroubles(ctx context.Context) []string {
	if len(c.Channels) == 0 {
		return nil
	}
	out := c.Fallen()
	ctx, cancel := context.WithTimeout(ctx, credential.CommandTimeout)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		if _, err := c.OpenChannel(ctx, new(credential.Reader), name); err != nil {
			why, _ := usage.Explain(err)
			out = append(out, "the channel "+name+" cannot be used: "+why)
		}
	}
	return out
}

// maxChannels bounds how many are tried at once.
const maxChannels = 32

func (k *checker) channels(c *Config) {
	a := &c.Alerts
	if len(a.Channels) > maxChannels {
		k.fail(k.at("alerts.channels"), "", "alerts.channels: at most %d", maxChannels)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Channels)) {
		ch := a.Channels[name]
		given := 0
		for _, is := range []bool{ch.File != "", ch.Env != "", ch.Command != nil} {
			if is {
				given++
			}
		}
		switch {
		case !serverName().MatchString(name):
			k.fail(ch.At, "letters, digits, and . _ - between them", "alerts.channels: %q is no name",
				excerpt.Word(name))
		case given != 1:
			k.fail(ch.At, "write one of file: NAME, env: NAME and command: [PROGRAM, ARGS]; the address is a secret and does not stand here", "alerts.channels: the address of %s comes from one of file, env and command", name)
		case ch.Env != "" && !register.IsEnvName(ch.Env):
			k.fail(ch.At, "env names a variable and holds no value", "alerts.channels: %s: that is no name of an environment variable", name)
		case ch.Command != nil:
			k.command(ch.At, ch.Command)
		}
	}
	for s := watch.Low; s <= watch.Critical; s++ {
		names := a.Severities.named(s)
		if names != nil && len(names) == 0 && s != watch.Low {
			k.fail(k.at("alerts.severities."+s.String()), "leave it out: it then goes the document's way", "alerts.severities.%s names no channel", s)
		}
		k.routed(a, "alerts.severities."+s.String(), names)
	}
	k.reported(a)
}

// routed checks that each name is one of a channel, and stands there once.
func (k *checker) routed(a *AlertsConfig, key string, names []string) {
	for i, name := range names {
		if _, ok := a.Channels[name]; !ok {
			k.fail(k.at(key), "name one of alerts.channels: "+strings.Join(slices.Sorted(maps.Keys(a.Channels)),
				", "), "%s: there is no channel %q", key, excerpt.Word(name))
		} else if slices.Contains(names[:i], name) {
			k.fail(k.at(key), "", "%s names %q twice", key, name)
		}
	}
}

func (k *checker) reported(a *AlertsConfig) {
	if _, err := a.Report.TimeOfDay(); err != nil {
		k.fail(k.at("alerts.report.daily_at"), "write HH:MM, such as 07:00; it is UTC", "alerts.report.daily_at: %q is no time of day", excerpt.Word(a.Report.DailyAt))
	}
	if (a.Report.DailyAt != "" || a.Report.To != nil) && len(a.Report.To) == 0 {
		k.fail(k.at("alerts.report"), "name channels in to:, or leave it out: then nobody is sent it", "alerts.report names no channel")
	}
	k.routed(a, "alerts.report.to", a.Report.To)
}

// channelFiles makes the names of files absolute, and looks at them.
func (r *reading) channelFiles(c *AlertsConfig) {
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		ch := c.Channels[name]
		if ch.File == "" {
			continue
		}
		ch.File = r.abs(ch.File)
		if f, err := guard.OpenRegular(ch.File, guard.CheckPrivate(ch.File)); err != nil {
			r.unreadable(ch.At, ch.File, err)
		} else {
			_ = f.Close() // nothing was written
		}
		c.Channels[name] = ch
	}
}
