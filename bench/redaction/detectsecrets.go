package redaction

import (
	"path/filepath"
	"strings"
	"unicode/utf8"
)

var detectSecretsTargets = map[string]target{every: {atLeast: 85}}

// readDetectSecrets reads the payloads of the plugins' tests: tuples of Python whose first
// part is a text and whose second part is whether it has a secret (True, False), or is the
// secret itself. Files are read for literals, constants and format; nothing is run. Tuples
// of other forms are left out.
func readDetectSecrets(dir string, each func(Text) error) error {
	return walkFiles(filepath.Join(dir, "tests", "plugins"), hasExtension(".py"), func(path string,
		content []byte) error {
		p := pythonReader{rest: string(content), known: map[string]string{}}
		p.readConstants()
		for _, t := range p.readTuples(strings.TrimSuffix(path, "_test.py")) {
			t.Path = "tests/plugins/" + path
			if err := each(t); err != nil {
				return err
			}
		}
		return nil
	})
}

// pythonReader reads string literals of Python.
type pythonReader struct {
	rest  string
	known map[string]string // constants of the file
}

func (p *pythonReader) skipSpace() {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t\r\n")
		if !strings.HasPrefix(p.rest, "#") {
			return
		}
		_, p.rest, _ = strings.Cut(p.rest, "\n")
	}
}

// takePrefix removes a prefix, and reports whether it was there.
func (p *pythonReader) takePrefix(prefix string) bool {
	p.skipSpace()
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if ok {
		p.rest = rest
	}
	return ok
}

// readConstants reads lines NAME = 'text'.
func (p *pythonReader) readConstants() {
	for line := range strings.Lines(p.rest) {
		name, value, ok := strings.Cut(line, " = ")
		if !ok || name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != "" {
			continue
		}
		q := pythonReader{rest: value, known: p.known}
		if s, ok := q.readString(); ok {
			p.known[name] = s
		}
	}
}

// readTuples returns the text of each tuple.
func (p *pythonReader) readTuples(class string) (list []Text) {
	for {
		at := strings.IndexByte(p.rest, '(')
		if at < 0 {
			return list
		}
		p.rest = p.rest[at+1:]
		q := *p
		if t, ok := q.readTuple(class); ok {
			list = append(list, t)
			p.rest = q.rest
		}
	}
}

func (p *pythonReader) readTuple(class string) (Text, bool) {
	text, ok := p.readString()
	if !ok || !p.takePrefix(",") {
		return Text{}, false
	}
	t := Text{Body: []byte(text)}
	switch {
	case text == "", strings.Contains(text, "{secret}"): // the test fills in the latter
		return t, false
	case p.takePrefix("True"):
		t.Marks = []Mark{markToken(class, text)}
	case p.takePrefix("False"), p.takePrefix("None"):
		t.Marks = []Mark{{Class: class + " without a secret", End: len(text)}}
	default:
		secret, ok := p.readString()
		at := strings.Index(text, secret)
		if !ok || at < 0 || secret == "" {
			return t, false
		}
		t.Marks = []Mark{{Class: class, Start: at, End: at + len(secret), Secret: true}}
	}
	return t, p.takePrefix(")") || p.takePrefix(",")
}

// markToken marks the part of a payload that is the secret: the longest run of characters
// without a blank, a quote or a sign that begins a value.
func markToken(class, text string) Mark {
	m := Mark{Class: class, Secret: true}
	for from := 0; from < len(text); {
		size := strings.IndexAny(text[from:], " \t\n\"'`=<>(),;")
		if size < 0 {
			size = len(text) - from
		}
		if size > m.End-m.Start {
			m.Start, m.End = from, from+size
		}
		from += size + 1
	}
	// Of a URL with credentials and of a name before a colon only the value is secret.
	if host := strings.LastIndexByte(text[m.Start:m.End], '@'); strings.Contains(text, "://") && host >= 0 {
		if colon := strings.LastIndexByte(text[m.Start:m.Start+host], ':'); colon >= 0 {
			m.Start, m.End = m.Start+colon+1, m.Start+host
		}
	}
	return m
}

// readString reads an expression of strings: literals that follow each other, constants,
// sums, parentheses, and format with such arguments.
func (p *pythonReader) readString() (string, bool) {
	whole, any := "", false
	for {
		p.skipSpace()
		part, ok := p.readOperand()
		if !ok {
			return whole, any
		}
		for p.takePrefix(".format(") {
			arg, ok := p.readString()
			if !ok || !p.takePrefix(")") {
				return "", false
			}
			part = strings.NewReplacer("{{", "{", "}}", "}", "{}", arg).Replace(part)
		}
		whole, any = whole+part, true
		p.takePrefix("+")
	}
}

// readOperand reads one literal, constant or parenthesis.
func (p *pythonReader) readOperand() (string, bool) {
	if strings.HasPrefix(p.rest, "(") {
		q := pythonReader{p.rest[1:], p.known}
		if s, ok := q.readString(); ok && q.takePrefix(")") {
			p.rest = q.rest
			return s, true
		}
		return "", false
	}
	name := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"))]
	if s, ok := p.known[name]; ok && name != "" {
		p.rest = p.rest[len(name):]
		return s, true
	}
	raw := false
	rest := p.rest
	for rest != "" && strings.IndexByte("rRbBuU", rest[0]) >= 0 {
		raw = raw || rest[0]|0x20 == 'r'
		rest = rest[1:]
	}
	if rest == "" || rest[0] != '\'' && rest[0] != '"' {
		return "", false
	}
	quote := rest[:1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(rest, long) {
		quote = long
	}
	var b strings.Builder
	for rest = rest[len(quote):]; rest != ""; {
		switch {
		case strings.HasPrefix(rest, quote):
			p.rest = rest[len(quote):]
			return b.String(), true
		case rest[0] == '\\' && len(rest) > 1 && !raw:
			b.WriteString(unescapePython(rest[1]))
			rest = rest[2:]
		default:
			_, size := utf8.DecodeRuneInString(rest)
			b.WriteString(rest[:size])
			rest = rest[size:]
		}
	}
	return "", false
}

// unescapePython returns the character of an escape.
func unescapePython(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '\\', '\'', '"':
		return string(c)
	case '\n':
		return ""
	}
	return `\` + string(c)
}
