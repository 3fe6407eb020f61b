package literal

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/escape"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

const (
	// minLoose is how many letters, digits and bytes beyond ASCII a form has
	// that is also found where anything stands between them.
	minLoose = 8
	// maxLoose bounds such a form, and with it the time at each place.
	maxLoose = 8192
	// maxBetween is how many bytes that do not count may stand between two that
	// do: a line break and what the next line is indented or quoted with.
	maxBetween = 48
	// maxGlyph is the length of the longest escape: "&amp;#x0000000041;".
	maxGlyph = escape.MaxReference + 4
)

// loose gives the forms of f.text that are found however they are broken into
// lines, escaped or set apart: itself, base 16, base64 at each alignment, and
// its bytes in decimal, all reduced to what counts.
func (f *former) loose(take func(form []byte)) {
	if len(f.text) > maxLoose {
		return
	}
	buf := f.scratch[:0]
	take(core(buf, f.text))
	n := hex.EncodedLen(len(f.text))
	b := f.scratch[:n]
	hex.Encode(b, f.text)
	take(b)
	for i, c := range b {
		if c >= 'a' {
			b[i] = c - 'a' + 'A'
		}
	}
	take(b)
	for _, c := range f.text {
		buf = strconv.AppendUint(buf, uint64(c), 10)
	}
	take(buf)
	padded := append(f.scratch[:0], 0, 0, 0)
	padded = append(padded, f.text...)
	for shift := range 3 {
		from, to := (shift*8+5)/6, (shift+len(f.text))*8/6
		b := base64.RawStdEncoding.AppendEncode(padded[len(padded):], padded[3-shift:])[from:to]
		take(core(b[len(b):], b))
	}
}

// core appends the bytes of s that count: letters, digits, and what is beyond
// ASCII and can be seen.
func core(to, s []byte) []byte {
	for i := 0; i < len(s); {
		n := unseen(s[i:])
		if n == 0 {
			if counts(s[i]) {
				to = append(to, s[i])
			}
			n = 1
		}
		i += n
	}
	return to
}

// countMixed returns how many letters and digits of ASCII a text has.
func countMixed(text []byte) (n int) {
	for _, c := range text {
		if char.Class[c]&char.Alnum != 0 {
			n++
		}
	}
	return n
}

func counts(c byte) bool { return c >= utf8.RuneSelf || char.Class[c]&char.Alnum != 0 }

// loose finds registered secrets that are broken up.
type loose struct {
	forms  map[uint32][][]byte // in memory, sorted, by their first four bytes
	heads  [256]bool           // the first bytes
	first  twoBytes            // the first two
	sieve  sieve               // the first four
	begins twoBytes            // with what a form may begin in a text
}

func newLoose() loose {
	return loose{forms: map[uint32][][]byte{}}
}

// addLoose keeps a form of loose, and marks how it may begin.
func (l *Set) addLoose(f []byte) {
	if len(f) < minLoose || len(f) > maxLoose {
		return
	}
	k := keyOf(f)
	at, known := slices.BinarySearchFunc(l.loose.forms[k], f, bytes.Compare)
	if known {
		return
	}
	l.loose.forms[k] = slices.Insert(l.loose.forms[k], at, l.memory.Keep(f))
	l.loose.heads[f[0]] = true
	l.loose.first.add(f[0], f[1])
	l.heads[f[0]] = true
	p := &l.loose.begins
	p.add(f[0], f[1])
	for c := range 256 {
		if b := byte(c); char.Class[b]&char.Alnum == 0 {
			p.add(f[0], b)
		}
	}
	p.add(f[0], '0')
	if !l.heads['\\'] || !p.has('&'<<8|'#') {
		l.addEscapes(p)
	}
}

// addEscapes marks how an escape may begin.
func (l *Set) addEscapes(p *twoBytes) {
	for _, c := range []byte("0123456789abcdefABCDEF") {
		p.add('%', c)
		p.add('=', c)
	}
	for _, c := range []byte("xuU01234567") {
		p.add('\\', c)
	}
	for _, s := range [...]string{"&#", "&a", "0x", "\xef\xbc", "\xef\xbd"} {
		p.add(s[0], s[1])
	}
	for _, c := range []byte("%=\\&0\xef") {
		l.heads[c] = true
	}
}

