// Package pieces puts a text that comes in pieces, once it is redacted or restored, back into its events.
package pieces

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Stream is what redacts a text that comes in pieces, or restores its placeholders.
type Stream interface {
	io.WriteCloser
	Held() int
	Yield() error
	Findings() []redact.Finding
}

// Text is one text that comes in pieces: which slots it has in the events, and how much of it must wait.
type Text struct {
	s       Stream
	out     bytes.Buffer // what came out and belongs to no slot yet
	in      int          // how much of the text has come
	judged  int          // up to where it has come out, or been masked
	waiting []*Slot      // the pieces whose ends wait, in order
}

// NewText returns a text without a piece. open opens what redacts it.
func NewText(open func(io.Writer) Stream) *Text {
	p := &Text{}
	p.s = open(&p.out)
	return p
}

// Stream returns what redacts the text.
func (p *Text) Stream() Stream { return p.s }

// Waits reports whether the end of a piece must wait.
func (p *Text) Waits() bool { return len(p.waiting) > 0 }

// Close ends the text and releases all that was held.
func (p *Text) Close() error {
	err := p.s.Close()
	p.Settle()
	return err
}

// Event is one event on its way. Head is what is before its data, Tail what is behind it; Doc is the data, but
// for the slots, which are in its order.
type Event struct {
	Head, Doc, Tail []byte
	Slots           []*Slot
	Lines           bool // Doc is to be written as data lines
	Gated           bool // it waits for the rules
	Came            time.Time
}

// Slot is a piece of a text within an event's data.
type Slot struct {
	start, end int // in Doc
	from, to   int // in the text
	text       []byte
	quoted     bool
	done       bool // nothing more can come for it
}

// NewSlot returns a slot for a piece of a text, at [start, end) of an event's data. quoted says that it is a
// JSON string there.
func NewSlot(start, end int, quoted bool) *Slot { return &Slot{start: start, end: end, quoted: quoted} }

// NewFilledSlot returns a slot for which nothing more comes.
func NewFilledSlot(start, end int, quoted bool, text []byte) *Slot {
	return &Slot{start: start, end: end, quoted: quoted, text: text, done: true}
}

// Done reports whether nothing more can come for the slot.
func (s *Slot) Done() bool { return s.done }

// Size returns the bytes of the event as it came.
func (n *Event) Size() int { return len(n.Head) + len(n.Doc) + len(n.Tail) }

// Append appends the event as the client gets it.
func (n *Event) Append(out []byte) []byte {
	out = append(out, n.Head...)
	doc := n.Doc
	if len(n.Slots) > 0 {
		doc = make([]byte, 0, len(n.Doc)+16)
		at := 0
		for _, s := range n.Slots {
			doc = append(append(doc, n.Doc[at:s.start]...), s.quoteText(n.Doc)...)
			at = s.end
		}
		doc = append(doc, n.Doc[at:]...)
	}
	if !n.Lines {
		return append(append(out, doc...), n.Tail...)
	}
	for line := range bytes.SplitSeq(doc, []byte("\n")) {
		out = append(append(append(out, "data: "...), line...), '\n')
	}
	return append(out, n.Tail...)
}

// Put gives a piece to the text.
func (p *Text) Put(s *Slot, text []byte) error {
	s.from, s.to = p.in, p.in+len(text)
	p.in = s.to
	p.waiting = append(p.waiting, s)
	_, err := p.s.Write(text)
	p.Settle()
	return err
}

// Settle gives what came out to the pieces that it came of: of a mask over two
// pieces, to the first. Those that have been judged to their ends are done.
func (p *Text) Settle() {
	before := p.judged
	p.judged = max(before, p.in-p.s.Held())
	for len(p.waiting) > 0 {
		s := p.waiting[0]
		n := p.out.Len()
		if len(p.waiting) > 1 && p.waiting[1].from < p.judged {
			n = p.countShare(n, before, s)
		}
		s.giveBytes(p, n)
		if s.to > p.judged {
			return
		}
		s.done = true
		p.waiting = p.waiting[1:]
	}
	p.waiting = nil
}

// countShare is how many of the n bytes that came of [before, judged) are s's, where
// they are also others': a mask is as long as it likes, so it is counted from the
// side without others.
func (p *Text) countShare(n, before int, s *Slot) int {
	for _, f := range p.s.Findings() {
		if f.Offset < p.judged && f.Offset+f.Length > s.to {
			return min(n, max(0, s.to-max(before, s.from)))
		}
	}
	return min(n, max(0, n-(p.judged-s.to)))
}

// giveBytes moves n bytes that came out to the slot, and as many as end the character
// that the last of them belongs to; one whose end has not come stays.
func (s *Slot) giveBytes(p *Text, n int) {
	b := p.out.Bytes()
	for n < len(b) && !utf8.RuneStart(b[n]) {
		n++
	}
	for k := 1; k <= utf8.UTFMax && k <= n && n == len(b); k++ {
		if c := b[n-k]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[n-k:n]) && p.s.Held() > 0 {
				n -= k
			}
			break
		}
	}
	s.text = append(s.text, p.out.Next(n)...)
}

// quoteText is the slot's text as it stands in the event.
func (s *Slot) quoteText(doc []byte) []byte {
	if !s.quoted {
		return s.text
	}
	if bytes.Equal(doc[s.start+1:s.end-1], s.text) && bytes.IndexByte(s.text, '\\') < 0 {
		return doc[s.start:s.end]
	}
	if was, err := jsontext.AppendUnquote(nil, doc[s.start:s.end]); err == nil && bytes.Equal(was, s.text) {
		return doc[s.start:s.end]
	}
	q, _ := jsontext.AppendQuote(nil, s.text)
	return q
}

// keepalives are the events by which a provider keeps a connection awake.
var keepalives = []string{"ping", "keepalive"}

// IsKeepalive reports whether an event's data has a type of keepalives, and nothing else but a number.
func IsKeepalive(data []byte) bool {
	if len(data) > 128 || !bytes.Contains(data, []byte(`"type"`)) {
		return false
	}
	var event struct {
		Type   string `json:"type"`
		Number int64  `json:"sequence_number"`
	}
	read := json.NewDecoder(bytes.NewReader(data))
	read.DisallowUnknownFields()
	return read.Decode(&event) == nil && slices.Contains(keepalives, event.Type) && read.Decode(&event) == io.EOF
}
