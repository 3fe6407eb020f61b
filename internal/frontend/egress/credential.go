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
	found, err := p.cleanHeader(d, d.Request, &out)
	if err != nil {
		return nil, nil, err
	}
	for name, values := range own {
		out[name] = values
	}
	return out, found, nil
}

// cleanHeader redacts h as mode says.
func (p *Proxy) cleanHeader(d *domain.Domain, mode domain.Redaction, h *http.Header) ([]redact.Finding, *holdfast.Error) {
	if mode == domain.Off {
		return nil, nil
	}
	c, failed := p.cleaner(d)
	if failed != nil {
		return nil, failed
	}
	return p.headerBy(c, d, mode, h)
}

// headerBy is cleanHeader by a cleaner.
func (p *Proxy) headerBy(c cleaner.Cleaner, d *domain.Domain, mode domain.Redaction, h *http.Header) ([]redact.Finding, *holdfast.Error) {
	in := *h
	var clean http.Header
	var found []redact.Finding
	err := p.within(size(in), func() error {
		clean, found = c.Header(in)
		return nil
	})
	if err != nil {
		return nil, redactionFailed(err)
	}
	if len(found) > 0 && mode == domain.Refuse {
		return nil, foundRefused(d, "the header", found)
	}
	*h = clean
	return found, nil
}

func size(h http.Header) int {
	n := 0
	for name, values := range h {
		n += len(name)
		for _, v := range values {
			n += len(v)
		}
	}
	return n
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
