package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
)

// Bits of what stands beside a short run of digits.
const (
	sideBefore uint8 = 1 << iota // judged whatever comes behind
	sideWide                     // may begin a sign of two or three bytes
	sideSplit                    // may join two runs
	sideMore                     // may stand behind what joins two
	sideLetter
	sideBlank
)

var sides = sidesOfNumbers()

func sidesOfNumbers() (t [256]uint8) {
	for c := range 256 {
		b := byte(c)
		set := func(bit uint8, is bool) {
			if is {
				t[c] |= bit
			}
		}
		set(sideBefore, char.Class[b]&char.Alnum != 0 || b == '%' || b == '$')
		set(sideWide, b == 0xc2 || b == 0xe2)
		set(sideSplit, splits[b])
		set(sideMore, char.Class[b]&char.Digit != 0 || char.IndexByte(" (-/", b) >= 0)
		set(sideLetter, char.Class[b]&char.Letter != 0)
		set(sideBlank, char.Class[b]&char.Blank != 0)
	}
	return t
}

// idle returns the end of the run of digits at i where a look at a few bytes
// tells that it is nothing: one or two runs of fewer than seven digits, a short
// word. It returns 0 where they must be judged.
func (x *Scanner) idle(i int) int {
	s := x.S
	if i < 1 || i+16 > len(s) || sides[s[i-1]]&sideBefore != 0 {
		return 0
	}
	n := cursor.LeadingDigits(s[i:])
	if n > 6 {
		return 0
	}
	q, r := s[i+n], s[i+n+1]
	side := sides[q]
	switch {
	case side == 0:
		if q == ',' && n <= 2 && sides[r]&sideBlank != 0 {
			return 0 // March 12, 1985
		}
		return i + n
	case side&sideWide != 0:
		return 0
	case side&sideLetter != 0 && s[i+4] == '-' && s[i+8] == '-':
		return 0 // a number in three parts
	case side&sideLetter != 0:
		if r != '~' && shortWord((*[8]byte)(s[i+1:])) {
			return i + n
		}
		return 0
	case side&sideSplit == 0:
		return i + n
	case r-'0' <= 9:
		if n == 4 && q == '-' {
			if end := clockEnd(s[i:]); end > 0 {
				return i + end
			}
			if isoDay(s[i:]) && !x.born(i) {
				return i + n
			}
		}
		return x.idlePair(i, n)
	case sides[r]&sideMore != 0:
		return 0
	case n <= 2 && side&sideBlank != 0 && beginsMonth(s[i+n+1:]):
		return 0 // 12 March 1985
	}
	return i + n
}

// idlePair is idle for two runs with one byte between.
func (x *Scanner) idlePair(i, n int) int {
	s := x.S[i+n+1:]
	m := cursor.LeadingDigits(s)
	if n+m > 6 {
		return 0
	}
	if side := sides[s[m]]; side&sideWide != 0 || side&sideSplit != 0 && sides[s[m+1]]&sideMore != 0 {
		return 0
	}
	return i + n
}

// clockEnd is the end of a timestamp at the beginning of s, before its fraction,
// or its seconds' begin where they may be more, or 0 where there is none. What
// names no minute of the day may be a birthday.
func clockEnd(s []byte) int {
	const form = "9999-99-99T99:99:99"
	if len(s) < 2*len(form) || string(s[11:16]) == "00:00" {
		return 0
	}
	for k := range len(form) {
		if c := s[k]; form[k] == '9' && c-'0' > 9 || form[k] != '9' && c != form[k] {
			return 0
		}
	}
	n := len(form)
	if s[n] == '.' {
		n += 1 + cursor.LeadingDigits(s[n+1:])
	}
	if side := sides[s[n]]; s[n] == 'Z' || side&(sideSplit|sideWide|sideLetter) == 0 &&
		char.Class[s[n]]&char.Digit == 0 {
		return len(form)
	}
	return len(form) - len("99")
}

// isoDay reports whether the four digits at the beginning of s, followed by "-", begin a day
// such as 2026-03-04, as phone.IsDay has it: it can only be a birthday.
func isoDay(s []byte) bool {
	if s[7] != '-' || s[0] != '1' && s[0] != '2' ||
		cursor.LeadingDigits(s[5:]) != 2 || cursor.LeadingDigits(s[8:]) != 2 {
		return false
	}
	m, d := (s[5]&15)*10+s[6]&15, (s[8]&15)*10+s[9]&15
	return m > 0 && d > 0 && min(m, d) <= 12 && max(m, d) <= 31
}

// shortWord says whether not all of w may belong to one word.
func shortWord(w *[8]byte) bool {
	return char.Class[w[0]]&char.Class[w[1]]&char.Class[w[2]]&char.Class[w[3]]&char.Class[w[4]]&char.Class[w[5]]&char.Class[w[6]]&char.Class[w[7]]&char.Word == 0
}

// monthHeads has a bit for the first three letters of each month.
var monthHeads = monthHeadings()

func monthHeadings() *[512]uint64 {
	var t [512]uint64
	for _, m := range months {
		k := headOf([]byte(m))
		t[k>>6] |= 1 << (k & 63)
	}
	return &t
}

func headOf(w []byte) uint { return uint(w[0]&31)<<10 | uint(w[1]&31)<<5 | uint(w[2]&31) }

// beginsMonth says whether a month may begin w, which has three bytes at least.
func beginsMonth(w []byte) bool {
	k := headOf(w)
	return monthHeads[k>>6]>>(k&63)&1 != 0
}