// at returns the length of the longest form at i, 0 for none, or -1 where only
// more text can tell.
func (l *loose) at(s []byte, i int, final bool) int {
	key, status := l.key(s, i, final)
	if status <= 0 {
		return status
	}
	if !l.sieve.has(key) {
		return 0
	}
	end := followForms(s, i, l.forms[key], final)
	if end > i && mask.IsWithin(s, i, end) {
		return 0
	}
	return max(end-i, min(end, 0))
}

// key returns the first four bytes that count from i on; status is 0 where no
// form begins, and -1 where only more text can tell.
func (l *loose) key(s []byte, i int, final bool) (key uint32, status int) {
	if t := s[i:]; len(t) >= 4 && !special[t[0]] && !special[t[1]] && !special[t[2]] && !special[t[3]] &&
		counts(t[0]) && counts(t[1]) && counts(t[2]) && counts(t[3]) {
		return keyOf(t), 1
	}
	have, between := 0, 0
	for p := i; ; {
		if p == len(s) {
			if final {
				return 0, 0
			}
			return 0, -1
		}
		u, n := glyph(s[p:], final)
		if n <= 0 {
			return 0, n
		}
		if u.n == 0 {
			if between += n; between > maxBetween || have == 0 {
				return 0, 0
			}
		} else {
			between = 0
		}
		for _, c := range u.b[:u.n] {
			key = key<<8 | uint32(c)
			switch have++; {
			case have == 1 && !l.heads[c], have == 2 && !l.first.has(uint16(key)):
				return 0, 0
			case have == 4:
				return key, 1
			}
		}
		p += n
	}
}

// followForms returns the end of the longest of some sorted forms that begins at i: i for none, -1
// if only more text can tell. It follows all of them together, because many values may begin alike.
func followForms(s []byte, i int, forms [][]byte, final bool) (end int) {
	end = i
	p, between := i, 0
	for k := 0; len(forms) > 0; {
		if p == len(s) {
			if final {
				return end
			}
			return -1
		}
		u, n := glyph(s[p:], final)
		if n < 0 {
			return -1
		}
		if n == 0 {
			return end
		}
		p += n
		if u.n == 0 {
			if between += n; between > maxBetween {
				return end
			}
			continue
		}
		between = 0
		for _, c := range u.b[:u.n] {
			forms = narrowForms(forms, k, c)
			k++
		}
		if len(forms) > 0 && len(forms[0]) == k { // the shortest comes first
			end, forms = p, forms[1:]
		}
	}
	return end
}

// narrowForms returns those of sorted forms that have c at k. All of them are the same before k.
func narrowForms(forms [][]byte, k int, c byte) [][]byte {
	if n := len(forms); n == 0 || len(forms[0]) > k && forms[0][k] == c && forms[n-1][k] == c {
		return forms
	}
	from := sort.Search(len(forms), func(i int) bool { return len(forms[i]) > k && forms[i][k] >= c })
	to := from + sort.Search(len(forms)-from, func(i int) bool { return forms[from+i][k] > c })
	return forms[from:to]
}

// read is one character of a text, in UTF-8, as its escape is read; n is 0
// where it does not count.
type read struct {
	b [utf8.UTFMax]byte
	n int
}

// glyph reads what s begins with, and its length: 0 where a mask begins, -1
// where s is too short to tell.
func glyph(s []byte, final bool) (u read, n int) {
	c := s[0]
	if !special[c] {
		if counts(c) {
			u.b[0], u.n = c, 1
		}
		return u, 1
	}
	switch {
	case c == '[' || c == '<' || c == '*':
		if !final && len(s) < mask.MaxLen {
			return u, -1
		}
		if mask.Len(s) > 0 {
			return u, 0
		}
		return u, 1
	case c == '0' && len(s) == 1 && !final:
		return u, -1
	case c != '0', len(s) > 1 && s[1] == 'x':
		if !final && len(s) < maxGlyph {
			return u, -1
		}
		if r, n := escapeOf(s); n > 0 {
			return readRune(r), n
		}
	}
	if counts(c) {
		u.b[0], u.n = c, 1
	}
	return u, 1
}

