package line

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// Line is the line of a value, and where the lines next to it are.
type Line struct {
	s []byte
	// Read is the end of what was read of s.
	Read int

	// Head is the line before the name, without its indentation, as far as it is
	// read; Begun reports whether all of it is. Tail is what follows the value.
	Head, Tail []byte
	Begun      bool
	// start and end are where the line begins and endsWith, as far as it is read.
	start, end int
	indent     int
}

// Around reads the line of s that has a name at name and its value at [v, end).
func Around(s []byte, name, end int) Line {
	low := max(0, name-reach)
	l := Line{s: s, start: low}
	if n := bytes.LastIndexByte(s[low:name], '\n'); n >= 0 {
		l.start, l.Begun = low+n+1, true
	} else {
		l.Begun = low == 0
	}
	l.end = min(len(s), end+reach)
	if n := bytes.IndexByte(s[end:l.end], '\n'); n >= 0 {
		l.end = end + n
	}
	l.Read = l.end
	text := l.start
	for text < name && char.Class[s[text]]&char.Blank != 0 {
		text++
	}
	l.indent = text - l.start
	l.Head, l.Tail = s[text:name], bytes.TrimSuffix(s[end:l.end], []byte("\r"))
	return l
}

// settingHeads are what may be before a name on a line of settings or of a shell.
var settingHeads = [...]string{"export ", "set ", "env ", "arg ", "-e ", "--env ", "--build-arg ", "- ", "setx ",
	"declare -x ", "run ", "sudo "}

// IsSetting reports whether a line is one of settings, a query or a flag, in which a
// value without quotes is one.
func (l *Line) IsSetting(name, v int, sep byte) bool {
	if sep != '=' || l.s[v-1] != '=' {
		return false
	}
	if l.s[name] == '-' || name > 0 && char.IndexByte("?&-", l.s[name-1]) >= 0 {
		return true
	}
	if len(l.Tail) > 0 && l.Tail[0] == '&' && (len(l.Tail) < 2 || l.Tail[1] != '&') {
		return true
	}
	eq := v - 1
	if !l.Begun || name >= eq {
		return false
	}
	capitals := true
	for _, c := range l.s[name:eq] {
		switch {
		case char.Class[c]&char.Lower != 0:
			capitals = false
		case char.Class[c]&char.Ident == 0:
			return false
		}
	}
	head := trimHeads(l.Head)
	if len(l.Tail) > 0 && bytes.IndexByte([]byte(",);({"), l.Tail[0]) >= 0 {
		return false
	}
	switch {
	case len(head) == 0:
		return capitals || l.indent == 0
	case capitals:
		return isSettings(head)
	}
	return false
}

// trimHeads returns head without what may be before a name on a line of settings.
func trimHeads(head []byte) []byte {
	for n := 0; n < 4; n++ {
		before := len(head)
		for _, h := range settingHeads {
			if len(head) >= len(h) && char.EqualFold(head[:len(h)], h) {
				head = head[len(h):]
			}
		}
		if len(head) == before {
			break
		}
	}
	return head
}

// BeginsWithName reports whether nothing but what settings have there is before the name: export, a dash
// of a list, the names above one that has dots.
func (l *Line) BeginsWithName() bool {
	if !l.Begun {
		return false
	}
	for _, c := range trimHeads(l.Head) {
		if char.Class[c]&char.Ident == 0 && c != '.' {
			return false
		}
	}
	return true
}

// HasSettingNext reports whether a line next to it is one of settings, and none is code.
func (l *Line) HasSettingNext() bool {
	before, after := l.readNeighbours()
	return !isCodeLine(before) && !isCodeLine(after) && (isSettingLine(before) || isSettingLine(after))
}

// isSettings reports whether head is made of NAME=value, each with a blank after it, as
// a shell has them before a command, or "docker run -e".
func isSettings(head []byte) bool {
	if head[len(head)-1] != ' ' && !char.IsQuote(head[len(head)-1]) || bytes.IndexByte(head, '(') >= 0 {
		return false
	}
	return bytes.IndexByte(head, '=') > 0 || bytes.Contains(head, []byte("-e ")) || bytes.Contains(head, []byte("env "))
}

