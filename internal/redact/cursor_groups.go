package redact

import (
	"encoding/binary"
	"math/bits"
)

// group is a run of digits, and sep the one byte or bracket pair between it
// and the next run.
type group struct {
	at, n int
	sep   byte
}

const (
	wide      = 'w' // two blanks
	maxGroups = 8
	maxRun    = 20 // a longer run of digits is no number of ours
)

// maxDigits is how many digits a number of any form has at most.
const maxDigits = 19

// groups reads runs of digits with one separator between them, the first with n
// digits at i, up to the one with which they are more than most; ") " and " ("
// count as one.
func (x *cursor) groups(i, n, most int, g []group) []group {
	g, _ = x.grow(append(g, group{at: i, n: n}), most)
	return g
}

// grow reads on behind groups, and returns where they end if it is not their
// number that ends them.
func (x *cursor) grow(g []group, most int) (all []group, end int) {
	for k := range g {
		most -= g[k].n
	}
	for most >= 0 && len(g) < maxGroups {
		last := &g[len(g)-1]
		j := last.at + last.n
		sep, w := x.separator(j)
		if w == 0 {
			return g, j
		}
		x.touch(j + w)
		m := x.digitRun(j + w)
		if m == 0 || m == maxRun {
			return g, j
		}
		last.sep = sep
		g = append(g, group{at: j + w, n: m})
		most -= m
	}
	return g, 0
}

// digitRun counts the digits at i, at most maxRun.
func (x *cursor) digitRun(i int) int {
	s := x.s
	if i+24 > len(s) {
		return digitsFrom(s, i, maxRun)
	}
	n := leadingDigits(s[i:])
	if n == 8 {
		n += leadingDigits(s[i+8:])
	}
	if n == 16 {
		n += min(leadingDigits(s[i+16:]), maxRun-16)
	}
	return n
}

func (x *cursor) separator(j int) (byte, int) {
	if j+1 >= len(x.s) {
		x.touched = x.touched || j >= len(x.s) || x.s[j] != '\n'
		return 0, 0
	}
	c, d := x.s[j], x.s[j+1]
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
			return wide, 2
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
		if d == 0x80 && j+2 < len(x.s) {
			switch x.s[j+2] {
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

// leadingDigits is how many of the first eight bytes of s are digits before one
// that is none.
func leadingDigits(s []byte) int {
	// The high half of a digit is 3, also with 6 added to the low one. What
	// is carried comes from a byte that is none, into those behind it.
	const high, six, three = 0xf0f0f0f0f0f0f0f0, 0x0606060606060606, 0x3030303030303030
	w := binary.LittleEndian.Uint64(s)
	return bits.TrailingZeros64((w&high^three)|((w+six)&high^three)) >> 3
}

func isDate(g []group) bool {
	if len(g) < 3 {
		return false
	}
	return g[0].n == 4 && g[1].n <= 2 && g[2].n <= 2 || g[0].n <= 2 && g[1].n <= 2 && g[2].n == 4
}

// isAddress says whether groups are those of an IP address.
func isAddress(g []group) bool {
	if len(g) != 4 {
		return false
	}
	for k, v := range g {
		if v.n > 3 || k < 3 && v.sep != '.' {
			return false
		}
	}
	return true
}
