package redact

import (
	"strings"
)

// cursor is a text that is read. Its methods note that they came to its end.
type cursor struct {
	s []byte
	// touched says that a detector read on to the end of the text, so that
	// more text could change its mind: it is asked again when there is more.
	// The methods is, has, fold and end see to it; one that reads s by
	// itself, across white space, calls touch.
	touched bool
}

// touch notes that i is at the end of the text or behind it.
func (x *cursor) touch(i int) {
	if i >= len(x.s) {
		x.touched = true
	}
}

// is says whether the byte at i is of a class; outside the text it is none.
func (x *cursor) is(i int, bits uint16) bool {
	if i >= len(x.s) {
		x.touched = true
		return false
	}
	return i >= 0 && class[x.s[i]]&bits != 0
}

// has says whether s goes on with text at i.
func (x *cursor) has(i int, text string) bool {
	if len(x.s)-i < len(text) {
		return x.short(i, text)
	}
	return i >= 0 && string(x.s[i:i+len(text)]) == text
}

// short answers has at the end of the text.
func (x *cursor) short(i int, text string) bool {
	if i >= len(x.s) || i >= 0 && strings.HasPrefix(text, string(x.s[i:])) {
		x.touched = true
	}
	return false
}

// end returns the end of the run of a class that begins at i, looking at most
// at limit bytes.
func (x *cursor) end(i, limit int, bits uint16) int {
	stop := len(x.s)
	if limit < stop-i {
		stop = i + limit
	}
	for i < stop && class[x.s[i]]&bits != 0 {
		i++
	}
	if i >= len(x.s) {
		x.touched = true
	}
	return i
}

// fold says whether the lower-case word stands at i in any case.
func (x *cursor) fold(i int, word string) bool {
	if len(x.s)-i < len(word) {
		return false
	}
	for k := range len(word) {
		if x.s[i+k]|0x20 != word[k] {
			return false
		}
	}
	return true
}

// name finds the name that ends before i, over blanks and a closing quote.
func (x *cursor) name(i int) (start, end int) {
	e := i
	for n := 0; n < 3 && x.is(e-1, isBlank); n++ {
		e--
	}
	if endsMask(x.s[:e]) {
		return e, e
	}
	if e > 0 && (isQuote(x.s[e-1]) || x.s[e-1] == ']') {
		for e--; e > 0 && i-e < 8 && x.s[e-1] == '\\'; {
			e--
		}
		if e > 0 && isQuote(x.s[e-1]) {
			e--
		}
	}
	b := e
	for b > 0 && e-b < 64 && class[x.s[b-1]]&isIdent != 0 {
		b--
	}
	return b, e
}

// reachEscape is the longest escape that is known: a colour of a terminal.
const reachEscape = 24

// begins says whether a word may begin at i: nothing of one stands before it.
// Only an ASCII letter or digit binds, and not the last of an escape: text comes
// as it was escaped for a log, a string or a URL, or between the quotes and
// the punctuation of any script.
func (x *cursor) begins(i int) bool { return !x.is(i-1, isAlnum) || x.escaped(i) }

// escaped says whether an escape ends at i: "\n" and its like, \xHH, \uHHHH,
// %HH and %25HH, or a colour, "[1;32m" behind an escape byte in any form.
func (x *cursor) escaped(i int) bool {
	if i < 2 || i > len(x.s) {
		return false
	}
	s := x.s[max(0, i-reachEscape):i]
	n := len(s)
	last := s[n-1]
	switch {
	case s[n-2] == '\\':
		return indexByte("nrtbfv", last) >= 0
	case last == 'm':
		for n--; n > 0 && (class[s[n-1]]&isDigit != 0 || s[n-1] == ';'); {
			n--
		}
		return n > 0 && s[n-1] == '['
	case class[last]&class[s[n-2]]&isHex == 0:
		return false
	}
	at := func(k int, c byte) bool { return n >= k && s[n-k] == c }
	return at(3, '%') || at(5, '%') && s[n-4] == '2' && s[n-3] == '5' ||
		at(4, '\\') && s[n-3] == 'x' ||
		at(6, '\\') && s[n-5] == 'u' && class[s[n-4]]&class[s[n-3]]&isHex != 0
}

// behindEscape returns where the run of letters and digits at b goes on behind
// the escape that it begins in, or b.
func (x *cursor) behindEscape(b, end int) int {
	if b == 0 || class[x.s[b-1]]&isAlnum == 0 && indexByte(`\%[;`, x.s[b-1]) < 0 {
		return b
	}
	if x.escaped(b) {
		return b
	}
	for j := min(b+len("u0020"), end); j > b; j-- {
		if x.escaped(j) {
			return j
		}
	}
	return b
}

// mark returns the size of the sign at i that no address has in it, or 0: the
// quotes, arrows and blanks of typography, the punctuation of Chinese and
// Japanese, a byte order mark.
func mark(s []byte, i int) int {
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
