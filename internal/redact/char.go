package redact

// Classes of bytes.
const (
	isDigit uint16 = 1 << iota
	isUpper
	isLower
	isHex
	isWord   // letters, digits and every byte above ASCII
	isURL64  // letters, digits, "-" and "_"
	isIdent  // a name: letters, digits, "_", "-", "."
	isLocal  // the part of an address before "@"
	isDomain // the part behind it
	isBlank  // space and tab
	isSpace  // white space and control bytes
	isStd64  // letters, digits, "+", "/"
	isSymbol // what an opaque credential may hold besides letters and digits

	isLetter = isUpper | isLower
	isAlnum  = isLetter | isDigit
)

var class = classes()

func classes() (t [256]uint16) {
	for c := range 256 {
		b := byte(c)
		switch {
		case b >= '0' && b <= '9':
			t[c] |= isDigit | isHex
		case b >= 'A' && b <= 'Z':
			t[c] |= isUpper
		case b >= 'a' && b <= 'z':
			t[c] |= isLower
		case b >= 0x80:
			t[c] |= isWord | isLocal | isDomain
		case b <= ' ':
			t[c] |= isSpace
		}
		if b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' {
			t[c] |= isHex
		}
		if t[c]&isAlnum != 0 {
			t[c] |= isWord | isURL64 | isIdent | isLocal | isDomain | isStd64
		}
	}
	add := func(chars string, bits uint16) {
		for _, c := range []byte(chars) {
			t[c] |= bits
		}
	}
	add("-_", isURL64)
	add("-_.", isIdent)
	add("._%+-~", isLocal)
	add(".-", isDomain)
	add(" \t", isBlank)
	add("+/", isStd64)
	add("._~+/=-", isSymbol)
	return t
}

func letterish(c byte) bool { return class[c]&isLetter != 0 || c >= 0x80 }

// digitsFrom counts the digits of s at i, at most limit.
func digitsFrom(s []byte, i, limit int) int {
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

// isStop says whether a comma, a full stop or the like of Chinese and Japanese
// ends at i: they stand where others write a blank.
func isStop(s []byte, i int) bool {
	if i < 3 || s[i-1] < 0x80 {
		return false
	}
	switch string(s[i-3 : i]) {
	case "、", "。", "，", "！", "？", "：", "；":
		return true
	}
	return false
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

func isFold(w []byte, text string) bool {
	if len(w) != len(text) {
		return false
	}
	for i := range w {
		if lower(w[i]) != text[i] {
			return false
		}
	}
	return true
}

func endsFold(w []byte, text string) bool {
	return len(w) >= len(text) && isFold(w[len(w)-len(text):], text)
}

func unhex(c byte) byte {
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

func hexByte(s []byte, i int) (byte, bool) {
	if len(s) < i+2 {
		return 0, false
	}
	hi, lo := unhex(s[i]), unhex(s[i+1])
	return hi<<4 | lo, hi < 16 && lo < 16
}

func indexByte(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// gate tells in one look whether a list holds a word of a first byte and a
// length: what is not in it need not be compared.
type gate [256]uint32

func (g *gate) add(word string) { g[word[0]|0x20] |= 1 << len(word) }

func (g *gate) may(first byte, n int) bool { return n < 32 && g[first|0x20]&(1<<n) != 0 }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }
