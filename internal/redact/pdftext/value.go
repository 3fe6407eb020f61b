package pdftext

import (
	"bytes"
	"strconv"
)

// Values are nil, bool, float64, name, text, list, dict, ref and word.
type (
	name string
	text []byte // a string
	list []any
	dict map[name]any
	ref  struct{ number, generation int }
	word string // an operator or another keyword
)

// lexer reads values.
type lexer struct {
	*budget
	b  []byte
	at int
	// isContent is of content streams, which hold no references and whose values are not kept.
	isContent bool
}

const maxWord = 128 // bytes of a keyword, a name or a number

// classes are the characters that end a word.
var classes = func() (of [256]byte) {
	for _, c := range " \n\r\t\f\x00" {
		of[c] = 's'
	}
	for _, c := range "()<>[]{}/%" {
		of[c] = 'd'
	}
	return of
}()

func isSpace(c byte) bool { return classes[c] == 's' }

func isDelimiter(c byte) bool { return classes[c] == 'd' }

func isRegular(c byte) bool { return classes[c] == 0 }

func (l *lexer) skipSpace() {
	start := l.at
	for ; l.at < len(l.b); l.at++ {
		switch c := l.b[l.at]; {
		case c == '%':
			n := bytes.IndexAny(l.b[l.at:], "\r\n")
			if n < 0 {
				n = len(l.b) - l.at
			}
			l.at = min(l.at+n, len(l.b)-1)
		case !isSpace(c):
			l.spendSteps(l.at - start)
			return
		}
	}
	l.spendSteps(l.at - start)
}

// readValue reads the next value. ok is false at the end, and at a bracket that ends a list or a dict.
func (l *lexer) readValue(depth int) (v any, ok bool) {
	l.skipSpace()
	if l.at >= len(l.b) {
		return nil, false
	}
	if l.spendSteps(8); !l.isContent {
		addTo(&l.values, 1, maxValues)
	}
	switch c := l.b[l.at]; {
	case c == '/':
		l.at++
		return l.readName(), true
	case c == '(':
		return l.readLiteral(), true
	case c == '<' && l.at+1 < len(l.b) && l.b[l.at+1] == '<':
		l.at += 2
		return l.readDict(depth), true
	case c == '<':
		return l.readHex(), true
	case c == '[':
		l.at++
		return l.readList(depth), true
	case c == ']' || c == '>':
		return nil, false
	case isDelimiter(c): // { } )
		l.at++
		return word(c), true
	}
	return l.readWord(), true
}

// readRun returns the regular characters at the offset.
func (l *lexer) readRun() []byte {
	start := l.at
	for l.at < len(l.b) && isRegular(l.b[l.at]) {
		l.at++
	}
	l.spendSteps(l.at - start)
	return l.b[start:l.at]
}

// readWord reads a number, a reference or a keyword.
func (l *lexer) readWord() any {
	run := l.readRun()
	if len(run) > maxWord {
		return word("")
	}
	if c := run[0]; c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.' {
		n, ok := parseNumber(run)
		if !ok {
			return word(run)
		}
		if !l.isContent && c >= '0' && c <= '9' {
			if r, ok := l.readReference(n); ok {
				return r
			}
		}
		return n
	}
	switch string(run) {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	}
	return word(run)
}

// parseNumber reads a number as leniently as viewers do.
func parseNumber(run []byte) (n float64, ok bool) {
	if n, err := strconv.ParseFloat(string(run), 64); err == nil && n > -1e15 && n < 1e15 {
		return n, true
	}
	for len(run) > 1 && (run[0] == '-' || run[0] == '+') && (run[1] == '-' || run[1] == '+') {
		run = run[1:]
	}
	end := 1
	for end < len(run) && (run[end] >= '0' && run[end] <= '9' || run[end] == '.') {
		end++
	}
	n, err := strconv.ParseFloat(string(run[:end]), 64)
	return n, err == nil && n > -1e15 && n < 1e15
}

// readReference reads the rest of "12 0 R".
func (l *lexer) readReference(number float64) (r ref, ok bool) {
	b := l.b[l.at:min(len(l.b), l.at+16)]
	i, generation := 0, 0
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	digits := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		generation = generation*10 + int(b[i]-'0')
		i++
	}
	if i == 0 || i == digits || i-digits > 5 || number != float64(int(number)) {
		return ref{}, false
	}
	space := i
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	if i == space || i >= len(b) || b[i] != 'R' || i+1 < len(b) && isRegular(b[i+1]) {
		return ref{}, false
	}
	l.at += i + 1
	return ref{int(number), generation}, true
}

func (l *lexer) readName() name {
	run := l.readRun()
	run = run[:min(len(run), maxWord)]
	if bytes.IndexByte(run, '#') < 0 {
		return name(run)
	}
	out := make([]byte, 0, len(run))
	for i := 0; i < len(run); i++ {
		if run[i] == '#' && i+2 < len(run) {
			if n, err := strconv.ParseUint(string(run[i+1:i+3]), 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
		}
		out = append(out, run[i])
	}
	return name(out)
}

// readLiteral reads a string in parentheses.
func (l *lexer) readLiteral() text {
	var out []byte
	depth, start := 0, l.at
	for ; l.at < len(l.b); l.at++ {
		c := l.b[l.at]
		switch {
		case c == '(':
			if depth++; depth == 1 {
				continue
			}
		case c == ')':
			if depth--; depth == 0 {
				l.at++
				l.spendSteps(l.at - start)
				return out
			}
		case c == '\\' && l.at+1 < len(l.b):
			l.at++
			var is bool
			if c, is = l.readEscape(); !is {
				continue
			}
		}
		out = append(out, c)
	}
	l.spendSteps(l.at - start)
	return out
}

// readEscape reads what follows a backslash, up to its last byte. It reports whether that is a character.
func (l *lexer) readEscape() (c byte, is bool) {
	c = l.b[l.at]
	switch c {
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case '\n':
		return 0, false
	case '\r':
		if l.at+1 < len(l.b) && l.b[l.at+1] == '\n' {
			l.at++
		}
		return 0, false
	}
	if c < '0' || c > '7' {
		return c, true
	}
	n := int(c - '0')
	for range 2 {
		if l.at+1 >= len(l.b) || l.b[l.at+1] < '0' || l.b[l.at+1] > '7' {
			break
		}
		l.at++
		n = n*8 + int(l.b[l.at]-'0')
	}
	return byte(n), true
}

// readHex reads a string in angle brackets.
func (l *lexer) readHex() text {
	start := l.at
	end := bytes.IndexByte(l.b[start:], '>')
	if end < 0 {
		end = len(l.b) - start
	}
	l.at = min(len(l.b), start+end+1)
	l.spendSteps(end)
	return decodeHex(l.b[start+1 : start+end])
}

func (l *lexer) readList(depth int) list {
	var out list
	for depth < maxDepth {
		v, ok := l.readValue(depth + 1)
		if ok {
			if w, is := v.(word); is && w.isEnd() {
				l.at -= len(w)
				return out
			}
			out = append(out, v)
			continue
		}
		if l.at < len(l.b) && l.b[l.at] == ']' {
			l.at++
			return out
		}
		if l.at >= len(l.b) {
			return out
		}
		l.at++ // a bracket of another kind
	}
	l.gaps = addGap(l.gaps, Damaged)
	return nil
}

// isEnd reports whether a keyword ends an object, in which a bracket is then missing.
func (w word) isEnd() bool { return w == "endobj" || w == "endstream" || w == "obj" }

func (l *lexer) readDict(depth int) dict {
	out := dict{}
	for depth < maxDepth {
		v, ok := l.readValue(depth + 1)
		if !ok {
			if l.at >= len(l.b) {
				return out
			}
			if l.b[l.at] == '>' {
				l.at = min(len(l.b), l.at+2)
				return out
			}
			l.at++
			continue
		}
		key, isName := v.(name)
		if w, is := v.(word); is && w.isEnd() {
			l.at -= len(w)
			return out
		}
		if !isName {
			continue
		}
		if v, ok = l.readValue(depth + 1); !ok {
			continue
		}
		if w, is := v.(word); is && w.isEnd() {
			l.at -= len(w)
			return out
		}
		out[key] = v
	}
	l.gaps = addGap(l.gaps, Damaged)
	return nil
}
