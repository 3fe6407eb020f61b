package mapping

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// coding is how a text is encoded. encode writes another text in the same way.
type coding struct {
	decoded []byte
	encode  func(text []byte) []byte
	// isWhole says that the decoded text is a value itself, although none that is known.
	isWhole bool
	// isCode says that the text is base64 or hexadecimal.
	isCode bool
}

// listCodings returns the ways in which a text may be an encoding of another.
func listCodings(text []byte) (list []coding) {
	for _, read := range [...]func([]byte) (coding, bool){readHex, readBase64, readEscapes, readByteList} {
		if c, ok := read(text); ok && !bytes.Equal(c.decoded, text) {
			list = append(list, c)
		}
	}
	return list
}

// isText reports whether decoded bytes are text that may hold a value.
func isText(b []byte) bool {
	return len(b) >= 4 && utf8.Valid(b) && bytes.IndexFunc(b, func(c rune) bool {
		return c < ' ' && c != '\n' && c != '\r' && c != '\t'
	}) < 0
}

func readHex(text []byte) (coding, bool) {
	if len(text) < 2*minAgain {
		return coding{}, false
	}
	d, err := hex.AppendDecode(nil, text)
	if err != nil || !isText(d) {
		return coding{}, false
	}
	isUpper := bytes.ContainsAny(text, "ABCDEF")
	return coding{decoded: d, isCode: true, encode: func(b []byte) []byte {
		out := hex.AppendEncode(nil, b)
		if isUpper {
			out = bytes.ToUpper(out)
		}
		return out
	}}, true
}

// readBase64 reads base64 of either alphabet, also in lines.
func readBase64(text []byte) (coding, bool) {
	code, wrap := text, 0
	eol := []byte("\n")
	if wrap = bytes.IndexByte(text, '\n'); wrap >= 0 {
		if code = bytes.ReplaceAll(text, eol, nil); wrap > 0 && text[wrap-1] == '\r' {
			eol, wrap, code = []byte("\r\n"), wrap-1, bytes.ReplaceAll(code, []byte("\r"), nil)
		}
	}
	plain := bytes.TrimRight(code, "=")
	if len(plain) < minEncoded || len(code)-len(plain) > 2 {
		return coding{}, false
	}
	alphabet := base64.RawStdEncoding
	if bytes.ContainsAny(plain, "-_") {
		alphabet = base64.RawURLEncoding
	}
	d, err := alphabet.Strict().AppendDecode(nil, plain)
	if err != nil || !isText(d) {
		return coding{}, false
	}
	isPadded := len(plain)%4 == 0 && alphabet == base64.RawStdEncoding || len(plain) < len(code)
	return coding{decoded: d, isCode: true, encode: func(b []byte) []byte {
		out := alphabet.AppendEncode(nil, b)
		for isPadded && len(out)%4 != 0 {
			out = append(out, '=')
		}
		return wrapLines(out, wrap, eol)
	}}, true
}

// wrapLines breaks a text into lines of that width; none for less than 1.
func wrapLines(text []byte, width int, eol []byte) []byte {
	if width < 1 {
		return text
	}
	var out []byte
	for len(text) > width {
		out = append(append(out, text[:width]...), eol...)
		text = text[width:]
	}
	return append(out, text...)
}

// readEscapes reads escapes of code, of HTML and of URLs. Those of one kind are enough, as programs write them.
func readEscapes(text []byte) (coding, bool) {
	var d []byte
	var escaped, raw [256]bool
	var style func(c byte) string
	hasLetter, rawLetter, hasRaw := false, false, false
	for i := 0; i < len(text); {
		b, n, write := readEscape(text[i:])
		if n == 0 {
			raw[text[i]], hasRaw = true, true
			rawLetter = rawLetter || isLetter(text[i]) || isDigit(text[i])
			d = append(d, text[i])
			i++
			continue
		}
		if style == nil || n > 2 && bytes.ContainsAny(text[i+n-2:i+n], "abcdefABCDEF") {
			style = write
		}
		for _, c := range b {
			escaped[c] = true
			hasLetter = hasLetter || isLetter(c) || isDigit(c) || c >= 0x80
		}
		d, i = append(d, b...), i+n
	}
	if style == nil || !isText(d) {
		return coding{}, false
	}
	return coding{decoded: d, isWhole: hasLetter || text[0] == '%' || bytes.IndexByte(text, '%') > 0,
		encode: func(b []byte) (out []byte) {
			for _, c := range b {
				isWord := isLetter(c) || isDigit(c)
				if !hasRaw || isWord && hasLetter && !rawLetter || !isWord && escaped[c] && !raw[c] {
					out = append(out, style(c)...)
				} else {
					out = append(out, c)
				}
			}
			return out
		}}, true
}

