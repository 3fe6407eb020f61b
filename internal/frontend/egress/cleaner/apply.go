package cleaner

import (
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// CleanHeader returns h, redacted as mode says.
func (p *Pool) CleanHeader(
	c Cleaner, d *domain.Domain, mode domain.Redaction, h http.Header,
) (http.Header, []redact.Finding, *holdfast.Error) {
	var clean http.Header
	var found []redact.Finding
	err := p.RunWithin(countBytes(h), func() error {
		clean, found = c.Header(h)
		return nil
	})
	if err != nil {
		return nil, nil, AsRedactionError(err)
	}
	if len(found) > 0 && mode == domain.Refuse {
		return nil, nil, RefuseFound(d, "the header", found)
	}
	return clean, found, nil
}

// countBytes returns the size of a header's names and values.
func countBytes(h http.Header) int {
	n := 0
	for name, values := range h {
		n += len(name)
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// CleanBody redacts a whole body as mode says. One is left alone where d lets binary bodies pass
// and it is one.
func (p *Pool) CleanBody(
	c Cleaner, d *domain.Domain, mode domain.Redaction, contentType string, raw []byte, share *memory.Share,
) ([]byte, []redact.Finding, *holdfast.Error) {
	if !share.Grow(3 * int64(len(raw))) {
		return nil, nil, memory.Busy()
	}
	var r redact.Result
	err := p.RunWithin(len(raw), func() (err error) {
		if d.Binary && coding.IsPackets(contentType, raw) {
			r, err = c.PassBinary(raw)
			return err
		}
		r, err = c.Body(contentType, raw)
		if err != nil && d.Binary && coding.IsBinary(raw) && IsUnscannable(err) {
			r, err = c.PassBinary(raw)
		}
		return err
	})
	if err != nil {
		return nil, nil, AsRedactionError(err)
	}
	if r.Found() && mode == domain.Refuse {
		return nil, nil, RefuseFound(d, "the body", r.Findings)
	}
	return r.Out, r.Findings, nil
}

// PassBinary returns a binary body unchanged. A registered secret in it is a RedactionError.
func (c Cleaner) PassBinary(raw []byte) (redact.Result, error) {
	for _, f := range c.Text(raw).Findings {
		if f.Rule == "secret.literal" || f.Rule == "fault" {
			return redact.Result{}, &holdfast.Error{
				Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact/unscannable",
				Why:  "a binary body holds a registered secret, where it cannot be redacted",
				Hint: "nothing was sent",
			}
		}
	}
	return redact.Result{Out: raw}, nil
}

// CleanTarget redacts the path and query of a request to d. It returns the target and the number of findings.
// What was found in the host cannot be masked, and is refused.
func (p *Pool) CleanTarget(d *domain.Domain, ask domain.Ask) (string, int, *holdfast.Error) {
	if d.Request == domain.Off {
		return ask.Target, 0, nil
	}
	engine := p.Engine(d)
	if strings.HasPrefix(d.Name, "*.") && engine.Text([]byte(strings.ToUpper(ask.Origin.Host.String()))).Found() {
		return "", 0, NewTargetError() // a name has no case, and what has capitals alone loses nothing in it
	}
	out, found := engine.URL(ask.Origin.String() + ask.Target)
	if len(found) == 0 {
		return ask.Target, 0, nil
	}
	if d.Request == domain.Refuse {
		return "", 0, RefuseFound(d, "the URL", found)
	}
	origin, target, err := domain.ParseURL(out)
	if err != nil || origin != ask.Origin {
		return "", 0, NewTargetError()
	}
	return target, len(found), nil
}
