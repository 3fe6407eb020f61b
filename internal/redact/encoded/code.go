// Package encoded opens base64, base32 and hexadecimal in text.
package encoded

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// Unbase32 appends what a run of base32 holds (RFC 4648 section 6), in either case.
func Unbase32(d, run []byte) []byte {
	acc, bits := uint32(0), 0
	for _, c := range run {
		v := uint32(char.ToLower(c) - 'a')
		if char.Class[c]&char.Digit != 0 {
			v = uint32(c-'2') + 26
		}
		acc = acc<<5 | v
		if bits += 5; bits >= 8 {
			bits -= 8
			d = append(d, byte(acc>>bits))
		}
	}
	return d
}

// Unhex appends what a run of hexadecimal holds.
func Unhex(d, run []byte) []byte {
	for i := 0; i+1 < len(run); i += 2 {
		d = append(d, char.Unhex(run[i])<<4|char.Unhex(run[i+1]))
	}
	return d
}

// Unbase64 decodes a run of either alphabet, or of both; what is left over at
// its end counts for nothing.
func Unbase64(d, run []byte) []byte {
	d = slices.Grow(d, len(run)/4*3+3)
	i := 0
	for ; i+4 <= len(run); i += 4 {
		v := uint32(sextet[run[i]])<<18 | uint32(sextet[run[i+1]])<<12 |
			uint32(sextet[run[i+2]])<<6 | uint32(sextet[run[i+3]])
		d = append(d, byte(v>>16), byte(v>>8), byte(v))
	}
	switch len(run) - i {
	case 2:
		d = append(d, sextet[run[i]]<<2|sextet[run[i+1]]>>4)
	case 3:
		v := uint32(sextet[run[i]])<<12 | uint32(sextet[run[i+1]])<<6 | uint32(sextet[run[i+2]])
		d = append(d, byte(v>>10), byte(v>>2))
	}
	return d
}

var sextet = makeSextets()

func makeSextets() (t [256]byte) {
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = byte(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}

// runByte is a set of properties of a byte of a run.
type runByte uint8

const (
	noHex runByte = 1 << iota
	noBase32
	noUpper32
	noLower32
	upperByte
)

var runBytes = runByteTable()

func runByteTable() (t [256]runByte) {
	for i := range t {
		c := byte(i)
		if char.Class[c]&char.Hex == 0 {
			t[c] |= noHex
		}
		if char.Class[c]&char.Letter == 0 && (c < '2' || c > '7') {
			t[c] |= noBase32
		}
		if t[c]&noBase32 != 0 || char.Class[c]&char.Lower != 0 {
			t[c] |= noUpper32
		}
		if t[c]&noBase32 != 0 || char.Class[c]&char.Upper != 0 {
			t[c] |= noLower32
		}
		if char.Class[c]&char.Upper != 0 {
			t[c] |= upperByte
		}
	}
	return t
}