// readEscape reads the escape that text begins with, and returns its meaning, its length and how another byte
// is escaped so; 0 for none.
func readEscape(text []byte) (b []byte, n int, style func(c byte) string) {
	switch {
	case text[0] == '%' && escapeLen(text) == 3:
		format := "%02X"
		if bytes.ContainsAny(text[1:3], "abcdef") {
			format = "%02x"
		}
		return []byte{parseHex(text[1:3])}, 3, formatStyle("%", format[2:], 2)
	case text[0] == '&':
		end := bytes.IndexByte(text[:min(len(text), 12)], ';')
		if end < 0 {
			return nil, 0, nil
		}
		ref := string(text[:end+1])
		if got := html.UnescapeString(ref); got != ref {
			return []byte(got), end + 1, func(c byte) string {
				if s := html.EscapeString(string(rune(c))); len(s) > 1 && ref[1] != '#' {
					return s
				}
				return "&#" + strconv.Itoa(int(c)) + ";"
			}
		}
	case text[0] != '\\' || len(text) < 2:
	case text[1] == 'x' && len(text) > 3 && escapeLen(append([]byte("%"), text[2:4]...)) == 3:
		return []byte{parseHex(text[2:4])}, 4, formatStyle(`\x`, "2x", 2)
	case text[1] == 'u' && escapeLen(text) == 6:
		c, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // of hexadecimal digits
		return []byte(string(rune(c))), 6, formatStyle(`\u`, "4x", 4)
	case strings.IndexByte(`.+*?^$()[]{}|/"'\-@!#& `, text[1]) >= 0:
		return text[1:2], 2, func(c byte) string { return `\` + string(rune(c)) }
	}
	return nil, 0, nil
}

func parseHex(digits []byte) byte {
	c, _ := strconv.ParseUint(string(digits), 16, 8) // of two hexadecimal digits
	return byte(c)
}

// formatStyle returns how a byte is written behind a sign, in that many hexadecimal digits.
func formatStyle(sign, format string, width int) func(c byte) string {
	isUpper := strings.HasSuffix(format, "X")
	return func(c byte) string {
		s := strconv.FormatUint(uint64(c), 16)
		if isUpper {
			s = strings.ToUpper(s)
		}
		return sign + strings.Repeat("0", width-len(s)) + s
	}
}

// readByteList reads bytes as code lists them: 0x51, 0x7a, or in decimal.
func readByteList(text []byte) (coding, bool) {
	var d []byte
	var between []byte
	isHex, isUpper := bytes.HasPrefix(text, []byte("0x")), false
	for i := 0; i < len(text); {
		start := i
		if isHex {
			if i += 2; !bytes.HasPrefix(text[start:], []byte("0x")) {
				return coding{}, false
			}
		}
		digits := i
		for i < len(text) && (isDigit(text[i]) || isHex && isLetter(text[i])) {
			isUpper = isUpper || text[i] >= 'A' && text[i] <= 'F'
			i++
		}
		base := 10
		if isHex {
			base = 16
		}
		c, err := strconv.ParseUint(string(text[digits:i]), base, 8)
		if err != nil {
			return coding{}, false
		}
		d = append(d, byte(c))
		gap := i
		for i < len(text) && bytes.IndexByte([]byte(", \t\r\n"), text[i]) >= 0 {
			i++
		}
		if i == gap && i < len(text) {
			return coding{}, false
		}
		if between == nil && i > gap {
			between = text[gap:i]
		}
	}
	if len(d) < minEncoded || !isText(d) {
		return coding{}, false
	}
	between = bytes.Clone(between)
	return coding{decoded: d, encode: func(b []byte) (out []byte) {
		for i, c := range b {
			if i > 0 {
				out = append(out, between...)
			}
			if !isHex {
				out = strconv.AppendUint(out, uint64(c), 10)
				continue
			}
			out = append(out, formatStyle("0x", map[bool]string{true: "2X", false: "2x"}[isUpper], 2)(c)...)
		}
		return out
	}}, true
}

// replaceDecoded returns the placeholder of a text that is an encoding of a value, or of a text with values, in the
// same encoding, nil for any other text.
func (r *Request) replaceDecoded(rule string, text []byte) []byte {
	if len(text) > maxEncodedRun || r.depth >= maxDecodings {
		return nil
	}
	for _, c := range listCodings(text) {
		if r.isPlaceholder(c.decoded) {
			return text // the model encoded it
		}
		inner, isRestored := r.replaceInner(rule, c)
		if inner == nil {
			continue
		}
		if p := c.encode(inner); r.addPlaceholder(ruleAgain, text, p, isRestored) {
			return p
		}
	}
	if joined, p := r.joinPieces(rule, text); joined != nil {
		if r.addPlaceholder(ruleAgain, text, p, true) {
			return p
		}
	}
	return nil
}

// maxDecodings bounds how often an encoded text is decoded.
const maxDecodings = 4

// replaceInner returns a decoded text with placeholders, nil if it has nothing to replace. isRestored is false if
// it may not be restored.
func (r *Request) replaceInner(rule string, c coding) (inner []byte, isRestored bool) {
	if p, known := r.findPlaceholder(rule, c.decoded); known {
		return p, r.isRestorable(p)
	}
	r.depth++
	defer func() { r.depth-- }()
	if c.isWhole && rule != ruleAgain {
		return r.Replace(rule, c.decoded), true
	}
	if r.search != nil {
		if out := r.search(c.decoded); out != nil && !bytes.Equal(out, c.decoded) {
			return out, true
		}
	}
	// The value of a Secret of Kubernetes, or of a header: a program decodes it and shows it without its name.
	value := bytes.TrimRight(c.decoded, "\r\n")
	if c.isCode && isNamed(rule) && isOneWord(value) {
		p := r.Replace(rule, value)
		return append(bytes.Clone(p), c.decoded[len(value):]...), r.isRestorable(p)
	}
	return nil, false
}

// isNamed reports whether a rule finds a value by what stands next to it, not by its form.
func isNamed(rule string) bool {
	switch rule {
	case "secret.assignment", "secret.field", "secret.bearer", "secret.basic", "secret.url", "secret.connection":
		return true
	}
	return false
}

// isOneWord reports whether a decoded text is visible ASCII without a blank, and long enough to be sought.
func isOneWord(text []byte) bool {
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(text) >= minAgain
}

// maxUser is the length of the longest name of a user before a password, in bytes.
const maxUser = 64

// replaceUserInfo returns the placeholder of a name and password, joined by a colon, that has one for each, so that
// both are known alone as well; nil for any other text.
func (r *Request) replaceUserInfo(rule string, text []byte) []byte {
	user, password, found := bytes.Cut(text, []byte(":"))
	if !found || !isOneWord(password) || len(user) > maxUser || bytes.ContainsFunc(user, isNoUserName) {
		return nil
	}
	switch rule {
	case "secret.url", "secret.connection", "secret.basic":
	case "secret.assignment": // also a password that has a colon
		if len(user) == 0 || !isLetter(user[0]) || bytes.IndexByte(password, ':') >= 0 {
			return nil
		}
	default:
		return nil
	}
	var out []byte
	isRestored := true
	if len(user) > 0 {
		out = bytes.Clone(r.Replace(rule, user))
		isRestored = r.isRestorable(out)
	}
	p := r.Replace(rule, password)
	isRestored = isRestored && r.isRestorable(p)
	out = append(append(out, ':'), p...)
	if !r.addPlaceholder(rule, text, out, isRestored) {
		return nil
	}
	return out
}

func isNoUserName(c rune) bool {
	return c >= 0x80 || !isLetter(byte(c)) && !isDigit(byte(c)) && !strings.ContainsRune("._-@+", c)
}

// piece is a value, or what follows the prefix of one, and the same part of its placeholder.
type piece struct{ value, placeholder string }

// joinPieces returns the known secret that a text has with signs between its letters, as code breaks a long string,
// and its placeholder with the same signs. The prefix of a token may be missing.
func (r *Request) joinPieces(rule string, text []byte) (value, placeholder []byte) {
	if rule != ruleAgain {
		return nil, nil
	}
	p := r.findByLetters(text)
	if p.value == "" || len(p.placeholder) != len(p.value) {
		return nil, nil
	}
	at := 0
	out := bytes.Clone(text)
	for i, c := range text {
		if at < len(p.value) && c == p.value[at] {
			out[i] = p.placeholder[at]
			at++
		}
	}
	if at < len(p.value) {
		return nil, nil
	}
	return []byte(p.value), out
}

// findByLetters returns the value of the session that has the same letters and digits as text.
func (r *Request) findByLetters(text []byte) piece {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.letters == nil {
		r.letters = map[string]piece{}
		for _, e := range r.s.order {
			if len(e.value) > maxAgain || e.oneWay || e.rule == ruleAgain {
				continue
			}
			r.letters[keepMixed([]byte(e.value))] = piece{e.value, e.placeholder}
			if tail := e.withoutPrefix(); tail != "" {
				r.letters[keepMixed([]byte(tail))] = piece{tail, e.placeholder[e.kept:]}
			}
		}
	}
	return r.letters[keepMixed(text)]
}

// keepMixed returns the letters and digits of a text.
func keepMixed(text []byte) string {
	return string(bytes.Map(func(c rune) rune {
		if c < 0x80 && (isLetter(byte(c)) || isDigit(byte(c))) {
			return c
		}
		return -1
	}, text))
}
