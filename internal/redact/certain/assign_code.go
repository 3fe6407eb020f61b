package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// isReference says whether a value only names another: $DB_PASSWORD, ${x},
// {{ .Values.x }}, ****, a comment's sign.
func isReference(v []byte) bool {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return true
	}
	switch v[0] {
	case '$':
		return isVariable(v[1:])
	case '{':
		return len(v) > 1 && v[1] == '{'
	case '*', '#', '/', '.', '-', 'x', 'X':
		for _, c := range v {
			if c != v[0] {
				return false
			}
		}
		return len(v) > 2 || v[0] == '#' || v[0] == '/' || v[0] == '-'
	}
	return false
}

// isVariable judges what stands behind "$": a name in capitals, or something
// in braces. A password may begin with the sign, so that small letters are
// not enough.
func isVariable(v []byte) bool {
	if len(v) < 2 {
		return false
	}
	if v[0] == '{' {
		inner := bytes.TrimLeft(v, "{$ ")
		for _, c := range inner {
			if char.Class[c]&(char.Ident|char.Blank) == 0 && char.IndexByte("}:?[]", c) < 0 {
				return false
			}
		}
		return true
	}
	for _, c := range v {
		if char.Class[c]&(char.Upper|char.Digit) == 0 && c != '_' {
			return false
		}
	}
	return char.Class[v[0]]&char.Digit == 0
}

// sources are what code reads a secret from.
var sources = [...]string{"process.env.", "os.environ", "import.meta.env.", "secrets.", "vars.", "env.", "settings.", "config.", "self.", "this.", "args.", "opts.", "options.", "var."}

// isCode says whether a value without quotes is an expression: a call, an
// index, a name that ends in what code reads from.
func isCode(v []byte) bool {
	e := 0
	for e < len(v) && (char.Class[v[e]]&(char.Alnum) != 0 || v[e] == '.' || v[e] == '_') {
		e++
	}
	if e == 0 || char.Class[v[0]]&char.Letter == 0 && v[0] != '_' {
		return false
	}
	if e < len(v) {
		rest := v[e+1:]
		switch v[e] {
		case '(':
			return len(rest) == 0 || char.IsQuote(rest[0]) || rest[0] == ')'
		case '[':
			return len(rest) == 0 || char.IsQuote(rest[0]) || char.EqualFold(v[:e], "optional") ||
				char.EqualFold(v[:e], "list")
		}
		return false
	}
	for _, s := range sources {
		if !bytes.HasPrefix(v, []byte(s)) || len(v) == len(s) {
			continue
		}
		var have uint16
		for _, c := range v[len(s):] {
			have |= char.Class[c]
		}
		return have&char.Digit == 0
	}
	return false
}

// types are what a name is declared as, in any case, and words of code.
var types = [...]string{
	"str", "string", "int", "integer", "bool", "boolean", "bytes", "byte", "text", "char", "varchar", "object", "number", "any", "optional",
	"secretstr", "await", "new", "function", "lambda", "self", "this", "var", "let", "const", "return", "struct", "interface",
}

var typeGate = typeGates()

func typeGates() (g char.WordGate) {
	for _, t := range types {
		g.Add(t)
	}
	return g
}

func isType(v []byte) bool {
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

// isNoise says whether a cookie's value is prose: a cookie has a "=", or is
// one word.
func isNoise(v []byte) bool {
	return bytes.IndexByte(v, '=') < 0 && bytes.IndexByte(bytes.TrimSpace(v), ' ') >= 0
}
