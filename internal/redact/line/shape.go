// Package line tells whether a value without quotes is code or a setting, by what it looks
// like, by its line and by the lines next to it. In source code such a value is a name, a
// call or a type and never a secret; in a file of settings it may be one.
package line

import (
	"bytes"
	"math/bits"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// reach is the number of bytes before a name and after a value in which their lines and
// the lines next to them are read.
const reach = 200

// Shape is what a value without quotes looks like.
type Shape uint8

const (
	Other  Shape = iota // no name in code looks like that
	Word                // letters
	Name                // letters in several words: rawValue, DEFAULT_VALUE
	Number              // digits, and units after them
	Mixed               // letters and digits, as a name in code may have
	Path                // names with dots and arrows between them
	Call                // a name and a bracket, or an operator
)

// HasDigit reports whether a digit is in v.
func HasDigit(v []byte) bool { return bytes.ContainsAny(v, "0123456789") }

// ShapeOf returns the Shape of a value that tail follows on its line.
func ShapeOf(v, tail []byte) Shape {
	c := v[0]
	if char.Class[c]&char.Digit != 0 {
		return numberShape(v)
	}
	i := 0
	for i < len(v) && char.IndexByte("&*!@-+~(:.[{^?\\", v[i]) >= 0 {
		i++
	}
	if isLiteral(v) {
		return Other
	}
	if i > 0 && (char.IndexByte("([{", c) >= 0 || i == len(v)) {
		return Call
	}
	if i == len(v) || char.Class[v[i]]&char.Letter == 0 && v[i] != '_' && v[i] != '$' {
		return Other
	}
	n, segments, e := 0, 1, i
	words := false
	for ; e < len(v); e++ {
		switch c := v[e]; {
		case char.Class[c]&char.Digit != 0:
			n++
		case char.Class[c]&char.Alnum != 0, c == '$', c == '#':
			words = words || e > i && char.Class[c]&char.Upper != 0 && char.Class[v[e-1]]&char.Lower != 0 ||
				e > i+1 && char.Class[c]&char.Lower != 0 && isCapital(v[e-1]) && isCapital(v[e-2])
		case c == '_':
			words = true
		default:
			w := jointLen(v[e:])
			if w == 0 || e+w >= len(v) || char.Class[v[e+w]]&char.Letter == 0 && char.IndexByte("_#$", v[e+w]) < 0 {
				return endShape(v[i:], e-i, n, tail)
			}
			segments++
			e += w - 1
		}
	}
	switch {
	case len(tail) > 0 && tail[0] == '(':
		return Call
	case len(tail) > 0 && tail[0] == '<' && len(v)-i > 1 && char.Class[v[i]]&char.Upper != 0 && len(tail) > 1 &&
		char.Class[tail[1]]&char.Letter != 0:
		return Call
	case segments > 1:
		return Path
	case i > 0 && n == 0:
		return Call
	case i > 0:
		return Other
	case n > 0 && words && n*8 <= len(v) && char.Class[v[len(v)-1]]&char.Digit == 0:
		return Name
	case n > 0:
		return Mixed
	case words:
		return Name
	}
	return Word
}

// isLiteral reports whether v has signs that no expression has together: four kinds of them, or
// a bracket that one of another kind closes.
func isLiteral(v []byte) bool {
	const signs = "!#$%^~{}[]?;*@+=&|<>"
	if bytes.ContainsAny(v, "\"'`") {
		return false
	}
	kinds, odd, crossed := uint32(0), false, false
	var open [8]byte
	deep := 0
	for _, c := range v {
		switch c {
		case '(', '[', '{':
			open[deep&7] = c
			deep++
		case ')', ']', '}':
			if deep--; deep >= 0 {
				crossed = crossed || c != ClosingBracket(open[deep&7])
			}
			deep = max(deep, 0)
		}
		if n := char.IndexByte(signs, c); n >= 0 {
			kinds |= 1 << n
		}
		odd = odd || char.IndexByte("#%^~", c) >= 0
	}
	return crossed || odd && bits.OnesCount32(kinds) > 3 && !bytes.ContainsAny(v, "(),")
}

// fragments are in code and in expressions of other tools, not in words of settings.
var fragments = [...]string{"===", "!==", "})", "){", ").*", "&&!", "||!", ":!0", ":!1"}

// IsFragment reports whether a value without quotes is a part of code: a lambda, a negative number, a name before a
// colon, a type with a flag (flags.2?true).
func IsFragment(v, tail []byte) bool {
	last := v[len(v)-1]
	switch {
	case bytes.HasPrefix(v, []byte("->")), v[0] == '-' && len(v) > 1 && len(v) < 12 &&
		len(bytes.TrimLeft(v[1:], "0123456789abcdefx.")) == 0:
		return true
	case last == ':' || len(tail) > 0 && tail[0] == ':':
		return !HasDigit(v)
	case bytes.HasPrefix(v, []byte(`\`)) || bytes.HasPrefix(v, []byte("###")):
		return true
	}
	if len(v) > 4 && v[1] == '.' && v[3] == ':' && char.Class[v[0]]&char.Class[v[2]]&char.Digit != 0 {
		return true // urn:ietf:wg:oauth:2.0:oob
	}
	for _, t := range fragments {
		if bytes.Contains(v, []byte(t)) {
			return true
		}
	}
	flag := bytes.IndexByte(v, '?')
	return flag > 2 && flag+1 < len(v) && char.Class[v[flag-1]]&char.Digit != 0 && v[flag-2] == '.' &&
		char.Class[v[flag+1]]&char.Letter != 0
}

// ClosingBracket returns the bracket that closes one.
func ClosingBracket(c byte) byte {
	if c == '(' {
		return ')'
	}
	return c + 2
}

// jointLen returns the length of what joins two names in code: ".", "->", "::", "?.", "!.".
func jointLen(s []byte) int {
	switch {
	case s[0] == '.' || s[0] == '\\':
		return 1
	case len(s) > 1 && (string(s[:2]) == "->" || string(s[:2]) == "::" || string(s[:2]) == "?." ||
		string(s[:2]) == "!."):
		return 2
	}
	return 0
}

// endShape returns the Shape of v, a name of e bytes with digits digits in it and a sign
// after it.
func endShape(v []byte, e, digits int, tail []byte) Shape {
	rest := v[e+1:]
	switch v[e] {
	case '(', '[', '{':
		closer := ClosingBracket(v[e])
		if digits*6 <= e || bytes.IndexByte(rest, closer) >= 0 || bytes.IndexByte(tail, closer) >= 0 || len(rest) == 0 {
			return Call
		}
	case '?', '!', '*', '&':
		if digits == 0 && (len(rest) == 0 || char.IndexByte("):,", rest[0]) >= 0) {
			return Call // a type that may be absent
		}
		if v[e] != '!' && digits == 0 && len(rest) > 1 && (rest[0] == v[e] || rest[0] == '.') {
			return Call
		}
	case '|', '+', '=':
		if len(rest) > 0 && char.IsQuote(rest[0]) || digits == 0 && v[e] != '+' && len(rest) > 1 && rest[0] == v[e] &&
			char.Class[rest[1]]&char.Letter != 0 {
			return Call
		}
	case ')', '}', ']', ';', ',', '<':
		return Call
	}
	return Other
}

// numberShape tells a number, in any base and with a unit, from what only begins as one.
func numberShape(v []byte) Shape {
	if len(v) > 2 && v[0] == '0' && v[1]|0x20 == 'x' {
		if len(v) <= 2+16+1 {
			return Number
		}
		return Other
	}
	n := char.DigitsFrom(v, 0, len(v))
	if n == len(v) {
		return Number
	}
	for _, c := range v[n:] {
		if char.Class[c]&(char.Lower|char.Digit) == 0 && char.IndexByte("._*", c) < 0 {
			return Other
		}
	}
	if v[n] == '.' || v[n] == '*' || v[n] == '_' || len(v)-n == 1 {
		return Number
	}
	return Other
}

// types are what a name is declared as, in any case, and words of code.
var types = [...]string{
	"str", "string", "int", "integer", "bool", "boolean", "bytes", "byte", "text", "char", "varchar", "object",
	"number", "any", "optional",
	"secretstr", "await", "new", "function", "lambda", "self", "this", "var", "let", "const", "return", "struct",
	"interface", "async", "typeof",
	"not", "list", "array", "map", "dict", "set", "tuple", "void", "unknown", "never", "uuid", "float", "double",
	"long", "charsequence", "func",
	"fn", "class", "uint8array", "static", "else", "super", "nullptr", "false", "true", "none", "null", "nil",
	"undefined",
}

var typeGate = typeGates()

func typeGates() (g char.WordGate) {
	for _, t := range types {
		g.Add(t)
	}
	return g
}

// IsType reports whether v is a type, or a word of code, rather than a value.
func IsType(v []byte) bool {
	for len(v) > 0 && char.IndexByte("?&*!", v[len(v)-1]) >= 0 {
		v = v[:len(v)-1]
	}
	for len(v) > 0 && char.IndexByte("?&*", v[0]) >= 0 {
		v = v[1:]
	}
	if len(v) == 0 || !typeGate.May(v[0], len(v)) {
		return false
	}
	for _, t := range types {
		if char.EqualFold(v, t) {
			return true
		}
	}
	return false
}

// proseStarts are words that begin what a sentence says about a secret.
var proseStarts = [...]string{
	"the", "a", "an", "is", "was", "are", "see", "not", "must", "should", "will", "has", "can", "cannot",
	"please", "ask", "your", "our", "their", "my",
	"of", "for", "to", "in", "on", "at", "by", "from", "with", "and", "or", "no", "never", "always", "set", "use",
	"enter", "this", "that", "it", "any",
	"each", "every", "when", "if", "as", "change", "changed", "reset", "wrong", "incorrect", "which", "what",
	"how", "only", "flag", "option", "field",
}

var proseGate = proseGates()

func proseGates() (g char.WordGate) {
	for _, t := range proseStarts {
		g.Add(t)
	}
	return g
}

// IsProseWord reports whether a value is the first word of a sentence that continues in tail.
func IsProseWord(v, tail []byte) bool {
	if len(tail) < 3 || tail[0] != ' ' || char.Class[tail[1]]&char.Letter == 0 || !proseGate.May(v[0], len(v)) {
		return false
	}
	for _, t := range proseStarts {
		if char.EqualFold(v, t) {
			return true
		}
	}
	return false
}

// IsTestResult reports whether the name at start of s, before which at most four bytes are, is a result that a program
// of tests prints before the name of a test at the end of s: "--- PASS: TestX/y", and "PASS: gas/i386/relax-5" at the
// begin of a line.
func IsTestResult(s []byte, start int) bool {
	const head = "PASS: "
	before, test, ok := bytes.Cut(s, []byte(head))
	if !ok || len(before) != start {
		return false
	}
	if start > 0 && before[start-1] != '\n' {
		return string(before) == "--- "
	}
	return bytes.ContainsAny(test, "/-._") && !bytes.ContainsAny(test, "!#$%&*+?^~")
}
