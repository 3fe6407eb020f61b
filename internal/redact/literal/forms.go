package literal

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"html"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// former writes a text in every way in which it is expected to be met, one
// after the other into one scratch buffer, and gives each to take. Nothing of
// it is left on Go's heap but what html.EscapeString makes of a text that has
// something to escape.
type former struct {
	text    []byte
	scratch []byte
	take    func(form []byte)
}

// maxGrowth bounds how much longer a form is than its text: a \u escape after
// an escaped backslash.
const maxGrowth = 8

// forms gives all of them.
func (f *former) forms() {
	f.take(f.text)
	f.json()
	f.percent(f.text)
	f.hex(f.text)
	f.base64(f.text)
	f.base32(f.text)
	f.wide()
	if s := html.EscapeString(string(f.text)); len(s) != len(f.text) {
		f.take([]byte(s))
	}
}

// hex gives base 16 in both cases.
func (f *former) hex(text []byte) {
	b := hex.AppendEncode(f.scratch[:0], text)
	f.take(b)
	for i, c := range b {
		if c >= 'a' {
			b[i] = c - 'a' + 'A'
		}
	}
	f.take(b)
}

// base64 gives the characters that text alone decides, wherever it stands in
// what was encoded, in both alphabets, and with "+" and "/" as URLs and some
// JSON writers have them.
func (f *former) base64(text []byte) {
	padded := append(f.scratch[:0], 0, 0, 0)
	padded = append(padded, text...)
	for shift := range 3 {
		from, to := (shift*8+5)/6, (shift+len(text))*8/6
		for _, enc := range [...]*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			b := enc.AppendEncode(padded[len(padded):], padded[3-shift:])[from:to]
			f.take(b)
			if enc == base64.RawStdEncoding {
				f.take(appendPercent(b[len(b):], b, set{word: true}, "%", upperHex))
				f.take(appendPercent(b[len(b):], b, set{word: true}, "%", lowerHex))
				f.take(appendJSON(b[len(b):], b, jsonForm{slash: true}))
			}
		}
	}
}

// base32 gives the characters that text alone decides, wherever it is in what was
// encoded, in both cases.
func (f *former) base32(text []byte) {
	padded := append(f.scratch[:0], 0, 0, 0, 0, 0)
	padded = append(padded, text...)
	enc := base32.StdEncoding.WithPadding(base32.NoPadding)
	for shift := range 5 {
		from, to := (shift*8+4)/5, (shift+len(text))*8/5
		b := enc.AppendEncode(padded[len(padded):], padded[5-shift:])[from:to]
		f.take(b)
		for i, c := range b {
			b[i] = char.ToLower(c)
		}
		f.take(b)
	}
}

// wide gives UTF-16 in both orders, and the base64 of the usual one.
func (f *former) wide() {
	out := f.scratch[:0]
	for i := 0; i < len(f.text); {
		r, n := utf8.DecodeRune(f.text[i:])
		if r == utf8.RuneError && n == 1 {
			r = rune(f.text[i]) // no UTF-8: its bytes, widened
		}
		i += n
		for _, u := range units(r) {
			out = append(out, byte(u), byte(u>>8))
		}
	}
	f.take(out)
	rest := former{scratch: out[len(out):], take: f.take}
	rest.base64(out)
	for i := 0; i+1 < len(out); i += 2 {
		out[i], out[i+1] = out[i+1], out[i]
	}
	f.take(out)
}

// units is r in UTF-16.
func units(r rune) []uint16 {
	if r < 0x10000 {
		return []uint16{uint16(r)}
	}
	r -= 0x10000
	return []uint16{0xd800 + uint16(r>>10), 0xdc00 + uint16(r&0x3ff)}
}

const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
)

// set is what a URL encoding leaves as it is: letters and digits where word is
// set, and the bytes of more. With plus a space becomes "+".
type set struct {
	word, plus bool
	more       string
}

func (s set) holds(c byte) bool {
	if s.word && char.Class[c]&char.Alnum != 0 {
		return true
	}
	for k := range len(s.more) {
		if s.more[k] == c {
			return true
		}
	}
	return false
}

// percentSets are those in use: RFC 3986 section 2.3 with and without "+" for
// a space, the form encoding of the URL standard, encodeURIComponent, encodeURI,
// Go's path segment, a path, and every byte.
var percentSets = [...]set{
	{word: true, more: "-_.~"},
	{word: true, more: "-_.~", plus: true},
	{word: true, more: "*-._", plus: true},
	{word: true, more: "-_.~!*'()"},
	{word: true, more: "-_.~!*'();,/?:@&=+$#"},
	{word: true, more: "-_.~$&+:=@"},
	{word: true, more: "-_.~/"},
	{},
}

// percent gives the URL encodings, in both cases, once and twice.
func (f *former) percent(text []byte) {
	for _, s := range percentSets {
		for _, digits := range [...]string{upperHex, lowerHex} {
			for _, sign := range [...]string{"%", "%25"} {
				f.take(appendPercent(f.scratch[:0], text, s, sign, digits))
			}
		}
	}
}

func appendPercent(to, text []byte, s set, sign, digits string) []byte {
	for _, c := range text {
		switch {
		case c == ' ' && s.plus && len(sign) == 1:
			to = append(to, '+')
		case c == ' ' && s.plus:
			to = append(to, '%', '2', digits[11]) // the sign of the first time
		case s.holds(c):
			to = append(to, c)
		default:
			to = append(append(to, sign...), digits[c>>4], digits[c&15])
		}
	}
	return to
}

// jsonForm is what a JSON writer escapes beside what it must.
type jsonForm struct {
	slash  bool   // "/"
	html   bool   // "<", ">" and "&"
	ascii  bool   // everything above ASCII
	digits string // of escapes; lower case if empty
	twice  bool   // written into a string of another document
}

// json gives the ways of writing it in a JSON string.
func (f *former) json() {
	for _, form := range [...]jsonForm{
		{}, {html: true}, {slash: true}, {ascii: true}, {ascii: true, slash: true}, {ascii: true, digits: upperHex}, {ascii: true, html: true},
	} {
		f.take(appendJSON(f.scratch[:0], f.text, form))
		form.twice = true
		f.take(appendJSON(f.scratch[:0], f.text, form))
	}
}

// appendJSON appends text as it stands between the quotes of a JSON string
// (RFC 8259 section 7). Bytes that are not UTF-8 stay.
func appendJSON(to, text []byte, form jsonForm) []byte {
	escape := `\`
	if form.twice {
		escape = `\\`
	}
	if form.digits == "" {
		form.digits = lowerHex
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		part := text[i : i+n]
		i += n
		switch short := shortEscape(r); {
		case short != 0 && form.twice && (r == '"' || r == '\\'):
			to = append(append(to, `\\\`...), short)
		case short != 0:
			to = append(append(to, escape...), short)
		case r == '/' && form.slash:
			to = append(append(to, escape...), '/')
		case r < ' ', form.html && (r == '<' || r == '>' || r == '&'), form.ascii && n > 1:
			for _, u := range units(r) {
				to = append(append(to, escape...), 'u', form.digits[u>>12], form.digits[u>>8&15], form.digits[u>>4&15], form.digits[u&15])
			}
		default:
			to = append(to, part...)
		}
	}
	return to
}

// shortEscape is the letter of r's escape of two characters, or 0.
func shortEscape(r rune) byte {
	switch r {
	case '"', '\\':
		return byte(r)
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	}
	return 0
}