// declarations begin a line of code. What begins no sentence before a colon is first.
var declarations = [...]string{
	"let", "const", "var", "val", "final", "private", "protected", "public", "static", "def", "fn", "func", "fun",
	"function", "readonly", "override",
	"lateinit", "internal", "pub", "export", "class", "struct", "interface", "abstract", "async", "self", "this",
	"type",
	"return", "if", "elif", "elsif", "while", "for", "case", "assert", "await", "my", "our", "local", "else",
	"not", "import", "auto", "unless", "when",
	"int", "string", "char", "void", "expect", "yield", "throw", "raise", "print", "echo", "object", "bool",
	"nonlocal", "global",
}

const beforeColon = 28 // how many of them

// IsCode reports whether what is before a name says that its line is code: a keyword, the
// object whose member it is, the bracket of a call.
func (l *Line) IsCode(name int, sep byte) bool {
	if name > 0 {
		switch c := l.s[name-1]; {
		case c == '$' || c == '@' || c == '>' && l.hasText(name-2, "->") || c == ':' && l.hasText(name-2, "::"):
			return true
		case c == '.' && name > 1 && char.Class[l.s[name-2]]&char.Alnum == 0:
			return name > 1 && char.IndexByte(")]?!", l.s[name-2]) >= 0
		}
	}
	for _, own := range [...]string{"self.", "this.", "cls.", "super."} {
		if l.hasText(name, own) {
			return true
		}
	}
	if len(l.Head) > 0 && l.Begun {
		w := l.Head[:wordLen(l.Head)]
		list := declarations[:]
		if sep == ':' {
			list = declarations[:beforeColon]
		}
		for _, t := range list {
			if string(w) == t {
				return true
			}
		}
	}
	if open := openBracket(l.Head); open > 0 && (char.Class[l.Head[open-1]]&char.Alnum != 0 ||
		l.Head[open-1] == '_' || l.Head[open-1] == '>') {
		return true
	}
	return l.endsWith(";") && !bytes.ContainsAny(l.Head, "=;") || l.isDefined(name)
}

// isDefined reports whether ":=" follows the name at name, as Go and Pascal write it.
func (l *Line) isDefined(name int) bool {
	e := l.skipClass(l.skipClass(name, 64, char.Ident), 8, char.Blank)
	return l.hasText(e, ":=") && char.Class[l.s[name]]&char.Upper == 0
}

func wordLen(s []byte) int {
	n := 0
	for n < len(s) && char.Class[s[n]]&char.Letter != 0 {
		n++
	}
	return n
}

// openBracket returns the index of the last "(" that is not closed in s, or -1.
func openBracket(s []byte) int {
	deep := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')':
			deep++
		case '(':
			if deep--; deep < 0 {
				return i
			}
		}
	}
	return -1
}

// endsWith reports whether nothing but signs of a list follows the value on its line.
func (l *Line) endsWith(signs string) bool {
	t := bytes.TrimRight(l.Tail, " \t")
	return len(t) > 0 && char.IndexByte(signs, t[0]) >= 0 && len(bytes.TrimLeft(t, signs)) == 0
}

// HandsOn reports whether a word is followed by what follows an expression.
func (l *Line) HandsOn() bool {
	return len(l.Tail) > 0 && char.IndexByte(",;)]}?:", l.Tail[0]) >= 0 || l.HasOperator()
}

// IsRemark reports whether the name and the value are in brackets of a sentence: (password: x).
func (l *Line) IsRemark() bool {
	open := openBracket(l.Head)
	return len(l.Tail) > 0 && l.Tail[0] == ')' && open > 0 && l.Head[open-1] == ' '
}

// HasOperator reports whether an operator follows the value.
func (l *Line) HasOperator() bool {
	t := bytes.TrimLeft(l.Tail, " \t")
	if len(t) == 0 {
		return false
	}
	for _, op := range [...]string{
		"||", "&&", "??", "==", "!=", "=>", "->", "<=", ">=", "= ", "+ ", "? ", "| ", "{", "or ", "and ", "if ",
		"else ", "unless ", "as ", "for ", "is not ", "in ", "[", "(",
	} {
		if bytes.HasPrefix(t, []byte(op)) && (char.Class[op[0]]&char.Letter == 0 || len(t) < len(l.Tail)) {
			return op != "(" && op != "[" && op != "in " && op != "for " && op != "if " && op != "and " &&
				op != "or " || len(t) == len(l.Tail) || bytes.ContainsAny(t, "()[]=.:_")
		}
	}
	return false
}

