// Package token has the forms of tokens and keys of providers: their prefixes, where a
// prefix is there by chance, and the addresses of webhooks.
package token

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// Prefix is the form of a credential that begins with a fixed text.
type Prefix struct {
	// Text is at least three bytes, of runs two, and ends as its list wants it.
	Text string
	// Then follows Text before what is counted, where Text alone is common.
	Then string
	// Class are the bytes that follow.
	Class uint16
	// More are the bytes that may follow besides; a full stop is not taken at
	// the end.
	More string
	// Min is the number of bytes that must follow, at most MaxFollow: as issuers document, or less
	// where lengths have changed.
	Min int
	// Max is the number of bytes that may follow, at most 63, 0 for any: it is set where the
	// length is fixed and the text so common that it is needed to tell.
	Max int
	// Bound wants a word to begin here, for a text that ends longer names
	// ("task-", "half_"); leave it out where no word has the text in it.
	Bound bool
	// Mixed wants a digit or a capital among what follows, for a text that words
	// may follow ("sk-learn-and-so-on").
	Mixed bool
	// Not may not follow Text: other names begin so.
	Not [2]string
	// Rule is the rule of a finding.
	Rule rule.Rule
}

// MaxFollow bounds the bytes after a prefix that are read to decide.
const MaxFollow = 128

// maxTail is the number of full stops, at most, that are cut from the end of a token.
const maxTail = 64

// Match reports whether the token of p begins at start, where its text is.
func (p *Prefix) Match(x *cursor.Cursor, start int) bool {
	v := start + len(p.Text)
	if p.Bound && !x.Begins(start) || p.Then != "" && !x.Has(v, p.Then) {
		return false
	}
	for _, t := range p.Not {
		if t != "" && x.Has(v, t) {
			return false
		}
	}
	v += len(p.Then)
	return p.Follows(x, v) && (v-start > maxChance || !IsInside(x.S, start, leastNoise(v-start)) &&
		(v-start > 3 || !isWrapped(x.S, start)))
}

// Holds reports whether c may follow the text of p.
func (p *Prefix) Holds(c byte) bool {
	return char.Class[c]&p.Class != 0 || p.More != "" && char.IndexByte(p.More, c) >= 0
}

// Follows reports whether enough of p's class is at i, and not too much.
func (p *Prefix) Follows(x *cursor.Cursor, i int) bool {
	mixed := !p.Mixed
	n, stop := 0, MaxFollow
	if p.Max > 0 {
		stop = p.Max + 1
	}
	for ; n < stop && i+n < len(x.S) && p.Holds(x.S[i+n]); n++ {
		mixed = mixed || char.Class[x.S[i+n]]&(char.Digit|char.Upper) != 0
	}
	if p.Max > 0 && (n > p.Max || x.Is(i+n, char.Alnum)) {
		return false
	}
	return n >= p.Min && mixed
}

// End returns the end of what belongs to p and is read from i on; a full stop at its end
// is the sentence's.
func (p *Prefix) End(x *cursor.Cursor, i int) int {
	for i < len(x.S) && p.Holds(x.S[i]) {
		i++
	}
	x.Touch(i)
	for n := 0; n < maxTail && x.S[i-1] == '.'; n++ {
		i--
	}
	return i
}

// Index finds prefixes by the two bytes before their last one. One look decides whether
// anything is worth comparing.
type Index struct {
	list  [1024]uint8 // an index of lists, 0 for nothing
	lists [][]Prefix
}

// ByUnderscore, ByDash and ByDot have the prefixes that end in those signs.
var ByUnderscore, ByDash, ByDot = newIndex(underscored[:]), newIndex(dashed[:]), newIndex(dotted[:])

func newIndex(list []Prefix) *Index {
	t := &Index{lists: make([][]Prefix, 1)}
	for _, p := range list {
		n := len(p.Text)
		at := keyOf(p.Text[n-3], p.Text[n-2])
		if t.list[at] == 0 {
			t.list[at] = uint8(len(t.lists))
			t.lists = append(t.lists, nil)
		}
		t.lists[t.list[at]] = append(t.lists[t.list[at]], p)
	}
	return t
}

// Find returns the prefixes whose last byte may follow a and b.
func (t *Index) Find(a, b byte) []Prefix { return t.lists[t.list[keyOf(a, b)]] }

func keyOf(a, b byte) int { return int(a&31)<<5 | int(b&31) }

// Prefixes returns all prefixes in the order of their table.
func Prefixes() []Prefix {
	return slices.Concat(underscored[:], dashed[:], dotted[:], runs[:])
}

// Runs holds, by their first byte, the prefixes that are looked for at the first digit of a
// word that begins with them.
var Runs = runsByFirst()

func runsByFirst() *[256][]Prefix {
	var t [256][]Prefix
	for _, p := range runs {
		t[p.Text[0]] = append(t[p.Text[0]], p)
	}
	return &t
}
