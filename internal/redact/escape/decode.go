// Package escape writes escapes out: percent-encoding, character references, those
// after a backslash, and characters that are not seen.
package escape

import (
	"bytes"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// wraps holds the bytes at which something may be wrapped: an escape begins,
// or a byte that readers drop.
var wraps = wrapTable()

const wrapping = "%&\\\x00\xc2\xcd\xe2\xef\xf3"

func wrapTable() (t [256]bool) {
	for _, c := range []byte(wrapping) {
		t[c] = true
	}
	return t
}

// Unwrap writes one level of escapes out: percent-encoding (RFC 3986) and the
// %u0041 of old scripts (ECMA-262, B.2.1), the character references of XML and
// HTML, and those after a backslash; and it drops what readers do not see (NUL,
// soft hyphens, the zero-width characters). It returns nil where there is none.
// Runs longer than the text do not come out.
func Unwrap(s []byte) ([]byte, []span.Edit) {
	if !isWrapped(s) {
		return nil, nil
	}
	var out []byte
	var edits []span.Edit
	last := 0
	for i := 0; i < len(s); {
		if !wraps[s[i]] {
			i++
			continue
		}
		r, n := escape(s[i:])
		if n == 0 {
			i++
			continue
		}
		out = append(out, s[last:i]...)
		at := len(out)
		if r >= 0 {
			out = appendRune(out, r)
		}
		edits = append(edits, span.Edit{Start: i, End: i + n, Out: at, N: len(out) - at})
		i += n
		last = i
	}
	if edits == nil {
		return nil, nil
	}
	return append(out, s[last:]...), edits
}

// isWrapped says whether an escape stands in s. It asks for one telling byte
// after the other, as most texts have none or few of each.
func isWrapped(s []byte) bool {
	if len(s) < 64 {
		for i, c := range s {
			if wraps[c] {
				if _, w := escape(s[i:]); w > 0 {
					return true
				}
			}
		}
		return false
	}
	for k := range len(wrapping) {
		for i := 0; ; i++ {
			n := bytes.IndexByte(s[i:], wrapping[k])
			if n < 0 {
				break
			}
			i += n
			if _, w := escape(s[i:]); w > 0 {
				return true
			}
		}
	}
	return false
}

// RawByte marks what escape returns as one byte, not a character.
const RawByte = 1 << 24

// Invisible is what escape returns for what nobody sees.
const Invisible = -1

func appendRune(to []byte, r rune) []byte {
	if r&RawByte != 0 {
		return append(to, byte(r))
	}
	return utf8.AppendRune(to, r)
}

// escape reads what s begins with, and its length; 0 where it is as it looks.
func escape(s []byte) (rune, int) {
	switch s[0] {
	case '%':
		if b, ok := char.HexByte(s, 1); ok {
			return rune(b) | RawByte, 3
		}
		return PercentU(s)
	case '&':
		return Reference(s)
	case '\\':
		return slashed(s)
	case 0:
		return Invisible, 1
	case 0xf3:
		return tagged(s)
	default:
		if r, n := FullWidth(s); n > 0 {
			return r, n
		}
		return Invisible, invisible(s)
	}
}

// PercentU reads %u0041.
func PercentU(s []byte) (rune, int) {
	if len(s) < 6 || s[1]|0x20 != 'u' {
		return 0, 0
	}
	if r, ok := hexRune(s, 2, 4); ok && utf8.ValidRune(r) {
		return r, 6
	}
	return 0, 0
}

// slashed reads what languages write after a backslash: \x41, \u0041 (which
// unfold leaves of quotes, backslashes and all beyond ASCII), \u{41},
// \U00000041, and three octal digits.
func slashed(s []byte) (rune, int) {
	if len(s) < 4 {
		return 0, 0
	}
	switch c := s[1]; {
	case c == 'x' || c == 'u' || c == 'U':
		if r, n := Backslashed(s); r&RawByte != 0 || utf8.ValidRune(r) {
			return r, n
		}
	case c >= '0' && c <= '3':
		if r, n := octal(s[:4]); n == 4 {
			return r, n
		}
	}
	return 0, 0
}

// MaxReference bounds a character reference: "&#x0000000041;".
const MaxReference = 16

// Reference reads &#65; &#x41; and the named references of ASCII's signs
// (HTML section 13.5); the ";" may be missing after a number.
func Reference(s []byte) (rune, int) {
	if len(s) < 4 {
		return 0, 0
	}
	if s[1] != '#' {
		semi := bytes.IndexByte(s[:min(len(s), MaxReference)], ';')
		if semi < 0 {
			return 0, 0
		}
		if r := named(s[1:semi]); r != 0 {
			return r, semi + 1
		}
		return 0, 0
	}
	base, i := rune(10), 2
	if s[2]|0x20 == 'x' {
		base, i = 16, 3
	}
	r, from := rune(0), i
	for ; i < len(s) && i < MaxReference; i++ {
		d := rune(char.Unhex(s[i]))
		if d >= base {
			break
		}
		if r = r*base + d; r > utf8.MaxRune {
			return 0, 0
		}
	}
	if i == from || r == 0 {
		return 0, 0
	}
	if i < len(s) && s[i] == ';' {
		i++
	}
	return r, i
}

func named(name []byte) rune {
	switch string(name) {
	case "amp", "AMP":
		return '&'
	case "lt", "LT":
		return '<'
	case "gt", "GT":
		return '>'
	case "quot", "QUOT":
		return '"'
	case "apos":
		return '\''
	case "nbsp", "Tab", "NonBreakingSpace":
		return ' '
	case "NewLine":
		return '\n'
	case "shy", "ZeroWidthSpace", "zwnj", "zwj":
		return Invisible
	case "colon":
		return ':'
	case "equals":
		return '='
	case "commat":
		return '@'
	case "period":
		return '.'
	case "lowbar", "UnderBar":
		return '_'
	case "hyphen", "dash":
		return '-'
	case "num":
		return '#'
	case "percnt":
		return '%'
	case "plus":
		return '+'
	case "sol":
		return '/'
	case "bsol":
		return '\\'
	case "comma":
		return ','
	case "semi":
		return ';'
	case "lpar":
		return '('
	case "rpar":
		return ')'
	case "lsqb", "lbrack":
		return '['
	case "rsqb", "rbrack":
		return ']'
	case "lcub", "lbrace":
		return '{'
	case "rcub", "rbrace":
		return '}'
	}
	return 0
}

// invisible returns the length of the character without width that s begins
// with: U+00AD, U+034F, U+200B to U+200F, U+202A to U+202E, U+2060 to U+206F,
// U+FE00 to U+FE0F, U+FEFF.
func invisible(s []byte) int {
	switch {
	case len(s) >= 2 && (s[0] == 0xc2 && s[1] == 0xad || s[0] == 0xcd && s[1] == 0x8f):
		return 2
	case len(s) < 3:
	case s[0] == 0xe2 && s[1] == 0x80 && (s[2] >= 0x8b && s[2] <= 0x8f || s[2] >= 0xaa && s[2] <= 0xae),
		s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa0 && s[2] <= 0xaf,
		s[0] == 0xef && s[1] == 0xb8 && s[2] <= 0x8f,
		s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf:
		return 3
	}
	return 0
}

// tagged reads a tag character, U+E0020 to U+E007E: nobody sees one, and it
// stands for a character of ASCII. The others of their block are dropped.
func tagged(s []byte) (rune, int) {
	if len(s) < 4 || s[1] != 0xa0 || s[2]&^1 != 0x80 || s[3]&0xc0 != 0x80 {
		return 0, 0
	}
	if c := rune(s[2]&1)<<6 | rune(s[3]&0x3f); c >= ' ' && c < 0x7f {
		return c, 4
	}
	return Invisible, 4
}

// Backslashed reads the escapes of C, Go, JSON, JavaScript, Python and shells.
func Backslashed(s []byte) (rune, int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch c := s[1]; c {
	case 'n', 'r', 't', 'b', 'f', 'v', 'a', 'e':
		return Invisible, 2
	case 'u':
		if len(s) > 3 && s[2] == '{' {
			return braced(s)
		}
		return fixed(s, 4)
	case 'U':
		return fixed(s, 8)
	case 'x':
		if b, ok := char.HexByte(s, 2); ok {
			return rune(b) | RawByte, 4
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return octal(s)
	}
	return 0, 0
}

// fixed reads the n hexadecimal digits after \u or \U, and of a pair both.
func fixed(s []byte, n int) (rune, int) {
	r, ok := hexRune(s, 2, n)
	if !ok || r > utf8.MaxRune {
		return 0, 0
	}
	if n == 4 && r >= 0xd800 && r < 0xdc00 && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if low, ok := hexRune(s, 8, 4); ok && low >= 0xdc00 && low < 0xe000 {
			return 0x10000 + (r-0xd800)<<10 + low - 0xdc00, 12
		}
	}
	return r, 2 + n
}

func hexRune(s []byte, i, n int) (r rune, ok bool) {
	if len(s) < i+n {
		return 0, false
	}
	for _, c := range s[i : i+n] {
		d := char.Unhex(c)
		if d > 15 || r > utf8.MaxRune {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// braced reads \u{41}.
func braced(s []byte) (rune, int) {
	r := rune(0)
	for i := 3; i < len(s) && i < 10; i++ {
		if s[i] == '}' && i > 3 && r <= utf8.MaxRune {
			return r, i + 1
		}
		d := char.Unhex(s[i])
		if d > 15 {
			break
		}
		r = r<<4 | rune(d)
	}
	return 0, 0
}

// octal reads \101, and \0101 as some shells write it.
func octal(s []byte) (rune, int) {
	most := 4
	if s[1] == '0' {
		most = 5
	}
	r, i := 0, 1
	for ; i < len(s) && i < most && s[i] >= '0' && s[i] <= '7'; i++ {
		r = r<<3 | int(s[i]-'0')
	}
	return rune(r&255) | RawByte, i
}

// FullWidth reads U+FF01 to U+FF5E as the ASCII they look like.
func FullWidth(s []byte) (rune, int) {
	if len(s) < 3 || s[0] != 0xef || s[1] != 0xbc && s[1] != 0xbd {
		return 0, 0
	}
	if r, n := utf8.DecodeRune(s); n == 3 && r >= 0xff01 && r <= 0xff5e {
		return r - 0xfee0, 3
	}
	return 0, 0
}