// IsSpaced reports whether there are blanks on both sides of the sign before v, as code
// has them.
func (l *Line) IsSpaced(v int) bool {
	return v > 2 && char.Class[l.s[v-1]]&char.Blank != 0
}

// readNeighbours returns the lines before and after it, without the blanks around them, as far
// as they are read, and whether there is one.
func (l *Line) readNeighbours() (before, after []byte) {
	if l.Begun && l.start > 0 {
		e := l.start - 1
		for e > 0 && e > l.start-8 && char.Class[l.s[e-1]]&char.Space != 0 {
			e--
		}
		b := e
		for b > max(0, l.start-reach) && l.s[b-1] != '\n' {
			b--
		}
		before = bytes.TrimSpace(l.s[b:e])
	}
	if l.end < len(l.s) && l.s[l.end] == '\n' {
		b := l.skipClass(l.end, 16, char.Space)
		e := min(len(l.s), b+reach)
		if n := bytes.IndexByte(l.s[b:e], '\n'); n >= 0 {
			e = b + n
		}
		l.Read = max(l.Read, e)
		after = bytes.TrimSpace(l.s[b:e])
	}
	return before, after
}

// IsAmongCode reports whether a line next to it is code.
func (l *Line) IsAmongCode() bool {
	before, after := l.readNeighbours()
	return isCodeLine(before) || isCodeLine(after)
}

// IsListed reports whether its line is among settings or alone: no line next to it is
// code, and one is a setting or missing.
func (l *Line) IsListed() bool {
	before, after := l.readNeighbours()
	if isCodeLine(before) || isCodeLine(after) || len(l.Head) > 0 || len(bytes.TrimSpace(l.Tail)) > 0 {
		return false
	}
	return isSettingLine(before) || isSettingLine(after) || len(before)+len(after) == 0
}

// isCodeLine reports whether a line is code by how it endsWith or begins.
func isCodeLine(s []byte) bool {
	if len(s) == 0 {
		return false
	}
	switch s[len(s)-1] {
	case '{', ';', '(', ')', '}', ',', '\\':
		return true
	case ':':
		if bytes.HasSuffix(s, []byte("):")) {
			return true
		}
	}
	switch s[0] {
	case '@', '}', ')', '*':
		return true
	case '/':
		return len(s) > 1 && (s[1] == '/' || s[1] == '*')
	}
	w := s[:wordLen(s)]
	for _, t := range declarations {
		if string(w) == t {
			return len(w) < len(s) && char.Class[s[len(w)]]&(char.Blank) != 0 || s[min(len(w), len(s)-1)] == '.'
		}
	}
	switch string(w) {
	case "from", "package", "end", "try", "except", "with", "use", "using", "require", "include", "del", "pass",
		"break", "continue", "module", "begin":
		return true
	}
	return bytes.IndexByte(s, '(') > 0 && bytes.IndexByte(s, ')') > 0 && bytes.IndexByte(s, '=') > 0
}

// isSettingLine reports whether a line is one of settings: a section, a name and a value,
// a remark.
func isSettingLine(s []byte) bool {
	if len(s) == 0 {
		return false
	}
	switch s[0] {
	case '[', '#', ';', '-', '!':
		return true
	}
	n := 0
	for n < len(s) && char.Class[s[n]]&char.Ident != 0 {
		n++
	}
	rest := bytes.TrimLeft(s[n:], " \t")
	return n > 0 && len(rest) > 0 && (rest[0] == ':' || rest[0] == '=')
}

func isCapital(c byte) bool { return char.Class[c]&char.Upper != 0 }

func (l *Line) hasText(i int, text string) bool {
	return i >= 0 && i+len(text) <= len(l.s) && string(l.s[i:i+len(text)]) == text
}

// skip returns the end of at most n bytes of a class from i on.
func (l *Line) skipClass(i, n int, bits uint16) int {
	for ; n > 0 && i < len(l.s) && char.Class[l.s[i]]&bits != 0; n-- {
		i++
	}
	return i
}
