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

// CleanHeader returns h, masked or refused as r says.
func (p *Pool) CleanHeader(c Cleaner, r Rules, h http.Header) (http.Header, []redact.Finding, *holdfast.Error) {
	var clean http.Header
	var found []redact.Finding
	err := p.RunWithin(countBytes(h), func() error {
		clean, found = c.Header(h)
		return nil
	})
	if err != nil {
		return nil, nil, AsRedactionError(err)
	}
	if refused := r.ListRefused(found); len(refused) > 0 {
		return nil, nil, r.Refuse(c.placeInHeader(r, h), refused)
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

// CleanBody masks or refuses what is found in a whole body, as r says. A binary body passes if the row lets it.
func (p *Pool) CleanBody(
	c Cleaner, r Rules, contentType string, raw []byte, share *memory.Share,
) ([]byte, []redact.Finding, *holdfast.Error) {
	if !share.Grow(3 * int64(len(raw))) {
		return nil, nil, memory.Busy()
	}
	var clean redact.Result
	passed := false
	err := p.RunWithin(len(raw), func() (err error) {
		if passed = r.Row.Binary && coding.IsPackets(contentType, raw); passed {
			clean, err = c.PassBinary(raw)
			return err
		}
		clean, err = c.Body(contentType, raw)
		if passed = err != nil && r.Row.Binary && coding.IsBinary(raw) && IsUnscannable(err); passed {
			clean, err = c.PassBinary(raw)
		}
		return err
	})
	if err != nil && !r.answers {
		return nil, nil, AsRequestError(err)
	}
	if err != nil {
		return nil, nil, AsRedactionError(err)
	}
	if refused := r.ListRefused(clean.Findings); len(refused) > 0 {
		return nil, nil, r.Refuse(c.placeInBody(contentType, raw, refused[0]), refused)
	}
	if c.finder == nil || passed {
		return clean.Out, clean.Findings, nil
	}
	return p.detectBody(c, r, contentType, clean)
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

// CleanTarget masks or refuses what is found in the path and query of a request, and returns the target and the
// findings. What was found in the host cannot be masked, and is refused. The target of a redirect that granted says
// the host sent to this caller is searched for registered secrets only.
func (p *Pool) CleanTarget(
	c Cleaner, r Rules, ask domain.Ask, granted bool,
) (string, []redact.Finding, *holdfast.Error) {
	url := ask.Origin.String() + ask.Target
	if strings.HasPrefix(r.Row.Name, "*.") && c.e.Text([]byte(strings.ToUpper(ask.Origin.Host.String()))).Found() {
		return "", nil, NewTargetError() // a name has no case, and what has capitals alone loses nothing in it
	}
	out, found := c.e.URL(url)
	if !granted && c.finder != nil && strings.Contains(out, "?") {
		return p.detectQuery(c, r, ask, url, out, found)
	}
	return c.finishTarget(r, ask, granted, url, out, found)
}

// finishTarget refuses what r refuses of what was found in a URL, and returns the masked target.
func (c Cleaner) finishTarget(
	r Rules, ask domain.Ask, granted bool, url, out string, found []redact.Finding,
) (string, []redact.Finding, *holdfast.Error) {
	if len(found) == 0 {
		return ask.Target, nil, nil
	}
	if granted {
		if _, registered := c.e.Registered().URL(url); len(registered) == 0 {
			return ask.Target, nil, nil
		}
	}
	if refused := r.ListRefused(found); len(refused) > 0 {
		return "", nil, r.Refuse(c.placeInURL(url, refused[0]), refused)
	}
	origin, target, err := domain.ParseURL(out)
	if err != nil || origin != ask.Origin {
		return "", nil, NewTargetError()
	}
	return target, found, nil
}
