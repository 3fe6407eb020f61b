package dissimilar

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// masked says whether a text holds what redaction writes in the place of what it
// hides (spec 003 section 1.7): then it may have been changed.
func masked(text []byte) bool {
	for _, m := range []string{"[email hidden]", "[secret redacted]", "[pii redacted]", "****-****-****-"} {
		if bytes.Contains(text, []byte(m)) {
			return true
		}
	}
	return false
}

// Canonical is the RFC 8785 form of one JSON document, by a reader and a writer
// of its own. A document that is not I-JSON (RFC 7493) is an error: doubled
// names, lone surrogates, numbers that no double holds.
func Canonical(text []byte) ([]byte, error) {
	p := &parser{in: text}
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.i != len(p.in) {
		return nil, errSyntax
	}
	return n.append(nil), nil
}

var (
	errSyntax = errors.New("not JSON")
	errDepth  = errors.New("nested too deeply")
	errDouble = errors.New("a name twice in one object")
	errNumber = errors.New("a number that no double holds")
	errText   = errors.New("a string that is not Unicode")
)

// deepest bounds the nesting.
const deepest = 64

// node is a value: one of a scalar's canonical text, a list, or an object.
type node struct {
	scalar  []byte
	list    []*node
	members []member
	kind    byte // 's', '[' or '{'
}

type member struct {
	units []uint16 // the name in UTF-16, by which RFC 8785 sorts
	name  []byte   // as it is written
	value *node
}

func (n *node) append(b []byte) []byte {
	switch n.kind {
	case '[':
		b = append(b, '[')
		for i, e := range n.list {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.append(b)
		}
		return append(b, ']')
	case '{':
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = m.value.append(append(append(b, m.name...), ':'))
		}
		return append(b, '}')
	}
	return append(b, n.scalar...)
}

type parser struct {
	in []byte
	i  int
}

