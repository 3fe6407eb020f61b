package egress

import (
	"context"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/headerfield"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// outgoing is what of the client's header h goes to d. Left out are what belongs
// to this connection or speaks to a proxy; what would have the upstream do
// something else than what was judged (another method, another path); Range, so
// that an answer is read whole; and the agent's own credentials (D23):
// Authorization, Cookie, x-api-key, api-key, x-goog-api-key, private-token and
// every field whose name says so, but where d lets them pass, and then unread.
// The header in which d's own credential will stand never passes. The rest is
// redacted. h is not changed. The error is a RedactionError, or a
// DomainBlockedError where d refuses what would be masked.
func (p *Proxy) outgoing(d *domain.Domain, h http.Header) (http.Header, []redact.Finding, *holdfast.Error) {
	out, own := headerfield.Select(d, h)
	var found []redact.Finding
	if d.Request != domain.Off {
		c, err := p.out.cleaners.Open(d)
		if err == nil {
			rules := cleaner.RequestRules(d)
			dropReferer(c, rules, out)
			out, found, err = p.out.cleaners.CleanHeader(c, rules, out)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for name, values := range own {
		out[name] = values
	}
	return out, found, nil
}

// dropReferer leaves out where the request was found, if the row refuses what is found there: no answer needs it.
func dropReferer(c cleaner.Cleaner, rules cleaner.Rules, h http.Header) {
	if values := h["Referer"]; len(values) > 0 {
		if _, found := c.Header(http.Header{"Referer": values}); len(rules.ListRefused(found)) > 0 {
			delete(h, "Referer")
		}
	}
}

// credential adds the tenant's credential for d, if it names one, to the header
// of a request that is about to be sent. Nothing of its value is in the error.
func (p *Proxy) credential(ctx context.Context, d *domain.Domain, h http.Header) error {
	c := d.Credential
	if c == nil {
		return nil
	}
	var value holdfast.Secret
	var err error
	if p.cfg.Credential != nil {
		value, err = p.cfg.Credential(ctx, d)
	}
	text := value.Reveal()
	if err != nil || text == "" || strings.ContainsAny(text, "\r\n\x00") {
		return &holdfast.Error{
			Kind: holdfast.KindForward, Rule: "egress/credential", Err: holdfast.ErrNotStarted,
			Why:  "the credential of " + d.Name + " could not be had",
			Hint: "nothing was sent; `holdfast status` says why",
		}
	}
	h.Del(c.Header)
	h.Set(c.Header, c.Prefix+text)
	return nil
}

// sentCredential is the value that credential put into h, without its prefix.
func sentCredential(d *domain.Domain, h http.Header) string {
	if d.Credential == nil {
		return ""
	}
	return strings.TrimPrefix(h.Get(d.Credential.Header), d.Credential.Prefix)
}
