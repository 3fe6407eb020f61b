// Package cursor reads a text at an offset: runs of one class, words, the name before
// a value, groups of digits. It notes when it came to the end of the text.
package cursor

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// Cursor reads a text. Its methods note when they reach the end of the text.
type Cursor struct {
	S []byte
	// Touched is true if a search read on to the end of the text, so that
	// more text could change its mind: it is called again when there is more.
	// The methods is, has, fold and end see to it; one that reads s by
	// itself, across white space, calls touch.
	Touched bool
}

// Touch notes that i is at the end of the text or after it.
func (x *Cursor) Touch(i int) {
	if i >= len(x.S) {
		x.Touched = true
	}
}

// Is says whether the byte at i is of a class; outside the text it is none.
func (x *Cursor) Is(i int, bits uint16) bool {
	if i >= len(x.S) {
		x.Touched = true
		return false
	}
	return i >= 0 && char.Class[x.S[i]]&bits != 0
}

// Has says whether s goes on with text at i.
func (x *Cursor) Has(i int, text string) bool {
	if len(x.S)-i < len(text) {
		return x.short(i, text)
	}
	return i >= 0 && string(x.S[i:i+len(text)]) == text
}

// short answers has at the end of the text.
func (x *Cursor) short(i int, text string) bool {
	if i >= len(x.S) || i >= 0 && strings.HasPrefix(text, string(x.S[i:])) {
		x.Touched = true
	}
	return false
}

// End returns the end of the run of a class that begins at i, looking at most
// at limit bytes.
func (x *Cursor) End(i, limit int, bits uint16) int {
	stop := len(x.S)
	if limit < stop-i {
		stop = i + limit
	}
	for i < stop && char.Class[x.S[i]]&bits != 0 {
		i++
	}
	if i >= len(x.S) {
		x.Touched = true
	}
	return i
}

// Fold says whether the lower-case word stands at i in any case.
func (x *Cursor) Fold(i int, word string) bool {
	if len(x.S)-i < len(word) {
		return false
	}
	for k := range len(word) {
		if x.S[i+k]|0x20 != word[k] {
			return false
		}
	}
	return true
}

// Name finds the name that ends before i, over blanks and a closing quote.
func (x *Cursor) Name(i int) (start, end int) {
	e := i
	if e > 0 && char.Class[x.S[e-1]]&char.Ident == 0 {
		var masked bool
		if e, masked = x.nameEnd(i); masked {
			return e, e
		}
	}
	b := e
	for b > 0 && e-b < 64 && char.Class[x.S[b-1]]&char.Ident != 0 {
		b--
	}
	return b, e
}

// maxAligned is the greatest number of blanks between a name and its sign: settings are often in columns.
const maxAligned = 40

// nameEnd returns where the name ends that blanks or a closing quote separate from i, and
// whether a mask is in its place.
func (x *Cursor) nameEnd(i int) (end int, masked bool) {
	e := i
	for n := 0; n < maxAligned && x.Is(e-1, char.Blank); n++ {
		e--
	}
	if mask.EndsIn(x.S[:e]) {
		return e, true
	}
	if e > 0 && (char.IsQuote(x.S[e-1]) || x.S[e-1] == ']') {
		for e--; e > 0 && i-e < 8 && x.S[e-1] == '\\'; {
			e--
		}
		if e > 0 && char.IsQuote(x.S[e-1]) {
			e--
		}
	}
	return e, false
}

// reachEscape is the longest escape that is known: a colour of a terminal.
const reachEscape = 24

// Begins says whether a word may begin at i: nothing of one stands before it.
// Only an ASCII letter or digit binds, and not the last of an escape: text comes
// as it was escaped for a log, a string or a URL, or between the quotes and
// the punctuation of any script.
func (x *Cursor) Begins(i int) bool { return !x.Is(i-1, char.Alnum) || x.Escaped(i) }

// Escaped says whether an escape ends at i: "\n" and its like, \xHH, \uHHHH,
// %HH and %25HH, or a colour, "[1;32m" after an escape byte in any form.
func (x *Cursor) Escaped(i int) bool {
	if i < 2 || i > len(x.S) {
		return false
	}
	s := x.S[max(0, i-reachEscape):i]
	n := len(s)
	last := s[n-1]
	switch {
	case s[n-2] == '\\':
		return char.IndexByte("nrtbfv", last) >= 0
	case last == 'm':
		for n--; n > 0 && (char.Class[s[n-1]]&char.Digit != 0 || s[n-1] == ';'); {
			n--
		}
		return n > 0 && s[n-1] == '['
	case char.Class[last]&char.Class[s[n-2]]&char.Hex == 0:
		return false
	}
	at := func(k int, c byte) bool { return n >= k && s[n-k] == c }
	return at(3, '%') || at(5, '%') && s[n-4] == '2' && s[n-3] == '5' ||
		at(4, '\\') && s[n-3] == 'x' ||
		at(6, '\\') && s[n-5] == 'u' && char.Class[s[n-4]]&char.Class[s[n-3]]&char.Hex != 0
}

// BehindEscape returns where the run of letters and digits at b continues after
// the escape that it begins in, or b.
func (x *Cursor) BehindEscape(b, end int) int {
	if b == 0 || char.Class[x.S[b-1]]&char.Alnum == 0 && char.IndexByte(`\%[;`, x.S[b-1]) < 0 {
		return b
	}
	if x.Escaped(b) {
		return b
	}
	for j := min(b+len("u0020"), end); j > b; j-- {
		if x.Escaped(j) {
			return j
		}
	}
	return b
}

// Mark returns the size of the sign at i that no address has in it, or 0: the
// quotes, arrows and blanks of typography, the punctuation of Chinese and
// Japanese, a byte order mark.
func Mark(s []byte, i int) int {
	switch c := s[i]; {
	case c < 0xc2:
		return 0
	case c == 0xc2:
		return 2
	case i+2 >= len(s):
		return 0
	case c == 0xe2, c == 0xe3 && s[i+1] == 0x80, c == 0xef && s[i+1] == 0xbb && s[i+2] == 0xbf,
		c == 0xef && s[i+1] == 0xbc && (s[i+2] < 0x90 || s[i+2] > 0x99 && s[i+2] < 0xa1):
		return 3
	}
	return 0
}
