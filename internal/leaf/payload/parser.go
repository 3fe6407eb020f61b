package payload

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
)

// parser builds the tree and writes the canonical text in the same walk, so
// that each byte is looked at once. Members are written as they come and put
// in order when their object ends.
type parser struct {
	src      []byte
	text     string // a copy of src: the strings of the tree are slices of it
	dec      *jsontext.Decoder
	maxDepth int
	depth    int
	deepest  int
	members  []member // a stack: the members of every object that is open
	items    []any    // likewise, the elements of every open array
	out      text
}

// member is one name with its value, where the name stood, and from where to
// where the two are written in the texts.
type member struct {
	name   string
	value  any
	offset int
	from   mark
	to     mark
}

func (p *parser) document() (any, error) {
	if err := p.begin(); err != nil {
		return nil, err
	}
	p.dec = jsontext.NewDecoder(bytes.NewBuffer(p.src), jsontext.AllowDuplicateNames(true))
	p.text = string(p.src)
	p.out.canon = make([]byte, 0, len(p.src))
	p.members = make([]member, 0, min(32, len(p.src)/16))
	p.deepest = 1
	value, err := p.value()
	if err != nil {
		return nil, err
	}
	if at := p.next(); at < len(p.src) {
		return nil, refuse(holdfast.KindValue, "something follows the document", "", at, "send one JSON document")
	}
	return value, nil
}

// begin refuses what the tokenizer would only call an invalid character.
func (p *parser) begin() error {
	switch {
	case len(bytes.TrimLeft(p.src, " \t\r\n")) == 0:
		return refuse(holdfast.KindValue, "the document is empty", "", 0, "send one JSON document")
	case bytes.HasPrefix(p.src, []byte("\xef\xbb\xbf")):
		return refuse(holdfast.KindValue, "the document begins with a byte order mark", "", 0, "send UTF-8 without one")
	case p.maxDepth < 1:
		return p.tooDeep(0)
	}
	return nil
}

// next is the offset of the first byte after the last token that is not
// whitespace.
func (p *parser) next() int {
	at := int(p.dec.InputOffset())
	return at + len(p.src[at:]) - len(bytes.TrimLeft(p.src[at:], " \t\r\n"))
}

// value reads any value. The tokenizer's state says what may stand here.
func (p *parser) value() (any, error) {
	switch p.dec.PeekKind() {
	case '{':
		return p.object()
	case '[':
		return p.array()
	}
	raw, err := p.dec.ReadValue()
	if err != nil {
		return nil, p.syntax(err)
	}
	switch raw[0] {
	case '"':
		return p.str(raw)
	case 'n':
		p.out.add(raw)
		return nil, nil
	case 't', 'f':
		p.out.add(raw)
		return raw[0] == 't', nil
	}
	return p.number(raw)
}

// open consumes the delimiter that begins a container.
func (p *parser) open() error {
	if _, err := p.dec.ReadToken(); err != nil {
		return p.syntax(err)
	}
	p.depth++
	p.deepest = max(p.deepest, p.depth)
	if p.depth > p.maxDepth {
		return p.tooDeep(int(p.dec.InputOffset()) - 1)
	}
	return nil
}

// shut consumes the delimiter that ends a container and writes it over the
// last comma.
func (p *parser) shut(delim byte, empty bool) error {
	if _, err := p.dec.ReadToken(); err != nil {
		return p.syntax(err)
	}
	p.depth--
	if !empty {
		p.out.dropLast()
	}
	p.out.addByte(delim)
	return nil
}

func (p *parser) array() (any, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	p.out.addByte('[')
	base := len(p.items)
	for p.dec.PeekKind() != ']' {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		p.items = append(p.items, v)
		p.out.addByte(',')
	}
	list := make([]any, len(p.items)-base)
	copy(list, p.items[base:])
	p.items = p.items[:base]
	return list, p.shut(']', len(list) == 0)
}

func (p *parser) object() (any, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	p.out.addByte('{')
	base, from := len(p.members), p.out.mark()
	for p.dec.PeekKind() != '}' {
		if err := p.member(); err != nil {
			return nil, err
		}
	}
	own := p.members[base:]
	if !slices.IsSortedFunc(own, byName) {
		slices.SortFunc(own, byName)
		p.out.reorder(from, own)
	}
	if err := p.shut('}', len(own) == 0); err != nil {
		return nil, err
	}
	if i := duplicate(own); i >= 0 {
		at := string(p.dec.StackPointer()) + "/" + escape(own[i].name)
		return nil, refuse(holdfast.KindCanonicalize, "a member name occurs twice", at, own[i].offset, "give each member of an object its own name")
	}
	m := make(map[string]any, len(own))
	for _, e := range own {
		m[e.name] = e.value
	}
	clear(own)
	p.members = p.members[:base]
	return m, nil
}

func (p *parser) member() error {
	from := p.out.mark()
	raw, err := p.dec.ReadValue()
	if err != nil {
		return p.syntax(err)
	}
	if raw[0] != '"' {
		// The tokenizer refuses other kinds as names; this is its contract
		// checked where a change of it would be silent.
		return refuse(holdfast.KindValue, "a member name is not a string", string(p.dec.StackPointer()), int(p.dec.InputOffset()), "")
	}
	offset := int(p.dec.InputOffset()) - len(raw)
	name, err := p.str(raw)
	if err != nil {
		return err
	}
	p.out.addByte(':')
	v, err := p.value()
	if err != nil {
		return err
	}
	p.out.addByte(',')
	p.members = append(p.members, member{name, v, offset, from, p.out.mark()})
	return nil
}

// str decodes the string token that was just read and writes its shortest
// form, which for a string without a backslash is the token itself.
func (p *parser) str(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		end := int(p.dec.InputOffset())
		p.out.add(raw)
		return p.text[end-len(raw)+1 : end-1], nil
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	if err == nil {
		err = p.out.quote(b)
	}
	if err != nil {
		return "", p.syntax(err)
	}
	return string(b), nil
}

// number keeps the source text for the tree and the exact hash, and writes
// the ECMAScript form into the canonical text.
func (p *parser) number(raw []byte) (any, error) {
	end := int(p.dec.InputOffset())
	source := p.text[end-len(raw) : end]
	if err := p.out.number(source); err != nil {
		return nil, refuse(holdfast.KindCanonicalize, "a number is beyond the range of a double", string(p.dec.StackPointer()), end-len(raw), "send it as a string")
	}
	return json.Number(source), nil
}

// duplicate returns the index in sorted members of the first that repeats a
// name, as the document reads, or -1.
func duplicate(own []member) int {
	found := -1
	for i := 1; i < len(own); i++ {
		if own[i].name == own[i-1].name && (found < 0 || own[i].offset < own[found].offset) {
			found = i
		}
	}
	return found
}

// byName orders members as RFC 8785 section 3.2.3 does, by UTF-16 units, and
// equal names by where they stand.
func byName(a, b member) int {
	if c := compareUTF16(a.name, b.name); c != 0 {
		return c
	}
	return a.offset - b.offset
}

// compareUTF16 compares by UTF-16 code units without converting. Valid UTF-8
// sorts by code point; the two orders differ only where a character above
// U+FFFF (lead byte F0 and up, in UTF-16 a surrogate) meets one in U+E000 to
// U+FFFF (lead byte EE or EF).
func compareUTF16(a, b string) int {
	n := min(len(a), len(b))
	for i := 0; i < n; i++ {
		x, y := a[i], b[i]
		switch {
		case x == y:
			continue
		case x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0):
			return int(y) - int(x)
		}
		return int(x) - int(y)
	}
	return len(a) - len(b)
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
