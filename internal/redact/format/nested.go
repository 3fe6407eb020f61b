package format

import (
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/escape"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

const (
	// maxLevels bounds how often a body may be wrapped: base64 in JSON in a
	// form is three.
	maxLevels = 4
	// minDecoded and maxDecoded bound how many bytes are decoded for one
	// body; between them it is 16 for each of its bytes.
	minDecoded = 1 << 20
	maxDecoded = 64 << 20
	// maxOpened bounds how many archives and members are opened in one body.
	maxOpened = 4096
)

// Reader redacts documents of all forms. It may be used by many goroutines. The
// zero value refuses them.
type Reader struct {
	*engine.Engine
	names *familiarNames
	nests *sync.Pool // of *nest, none of which is in use
}

// New returns one whose texts e redacts.
func New(e *engine.Engine) *Reader {
	return &Reader{Engine: e, names: new(familiarNames), nests: new(sync.Pool)}
}

// WithEngine returns one whose texts another engine redacts, by the same names.
func (e *Reader) WithEngine(other *engine.Engine) *Reader {
	return &Reader{Engine: other, names: e.names, nests: new(sync.Pool)}
}

// nest opens what is wrapped in one body, within bounds that hold for all of
// it together. What it cannot open to the end is an error, never passed.
type nest struct {
	e      *Reader
	left   int // bytes that may still be decoded
	opened int
	// peeks says that only text is opened, and that what cannot be read to its
	// end is masked: so that a document need not be refused.
	peeks bool
	known *[32]knownName
	names *[32]knownName // known, or what it was of the body before
	// spare is a walker that is not in use: a body may hold many documents.
	spare *walker

	scratch []byte
}

// nest begins with a body of size bytes. What it is made of is that of one that
// is done, where there is one.
func (e *Reader) nest(size int) *nest {
	var n *nest
	if e.nests != nil {
		n, _ = e.nests.Get().(*nest)
	}
	if n == nil {
		n = new(nest)
	}
	*n = nest{e: e, left: min(max(minDecoded, 16*size), maxDecoded), spare: n.spare, scratch: n.scratch[:0], names: n.names}
	if size >= minKnown {
		if n.names == nil {
			n.names = new([32]knownName)
		}
		*n.names, n.known = [32]knownName{}, n.names
	}
	return n
}

// maxScratch is the longest buffer, in bytes, that is kept for the next body.
const maxScratch = 16 << 10

// done lets the next body have what n is made of, and keeps nothing of this one.
// It must not be used any more.
func (n *nest) done() {
	if cap(n.scratch) > maxScratch {
		n.scratch = nil
	}
	clear(n.scratch[:cap(n.scratch)])
	if w := n.spare; w != nil {
		scratch := w.scratch
		if cap(scratch) > maxScratch {
			scratch = nil
		}
		clear(scratch[:cap(scratch)])
		*w = walker{scratch: scratch}
	}
	if n.e.nests != nil {
		n.e.nests.Put(n)
	}
}

// walker is one that reads doc, which is valid. Who has no more use for it may
// put it back as spare.
func (n *nest) walker(doc []byte) *walker {
	w := n.spare
	if n.spare = nil; w == nil {
		w = new(walker)
	}
	*w = walker{e: n.e, draft: draft{in: doc}, nest: n, scratch: w.scratch[:0]}
	return w
}

// unscannable is the refusal of a body that would otherwise pass unread. What
// names its cause, without a word of its content.
func unscannable(what string, err error) error {
	return &holdfast.Error{
		Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact/unscannable", Why: what, Err: err,
		Hint: "nothing was sent; send it as plain text or JSON, or allow binary bodies where it goes to",
	}
}

// within says where in a body an error arose.
func within(err error, where string) error {
	var e *holdfast.Error
	if !errors.As(err, &e) || len(e.Why) > 400 {
		return err
	}
	at := *e
	at.Why = where + ": " + e.Why
	return &at
}

// spend takes n bytes from what may still be decoded.
func (n *nest) spend(bytes int) error {
	if n.left -= bytes; n.left < 0 {
		return unscannable("more is wrapped in the body than may be decoded", nil)
	}
	return nil
}

// open counts one archive or member.
func (n *nest) open() error {
	if n.opened++; n.opened > maxOpened {
		return unscannable(fmt.Sprintf("more than %d compressed parts", maxOpened), nil)
	}
	return nil
}

// leaf redacts a string out of a body: a JSON document, or text. It says
// whether the findings lie in s as it stands.
func (n *nest) leaf(s []byte, level int) (finding.Result, bool, error) {
	if len(s) > 2 && (s[0] == '{' || s[0] == '[') && valid(s) {
		if level >= maxLevels {
			return finding.Result{}, false, unscannable(fmt.Sprintf("JSON in strings more than %d times", maxLevels), nil)
		}
		r, err := n.document(s, level+1)
		return r, false, err
	}
	r, err := n.text(s, level)
	return r, true, err
}

// text redacts text in which anything may be wrapped.
func (n *nest) text(s []byte, level int) (finding.Result, error) {
	spans, err := n.spans(s, level)
	if err != nil || len(spans) == 0 {
		return finding.Result{Out: s}, err
	}
	out, _ := n.e.Apply(s, spans)
	return finding.Result{Out: out, Findings: finding.FromSpans(spans, 0, nil)}, nil
}

// spans returns what is to be masked in s, in order and without overlap. It
// reads s as it stands, then with one level of escapes after the other
// written out; what it finds there is a stretch of s.
func (n *nest) spans(s []byte, level int) ([]span.Span, error) {
	_, found := n.e.Clean(s)
	return n.found(s, found, level)
}

// found is spans, where known is what clean found in s.
func (n *nest) found(s []byte, known []span.Span, level int) ([]span.Span, error) {
	var all []span.Span
	var trail [][]span.Edit
	for t := s; ; {
		runs, err := n.runs(t, known, level)
		if err != nil {
			return nil, err
		}
		u, edits := escape.Unwrap(t)
		if u == nil && trail == nil && runs == nil && known == nil {
			return nil, nil
		}
		for _, list := range [...][]span.Span{known, runs} {
			for _, sp := range list {
				sp.Start, sp.End = span.Back(trail, sp.Start, sp.End)
				all = append(all, sp)
			}
		}
		if u == nil {
			return span.Union(all), nil
		}
		if len(trail) == maxLevels {
			return nil, unscannable(fmt.Sprintf("text escaped more than %d times", maxLevels), nil)
		}
		if err := n.spend(len(u)); err != nil {
			return nil, err
		}
		trail, t = append(trail, edits), u
		_, known = n.e.Clean(t)
	}
}
