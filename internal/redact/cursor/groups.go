package cursor

import (
	"encoding/binary"
	"math/bits"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// Group is a run of digits, and sep the one byte or bracket pair between it
// and the next run.
type Group struct {
	At, N int
	Sep   byte
}

const (
	Wide      = 'w' // two blanks
	MaxGroups = 8
	MaxRun    = 20 // a longer run of digits is no number of ours
)

// MaxDigits is how many digits a number of any form has at most.
const MaxDigits = 19

// Groups reads runs of digits with one separator between them, the first with n
// digits at i, up to the one with which they are more than most; ") " and " ("
// count as one.
func (x *Cursor) Groups(i, n, most int, g []Group) []Group {
	g, _ = x.Grow(append(g, Group{At: i, N: n}), most)
	return g
}

// Grow reads on after groups, and returns where they end if it is not their
// number that ends them.
func (x *Cursor) Grow(g []Group, most int) (all []Group, end int) {
	for k := range g {
		most -= g[k].N
	}
	for most >= 0 && len(g) < MaxGroups {
		last := &g[len(g)-1]
		j := last.At + last.N
		sep, w := x.separator(j)
		if w == 0 {
			return g, j
		}
		x.Touch(j + w)
		m := x.DigitRun(j + w)
		if m == 0 || m == MaxRun {
			return g, j
		}
		last.Sep = sep
		g = append(g, Group{At: j + w, N: m})
		most -= m
	}
	return g, 0
}

// DigitRun counts the digits at i, at most MaxRun.
func (x *Cursor) DigitRun(i int) int {
	s := x.S
	if i+24 > len(s) {
		return char.DigitsFrom(s, i, MaxRun)
	}
	n := LeadingDigits(s[i:])
	if n == 8 {
		n += LeadingDigits(s[i+8:])
	}
	if n == 16 {
		n += min(LeadingDigits(s[i+16:]), MaxRun-16)
	}
	return n
}

func (x *Cursor) separator(j int) (byte, int) {
	if j+1 >= len(x.S) {
		x.Touched = x.Touched || j >= len(x.S) || x.S[j] != '\n'
		return 0, 0
	}
	c, d := x.S[j], x.S[j+1]
	if d-'0' <= 9 && (c == ' ' || c == '-') {
		return c, 1
	}
	switch c {
	case ')':
		if d == ' ' || d == '-' {
			return c, 2
		}
		return c, 1
	case ' ', '-', '.':
		if c == ' ' && d == ' ' {
			return Wide, 2
		}
		if d == '(' {
			return '(', 2
		}
		return c, 1
	case '/', '\t':
		return c, 1
	case 0xc2, 0xe2: // no-break spaces and the dashes of typography
		if d == 0xa0 && c == 0xc2 {
			return ' ', 2
		}
		if d == 0x80 && j+2 < len(x.S) {
			switch x.S[j+2] {
			case 0xaf, 0x89, 0x8a:
				return ' ', 3
			case 0x90, 0x91, 0x92, 0x93, 0x94:
				return '-', 3
			}
		}
	case '(':
		return '(', 1
	}
	return 0, 0
}

// LeadingDigits returns the number of digits that the first eight bytes of s begin with.
func LeadingDigits(s []byte) int {
	// The high half of a digit is 3, also with 6 added to the low one. What
	// is carried comes from a byte that is not a digit, into those after it.
	const high, six, three = 0xf0f0f0f0f0f0f0f0, 0x0606060606060606, 0x3030303030303030
	w := binary.LittleEndian.Uint64(s)
	return bits.TrailingZeros64((w&high^three)|((w+six)&high^three)) >> 3
}

// IsDate reports whether groups may be a day of a year.
func IsDate(g []Group) bool {
	if len(g) < 3 {
		return false
	}
	return g[0].N == 4 && g[1].N <= 2 && g[2].N <= 2 || g[0].N <= 2 && g[1].N <= 2 && g[2].N == 4
}

// IsAddress says whether groups are those of an IP address.
func IsAddress(g []Group) bool {
	if len(g) != 4 {
		return false
	}
	for k, v := range g {
		if v.N > 3 || k < 3 && v.Sep != '.' {
			return false
		}
	}
	return true
}
