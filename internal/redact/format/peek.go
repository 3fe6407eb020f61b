package format

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// peek returns a nest for a document of size bytes that is masked where it
// cannot be read, and not refused: the ledger's.
func (e *Reader) peek(size int) *nest {
	n := e.nest(size)
	n.peeks = true
	return n
}

// peek redacts one string as clean does, and opens it for text in base64
// and escapes. A run in which something is found is masked whole, and so is a
// string that cannot be read to its end. What came out is read again, as
// masking can bring together what was apart.
func (n *nest) peek(s []byte, level int) ([]byte, []span.Span) {
	t, all := s, []span.Span(nil)
	for range maxReadings {
		out, found, err := n.reading(t, level)
		switch {
		case err != nil:
			return []byte(mask.Secret), []span.Span{{Start: 0, End: len(s), Rule: rule.Fault}}
		case len(found) == 0:
			return t, all
		case n.e.Replacement != nil:
			return out, found
		case all == nil:
			all = found
		default: // offsets of what was masked already
			r := rule.None
			for _, sp := range append(all, found...) {
				r = max(r, sp.Rule)
			}
			all = []span.Span{{Start: 0, End: len(s), Rule: r}}
		}
		t = out
	}
	return []byte(mask.Secret), []span.Span{{Start: 0, End: len(s), Rule: rule.Fault}}
}

// reading is one reading of a string.
func (n *nest) reading(s []byte, level int) ([]byte, []span.Span, error) {
	out, spans := n.e.Clean(s)
	all, err := n.found(s, spans, level)
	if err != nil || slices.Equal(all, spans) {
		return out, spans, err
	}
	out, _ = n.e.Apply(s, all)
	return out, all, nil
}

// Replace redacts one text of a message with the replacements of Engine.Replacement. A text that is a JSON
// document is read as one. A text that cannot be opened completely is read unopened, and unread reports it.
func (e *Reader) Replace(s []byte) (r finding.Result, unread bool, err error) {
	defer caught(&r, &err)
	if e.Engine == nil || e.Engine.Replacement == nil {
		return finding.Result{}, false, fault("the engine was not made to replace", nil)
	}
	n := e.peek(len(s))
	defer n.done()
	if len(s) > 2 && (s[0] == '{' || s[0] == '[') && valid(s) {
		w := n.walker(s)
		w.walk()
		r = w.result()
		n.spare = w
		return r, false, nil
	}
	out, spans, failed := n.reading(s, 0)
	if failed != nil {
		out, spans = e.Clean(s)
	}
	if len(spans) == 0 {
		return finding.Result{Out: s}, failed != nil, nil
	}
	return finding.Result{Out: out, Findings: finding.FromSpans(spans, 0, nil)}, failed != nil, nil
}
