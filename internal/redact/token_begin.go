package redact

// begins says whether a word may begin at i: nothing of one stands before it.
// Only an ASCII letter or digit binds, and not the last of an escape: text comes
// as it was escaped for a log, a string or a URL, or between the quotes and
// the punctuation of any script.
func (x *scanner) begins(i int) bool { return !x.is(i-1, isAlnum) || x.escaped(i) }

// reachEscape is the longest escape that is known: a colour of a terminal.
const reachEscape = 24

// escaped says whether an escape ends at i: "\n" and its like, \xHH, \uHHHH,
// %HH and %25HH, or a colour, "[1;32m" behind an escape byte in any form.
func (x *scanner) escaped(i int) bool {
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
func (x *scanner) behindEscape(b, end int) int {
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

// escape returns the end of the escape in whose hexadecimal digits i stands,
// or i.
func (x *scanner) escape(i int) int {
	if x.has(i-3, "%25") && x.end(i, 2, isHex) == i+2 {
		return i + 2
	}
	for back := 1; back <= 5 && back <= i; back++ {
		size := 0
		switch c := x.s[i-back]; {
		case c == '%':
			size = 2
		case c == 'x' && x.has(i-back-1, `\`):
			size = 2
		case c == 'u' && x.has(i-back-1, `\`):
			size = 4
		case class[c]&isHex == 0:
			return i
		}
		if from := i - back + 1; size >= back && x.end(from, size, isHex) == from+size {
			return from + size
		}
	}
	return i
}
