// Package char has classes of bytes, and comparisons of ASCII words without their case.
package char

// Classes of bytes.
const (
	Digit uint16 = 1 << iota
	Upper
	Lower
	Hex
	Word   // letters, digits and every byte above ASCII
	URL64  // letters, digits, "-" and "_"
	Ident  // a name: letters, digits, "_", "-", "."
	Local  // the part of an address before "@"
	Domain // the part after it
	Blank  // space and tab
	Space  // white space and control bytes
	Std64  // letters, digits, "+", "/"
	Symbol // what an opaque credential may hold besides letters and digits

	Letter = Upper | Lower
	Alnum  = Letter | Digit
)

// Class holds the classes of each byte.
var Class = classes()

func classes() (t [256]uint16) {
	for c := range 256 {
		b := byte(c)
		switch {
		case b >= '0' && b <= '9':
			t[c] |= Digit | Hex
		case b >= 'A' && b <= 'Z':
			t[c] |= Upper
		case b >= 'a' && b <= 'z':
			t[c] |= Lower
		case b >= 0x80:
			t[c] |= Word | Local | Domain
		case b <= ' ':
			t[c] |= Space
		}
		if b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' {
			t[c] |= Hex
		}
		if t[c]&Alnum != 0 {
			t[c] |= Word | URL64 | Ident | Local | Domain | Std64
		}
	}
	add := func(chars string, bits uint16) {
		for _, c := range []byte(chars) {
			t[c] |= bits
		}
	}
	add("-_", URL64)
	add("-_.", Ident)
	add("._%+-~", Local)
	add(".-", Domain)
	add(" \t", Blank)
	add("+/", Std64)
	add("._~+/=-", Symbol)
	return t
}

// Letterish reports whether c is an ASCII letter or a byte above ASCII.
func Letterish(c byte) bool { return Class[c]&Letter != 0 || c >= 0x80 }

// DigitsFrom counts the digits of s at i, at most limit.
func DigitsFrom(s []byte, i, limit int) int {
	if i >= len(s) {
		return 0
	}
	s = s[i:min(len(s), i+limit)]
	for n, c := range s {
		if c-'0' > 9 {
			return n
		}
	}
	return len(s)
}

// IsStop says whether a comma, a full stop or the like of Chinese and Japanese
// ends at i: they stand where others write a blank.
func IsStop(s []byte, i int) bool {
	if i < 3 || s[i-1] < 0x80 {
		return false
	}
	switch string(s[i-3 : i]) {
	case "、", "。", "，", "！", "？", "：", "；":
		return true
	}
	return false
}

// ToLower returns c with an ASCII capital made small.
func ToLower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// EqualFold reports whether w, with its ASCII capitals made small, is text.
func EqualFold(w []byte, text string) bool {
	if len(w) != len(text) {
		return false
	}
	for i := range w {
		if ToLower(w[i]) != text[i] {
			return false
		}
	}
	return true
}

// HasFoldSuffix reports whether w, with its ASCII capitals made small, ends in text.
func HasFoldSuffix(w []byte, text string) bool {
	return len(w) >= len(text) && EqualFold(w[len(w)-len(text):], text)
}

// Unhex returns the value of a hexadecimal digit, and 255 for any other byte.
func Unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// HexByte returns the value of the two hexadecimal digits of s at i.
func HexByte(s []byte, i int) (byte, bool) {
	if len(s) < i+2 {
		return 0, false
	}
	hi, lo := Unhex(s[i]), Unhex(s[i+1])
	return hi<<4 | lo, hi < 16 && lo < 16
}

// IndexByte returns the index of c in a short s, or -1.
func IndexByte(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// WordGate tells in one look whether a list holds a word of a first byte and a
// length: what is not in it need not be compared.
type WordGate [256]uint32

// Add adds a word of the list.
func (g *WordGate) Add(word string) { g[word[0]|0x20] |= 1 << len(word) }

// May reports whether the list may hold a word of n bytes that begins with first.
func (g *WordGate) May(first byte, n int) bool { return n < 32 && g[first|0x20]&(1<<n) != 0 }

// IsQuote reports whether c is a quotation mark of ASCII.
func IsQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }
