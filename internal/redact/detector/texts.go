package detector

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// SearchTime bounds the search of one message, in all its parts.
const SearchTime = time.Minute

// Texts are the texts of one message that a finder searches. An engine reads the message twice: Collect takes its
// texts, Find has them searched, and Apply replaces what was found. It belongs to one goroutine.
type Texts struct {
	list  []string
	found map[string][]redact.Finding // nil until Find
	seen  map[string]bool
	size  int
}

// Collect returns an engine that finds nothing, and takes the texts of what e reads.
func (t *Texts) Collect(e *redact.Engine) *redact.Engine {
	t.seen = map[string]bool{}
	return e.WithFinder(func(text []byte) []redact.Finding {
		if t.size > MaxText || !hasLetter(text) || t.seen[string(text)] {
			return nil
		}
		t.seen[string(text)] = true
		t.list, t.size = append(t.list, string(text)), t.size+len(text)
		return nil
	})
}

// Find searches the texts, many short ones in one line. The error is a holdfast.Error: nothing is known of the texts.
func (t *Texts) Find(ctx context.Context, f Finder) error {
	if t.size > MaxText {
		return wrapFailure(fmt.Errorf("%w: more than %d bytes", ErrTooLong, MaxText))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, SearchTime, ErrLate)
	defer cancel()
	t.found = map[string][]redact.Finding{}
	values := make([]value, len(t.list))
	for i, text := range t.list {
		values[i].text = []byte(text)
	}
	found, err := findInValues(ctx, f, values)
	if err != nil {
		return err
	}
	for i, list := range found {
		if len(list) > 0 {
			t.found[t.list[i]] = list
		}
	}
	return nil
}

// HasFindings reports whether Find found something.
func (t *Texts) HasFindings() bool { return len(t.found) > 0 }

// Apply returns an engine that finds what Find found in the texts of what e reads.
func (t *Texts) Apply(e *redact.Engine) *redact.Engine { return t.ApplyExcept(e, nil) }

// ApplyExcept is Apply without the findings that overlap what list returns for a text, in order and apart. list may be
// nil.
func (t *Texts) ApplyExcept(e *redact.Engine, list func(text []byte) []redact.Finding) *redact.Engine {
	return e.WithFinder(func(text []byte) []redact.Finding {
		found := t.found[string(text)]
		if len(found) == 0 || list == nil {
			return found
		}
		return dropOverlapping(found, list(text))
	})
}

// dropOverlapping returns the findings that overlap none of others. Both are in order and apart.
func dropOverlapping(found, others []redact.Finding) (kept []redact.Finding) {
	for _, f := range found {
		for len(others) > 0 && others[0].Offset+others[0].Length <= f.Offset {
			others = others[1:]
		}
		if len(others) == 0 || others[0].Offset >= f.Offset+f.Length {
			kept = append(kept, f)
		}
	}
	return kept
}

// SearchBody has f search the texts of a body, which e reads, and returns the body with e's masks for what was found.
// The error is a holdfast.Error: the body must not be sent or shown.
func SearchBody(
	ctx context.Context, e *redact.Engine, f Finder, contentType string, body []byte,
) (redact.Result, error) {
	t := new(Texts)
	r, err := t.Collect(e).Body(contentType, body)
	if err != nil || len(t.list) == 0 {
		return r, err
	}
	if err := t.Find(ctx, f); err != nil {
		return redact.Result{}, err
	}
	if !t.HasFindings() {
		return redact.Result{Out: body}, nil
	}
	r, err = t.Apply(e).Body(contentType, body)
	if err == nil && bytes.Equal(r.Out, body) {
		r.Findings = nil
	}
	return r, err
}