// special holds the bytes that glyph looks after.
var special = specials()

func specials() (t [256]bool) {
	for _, c := range []byte("[<*0%&\\=\x1b\xc2\xcc\xcd\xe2\xef\xf3") {
		t[c] = true
	}
	return t
}

func readRune(r rune) (u read) {
	switch {
	case r == escape.Invisible:
	case r&escape.RawByte != 0 && counts(byte(r)):
		u.b[0], u.n = byte(r), 1
	case r&escape.RawByte == 0 && r >= utf8.RuneSelf, r > 0 && r < utf8.RuneSelf && counts(byte(r)):
		u.n = utf8.EncodeRune(u.b[:], r)
	}
	return u
}

// escapeOf reads an escape of any language, a character that is not seen or a
// full-width one, and its length; 0 where it is as it looks.
func escapeOf(s []byte) (rune, int) {
	switch c := s[0]; c {
	case '0':
		if b, ok := char.HexByte(s, 2); ok {
			return rune(b) | escape.RawByte, 4
		}
		return 0, 0
	case '%':
		return percented(s)
	case '=':
		if b, ok := char.HexByte(s, 1); ok && char.Class[s[1]]&char.Lower == 0 && char.Class[s[2]]&char.Lower == 0 {
			return rune(b) | escape.RawByte, 3
		}
		return 0, 0
	case '&':
		return referred(s)
	case '\\':
		return escape.Backslashed(s)
	case 0x1b:
		return escape.Invisible, colour(s)
	default:
		if n := unseen(s); n > 0 {
			return escape.Invisible, n
		}
		return escape.FullWidth(s)
	}
}

// referred reads &#65; &lt; and both with their "&" written as "&amp;".
func referred(s []byte) (rune, int) {
	const amp = "&amp;"
	if bytes.HasPrefix(s, []byte(amp)) {
		var again [escape.MaxReference]byte
		again[0] = '&'
		n := copy(again[1:], s[len(amp):])
		if r, n := escape.Reference(again[:1+n]); n > 0 {
			return r, n + len(amp) - 1
		}
	}
	return escape.Reference(s)
}

// percented reads %41, %2541 and so on, and %u0041.
func percented(s []byte) (rune, int) {
	if r, n := escape.PercentU(s); n > 0 {
		return r, n
	}
	i := 1
	for i < 7 && len(s) > i+3 && s[i] == '2' && s[i+1] == '5' {
		if _, ok := char.HexByte(s, i+2); !ok {
			break
		}
		i += 2
	}
	if b, ok := char.HexByte(s, i); ok {
		return rune(b) | escape.RawByte, i + 2
	}
	return 0, 0
}

// colour returns the length of a terminal's control sequence (ECMA-48 section
// 5.4), or 0.
func colour(s []byte) int {
	if len(s) < 3 || s[1] != '[' {
		return 0
	}
	for i := 2; i < len(s) && i < maxGlyph; i++ {
		switch c := s[i]; {
		case c >= '@' && c <= '~':
			return i + 1
		case c < ' ' || c > '?':
			return 0
		}
	}
	return 0
}

// unseen returns the length of the character that s begins with if it has no
// width, directs, or belongs to the one before it: invisible's, combining
// marks, selectors of variants, tags, and what turns the direction.
func unseen(s []byte) int {
	if s[0] < utf8.RuneSelf || !special[s[0]] {
		return 0
	}
	r, n := utf8.DecodeRune(s)
	switch {
	case r == 0xad, r >= 0x300 && r <= 0x36f, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e,
		r >= 0x2060 && r <= 0x206f, r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff, r >= 0xe0000 && r <= 0xe01ef:
		return n
	}
	return 0
}
