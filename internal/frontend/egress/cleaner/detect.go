package cleaner

import (
	"context"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

const formType = "application/x-www-form-urlencoded"

// HasDetector reports whether a detector searches bodies. A stream of events is not searched by it.
func (c Cleaner) HasDetector() bool { return c.finder != nil }

// detectBody has the row's detector search a body that the engine has masked. A failure refuses the body.
func (p *Pool) detectBody(
	c Cleaner, r Rules, contentType string, clean redact.Result,
) ([]byte, []redact.Finding, *holdfast.Error) {
	more, err := p.searchForm(c, contentType, clean.Out)
	if err != nil {
		place := "the request's body"
		if r.answers {
			place = "the answer's body"
		}
		return nil, nil, r.refuseFailed(place, err)
	}
	if refused := r.ListRefused(more.Findings); len(refused) > 0 {
		return nil, nil, r.Refuse(c.placeInBody(contentType, clean.Out, refused[0]), refused)
	}
	return more.Out, append(clean.Findings, more.Findings...), nil
}

// detectQuery has the row's detector search the query of a URL that the engine has masked.
func (p *Pool) detectQuery(
	c Cleaner, r Rules, ask domain.Ask, url, out string, found []redact.Finding,
) (string, []redact.Finding, *holdfast.Error) {
	target, _, failed := c.finishTarget(r, ask, false, url, out, found)
	if failed != nil {
		return "", nil, failed
	}
	path, query, _ := strings.Cut(target, "?")
	more, err := p.searchForm(c, formType, []byte(query))
	if err != nil {
		return "", nil, r.refuseFailed("the URL's query", err)
	}
	if refused := r.ListRefused(more.Findings); len(refused) > 0 {
		place := "the URL's parameter " + c.showName(parameterAt(query, min(refused[0].Offset, len(query))))
		return "", nil, r.Refuse(place, refused)
	}
	if len(more.Findings) == 0 {
		return target, found, nil
	}
	return path + "?" + string(more.Out), append(found, more.Findings...), nil
}

// searchForm has the row's detector search a body.
func (p *Pool) searchForm(c Cleaner, contentType string, body []byte) (r redact.Result, err error) {
	err = p.RunSearch(c.finder, len(body), func() (err error) {
		r, err = detector.SearchBody(context.Background(), c.e, c.finder, contentType, body)
		return err
	})
	return r, err
}

// refuseFailed returns the refusal of what a detector could not search.
func (r Rules) refuseFailed(place string, err error) *holdfast.Error {
	return AsRedactionError(detector.AtPlace(err, place, DetectorOf(r.Row)))
}

// DetectorOf names the key of a row's detector, for people.
func DetectorOf(d *domain.Domain) string { return "`redact: detector` in the row of " + d.Name }