func (p *parser) space() {
	for p.i < len(p.in) {
		switch p.in[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.i < len(p.in) {
		return p.in[p.i]
	}
	return 0
}

func (p *parser) value(depth int) (*node, error) {
	p.space()
	if depth > deepest {
		return nil, errDepth
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, err := p.text()
		return &node{kind: 's', scalar: appendText(nil, s)}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, w := range []string{"true", "false", "null"} {
		if len(p.in)-p.i >= len(w) && string(p.in[p.i:p.i+len(w)]) == w {
			p.i += len(w)
			return &node{kind: 's', scalar: []byte(w)}, nil
		}
	}
	return nil, errSyntax
}

// next steps over a comma, or over the end; more says which.
func (p *parser) next(end byte) (more bool, err error) {
	p.space()
	c := p.peek()
	if c != ',' && c != end {
		return false, errSyntax
	}
	p.i++
	return c == ',', nil
}

func (p *parser) array(depth int) (*node, error) {
	n := &node{kind: '['}
	p.i++
	p.space()
	if p.peek() == ']' {
		p.i++
		return n, nil
	}
	for more := true; more; {
		e, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.list = append(n.list, e)
		if more, err = p.next(']'); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (p *parser) object(depth int) (*node, error) {
	n := &node{kind: '{'}
	p.i++
	p.space()
	if p.peek() == '}' {
		p.i++
		return n, nil
	}
	for more := true; more; {
		p.space()
		if p.peek() != '"' {
			return nil, errSyntax
		}
		name, err := p.text()
		if err != nil {
			return nil, err
		}
		p.space()
		if p.peek() != ':' {
			return nil, errSyntax
		}
		p.i++
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, member{utf16.Encode([]rune(name)), appendText(nil, name), v})
		if more, err = p.next('}'); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(n.members, func(a, b member) int { return slices.Compare(a.units, b.units) })
	for i := 1; i < len(n.members); i++ {
		if slices.Equal(n.members[i-1].units, n.members[i].units) {
			return nil, errDouble
		}
	}
	return n, nil
}

// text reads a string. Escapes become the characters they stand for.
func (p *parser) text() (string, error) {
	p.i++
	var out []byte
	for p.i < len(p.in) {
		c := p.in[p.i]
		switch {
		case c == '"':
			p.i++
			return string(out), nil
		case c < 0x20:
			return "", errSyntax
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		default:
			r, n := utf8.DecodeRune(p.in[p.i:])
			if r == utf8.RuneError && n < 2 {
				return "", errText
			}
			out = append(out, p.in[p.i:p.i+n]...)
			p.i += n
		}
	}
	return "", errSyntax
}

func (p *parser) escape() (rune, error) {
	if p.i+1 >= len(p.in) {
		return 0, errSyntax
	}
	c := p.in[p.i+1]
	p.i += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return p.unit()
	}
	return 0, errSyntax
}

// unit reads four hex digits, and the other half of a pair.
func (p *parser) unit() (rune, error) {
	hi, err := p.hex()
	if err != nil || !utf16.IsSurrogate(hi) {
		return hi, err
	}
	if p.peek() != '\\' || p.i+1 >= len(p.in) || p.in[p.i+1] != 'u' {
		return 0, errText
	}
	p.i += 2
	lo, err := p.hex()
	if err != nil {
		return 0, err
	}
	r := utf16.DecodeRune(hi, lo)
	if r == utf8.RuneError {
		return 0, errText
	}
	return r, nil
}

func (p *parser) hex() (rune, error) {
	if p.i+4 > len(p.in) {
		return 0, errSyntax
	}
	var r rune
	for _, c := range p.in[p.i : p.i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, errSyntax
		}
		r = r<<4 | rune(c)
	}
	p.i += 4
	return r, nil
}

func (p *parser) digits() bool {
	from := p.i
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.i++
	}
	return p.i > from
}

func (p *parser) number() (*node, error) {
	from := p.i
	if p.peek() == '-' {
		p.i++
	}
	if p.peek() == '0' {
		p.i++
	} else if !p.digits() {
		return nil, errSyntax
	}
	if p.peek() == '.' {
		if p.i++; !p.digits() {
			return nil, errSyntax
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.i++
		if c := p.peek(); c == '+' || c == '-' {
			p.i++
		}
		if !p.digits() {
			return nil, errSyntax
		}
	}
	f, err := strconv.ParseFloat(string(p.in[from:p.i]), 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, errNumber
	}
	return &node{kind: 's', scalar: appendNumber(nil, f)}, nil
}

// appendNumber writes a finite double as ECMAScript's Number::toString does:
// the shortest digits that read back, with n, the place of the decimal point,
// deciding the form.
func appendNumber(b []byte, f float64) []byte {
	if f == 0 {
		return append(b, '0')
	}
	if f < 0 {
		b, f = append(b, '-'), -f
	}
	var buf [32]byte
	s := strconv.AppendFloat(buf[:0], f, 'e', -1, 64) // d.ddde±dd
	digits := make([]byte, 0, 20)
	e := 0
	for e < len(s) && s[e] != 'e' {
		if s[e] != '.' {
			digits = append(digits, s[e])
		}
		e++
	}
	exp, _ := strconv.Atoi(string(s[e+1:]))
	k, n := len(digits), exp+1
	switch {
	case k <= n && n <= 21:
		b = append(b, digits...)
		for range n - k {
			b = append(b, '0')
		}
		return b
	case 0 < n && n <= 21:
		return append(append(append(b, digits[:n]...), '.'), digits[n:]...)
	case -6 < n && n <= 0:
		b = append(b, '0', '.')
		for range -n {
			b = append(b, '0')
		}
		return append(b, digits...)
	}
	b = append(b, digits[0])
	if k > 1 {
		b = append(append(b, '.'), digits[1:]...)
	}
	b = append(b, 'e')
	if n > 0 {
		b = append(b, '+')
	}
	return strconv.AppendInt(b, int64(n-1), 10)
}

// appendText writes a string as RFC 8785 section 3.2.2.2 asks: only quote,
// backslash and control characters are escaped, the latter by letter where they
// have one.
func appendText(b []byte, s string) []byte {
	const letters = "btn\x00fr" // from U+0008 on; U+000B has none
	const hexes = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= 0x20:
			b = append(b, c)
		case c >= 8 && c <= 13 && c != 11:
			b = append(b, '\\', letters[c-8])
		default:
			b = append(b, '\\', 'u', '0', '0', hexes[c>>4], hexes[c&15])
		}
	}
	return append(b, '"')
}
