package redact

import "bytes"

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
			if class[c]&(isIdent|isBlank) == 0 && indexByte("}:?[]", c) < 0 {
				return false
			}
		}
		return true
	}
	for _, c := range v {
		if class[c]&(isUpper|isDigit) == 0 && c != '_' {
			return false
		}
	}
	return class[v[0]]&isDigit == 0
}

// sources are what code reads a secret from.
var sources = [...]string{"process.env.", "os.environ", "import.meta.env.", "secrets.", "vars.", "env.", "settings.", "config.", "self.", "this.", "args.", "opts.", "options.", "var."}

// isCode says whether a value without quotes is an expression: a call, an
// index, a name that ends in what code reads from.
func isCode(v []byte) bool {
	e := 0
	for e < len(v) && (class[v[e]]&(isAlnum) != 0 || v[e] == '.' || v[e] == '_') {
		e++
	}
	if e == 0 || class[v[0]]&isLetter == 0 && v[0] != '_' {
		return false
	}
	if e < len(v) {
		rest := v[e+1:]
		switch v[e] {
		case '(':
			return len(rest) == 0 || isQuote(rest[0]) || rest[0] == ')'
		case '[':
			return len(rest) == 0 || isQuote(rest[0]) || isFold(v[:e], "optional") || isFold(v[:e], "list")
		}
		return false
	}
	for _, s := range sources {
		if !bytes.HasPrefix(v, []byte(s)) || len(v) == len(s) {
			continue
		}
		var have uint16
		for _, c := range v[len(s):] {
			have |= class[c]
		}
		return have&isDigit == 0
	}
	return false
}

// types are what a name is declared as, in any case, and words of code.
var types = [...]string{
	"str", "string", "int", "integer", "bool", "boolean", "bytes", "byte", "text", "char", "varchar", "object", "number", "any", "optional",
	"secretstr", "await", "new", "function", "lambda", "self", "this", "var", "let", "const", "return", "struct", "interface",
}

var typeGate = typeGates()

func typeGates() (g gate) {
	for _, t := range types {
		g.add(t)
	}
	return g
}

func isType(v []byte) bool {
	if len(v) == 0 || !typeGate.may(v[0], len(v)) {
		return false
	}
	for _, t := range types {
		if isFold(v, t) {
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
