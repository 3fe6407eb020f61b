package format

import (
	"slices"
	"unicode/utf8"

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

// texts says of each of the four places at which base64 may begin in a run
// whether what it holds can be text, as a bit: where seven bytes in ten are
// ASCII or three in four are not; or, as in text of both, none of the last ones
// is a control byte. An identifier or a hash, half of whose bytes are ASCII by
// chance and one in eight a control byte, is told by this without being read.
func texts(run []byte) (ways byte) {
	// Of four characters the first three hold the highest bit of a byte each.
	var low [4]uint64
	for i, c := range run {
		low[i&3] += topBits[c]
	}
	n := len(run) / 4 * 3
	for p := range 4 {
		ascii := int(low[p]&(1<<20-1)) + int(low[(p+1)&3]>>20&(1<<20-1)) + int(low[(p+2)&3]>>40)
		if ascii*10 >= n*7 || ascii*4 <= n || !endsRandom(run[p:]) {
			ways |= 1 << p
		}
	}
	return ways
}

// topBits are three counters for each character of base64: whether as the first,
// the second or the third of four it leaves the highest bit of a byte unset.
var topBits = topBitTable()

func topBitTable() (t [256]uint64) {
	for c := range 256 {
		v := sextet[c]
		t[c] = uint64(^v>>5&1) | uint64(^v>>3&1)<<20 | uint64(^v>>1&1)<<40
	}
	return t
}

// endsRandom says whether a control byte stands in the last bytes of what a run
// of base64 holds, which text does not have.
func endsRandom(run []byte) bool {
	run = run[:len(run)&^3]
	for i := max(0, len(run)-16); i < len(run); i += 4 {
		a, b, c, d := sextet[run[i]], sextet[run[i+1]], sextet[run[i+2]], sextet[run[i+3]]
		x, y, z := a<<2|b>>4, b<<4|c>>2, c<<6|d
		if controls[x] || controls[y] || controls[z] {
			return true
		}
	}
	return false
}

// controls are the bytes that text in UTF-8 does not have.
var controls = controlBytes()

func controlBytes() (t [256]bool) {
	for c := range 256 {
		t[c] = c < utf8.RuneSelf && !textByte[c] || c == 0xc0 || c == 0xc1 || c > 0xf4
	}
	return t
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
