package egress

import (
	"bytes"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/frames"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// maxPlaces bounds the texts of one answer that are followed at a time.
const maxPlaces = 64

// maxTails and maxTail are how many strings of one place are kept, to be read
// with the next one, and how much of each.
const (
	maxTails = 3
	maxTail  = 128
)

func flush(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }

// read makes an event of a block and puts it into the queue. A block without
// data, a comment that keeps the connection awake, goes on at once.
func (e *events) read(block []byte) error {
	ev := &event{}
	data, has := e.split(ev, block)
	if !has {
		if len(e.queue) == 0 && !e.gate || e.frame == frames.Events && isComment(block) {
			e.out = append(e.out, ev.head...)
			return nil
		}
		ev.lines = false
		e.push(ev)
		return nil
	}
	if e.frame == frames.Events && !e.meter(data) {
		return nil
	}
	share := e.a.p.out.memory.NewShare(heldBy(e.a.ctx))
	defer share.Done()
	if !share.Grow(4 * int64(len(data))) {
		return memory.Busy()
	}
	var clean redact.Result
	if err := e.a.p.within(len(data), func() (err error) {
		clean, err = e.a.c.Body("", data)
		return err
	}); err != nil {
		return redactionFailed(err)
	}
	e.a.found(clean.Findings)
	ev.doc = bytes.Clone(clean.Out)
	defer e.reading.Done()
	if err := e.follow(ev, data); err != nil {
		return err
	}
	e.push(ev)
	return nil
}

func (e *events) push(ev *event) {
	ev.gated, ev.came = e.gate, time.Now()
	e.queue = append(e.queue, ev)
	e.held += ev.size()
}

// split takes the data out of a block; the rest, redacted, becomes the event's
// head.
func (e *events) split(ev *event, block []byte) (data []byte, has bool) {
	if e.frame == frames.Lines {
		line := bytes.TrimRight(block, "\r\n")
		ev.tail = bytes.Clone(block[len(line):])
		if len(line) > 0 && line[0] == 0x1e {
			ev.head, line = []byte{0x1e}, line[1:]
		}
		if len(line) == 0 {
			ev.head = append(ev.head, ev.tail...)
			ev.tail = nil
			return nil, false
		}
		return line, true
	}
	ev.lines = true
	blank := false
	for len(block) > 0 {
		n := bytes.IndexAny(block, "\r\n")
		line := block
		if n < 0 {
			block = nil
		} else {
			line = block[:n]
			cr := block[n] == '\r'
			if block = block[n+1:]; cr && len(block) > 0 && block[0] == '\n' {
				block = block[1:]
			}
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
			blank = true
		case string(name) == "data":
			if has {
				data = append(data, '\n')
			}
			data, has = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
		default:
			e.named(name)
			ev.head = append(append(ev.head, e.field(line)...), '\n')
		}
	}
	if blank {
		ev.tail = []byte("\n")
	}
	if !has {
		ev.head = append(ev.head, ev.tail...)
		ev.tail = nil
	}
	return data, has
}

// field is a line that is no data, redacted. Mostly it is the one before.
func (e *events) field(line []byte) []byte {
	if bytes.Equal(line, e.plain) {
		return line
	}
	r := e.a.c.Text(line)
	e.a.found(r.Findings)
	if len(line) <= maxTail && bytes.Equal(r.Out, line) {
		e.plain = append(e.plain[:0], line...)
	}
	return r.Out
}

// isComment says whether a block has only comments.
func isComment(block []byte) bool {
	for line := range bytes.Lines(block) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 && line[0] != ':' {
			return false
		}
	}
	return true
}

// follow finds the pieces of longer texts in the event and gives each to its
// text.
func (e *events) follow(ev *event, raw []byte) error {
	after, index := e.reading.Of(ev.doc)
	before := after
	if !bytes.Equal(raw, ev.doc) {
		var other frames.Pieces
		if was, i := other.Of(raw); len(was) == len(after) {
			before, index = was, i
		}
	}
	for i := range after {
		e.key = append(append(e.key[:0], before[i].Key...), index...)
		if !after[i].Follows {
			if e.across(e.key, before[i].Text) {
				ev.slots = append(ev.slots, &slot{start: after[i].Start, end: after[i].End, quoted: true, text: []byte("[secret]"), done: true})
			}
			continue
		}
		s, text := &slot{start: after[i].Start, end: after[i].End, quoted: after[i].Quoted}, before[i].Text
		if !bytes.Equal(before[i].Text, after[i].Text) && !bytes.Equal(e.a.c.Text(before[i].Text).Out, after[i].Text) {
			text = after[i].Text // what was found there was wrapped, or named, and a text is not opened
		}
		if err := e.place(e.key).put(s, text); err != nil {
			return err
		}
		ev.slots = append(ev.slots, s)
	}
	return nil
}

// across says whether a string, put behind those that stood at its place in the
// events before, goes on with a secret. Where that began nobody knows: it is read
// with the last one, the last two and so on.
func (e *events) across(key, text []byte) bool {
	last := e.tails[string(key)]
	if len(last) > 0 && bytes.Equal(last[len(last)-1], text) || len(text) == 0 {
		return false
	}
	if len(e.tails) >= maxPlaces && last == nil {
		clear(e.tails)
	}
	e.tails[string(key)] = append(last[max(0, len(last)-maxTails+1):], bytes.Clone(text[max(0, len(text)-maxTail):]))
	var before []byte
	for i := len(last) - 1; i >= 0; i-- {
		before = append(bytes.Clone(last[i]), before...)
		for _, f := range e.a.c.Text(append(before, text...)).Findings {
			if strings.HasPrefix(f.Rule, "secret.") && f.Offset < len(before) && f.Offset+f.Length > len(before) {
				return true
			}
		}
	}
	return false
}

// place returns the text of that key. Where there are too many, the one that
// had no piece for the longest time ends.
func (e *events) place(key []byte) *place {
	e.tick++
	if p := e.places[string(key)]; p != nil {
		p.used = e.tick
		return p
	}
	if len(e.places) >= maxPlaces {
		oldest, least := "", e.tick
		for k, p := range e.places {
			if p.used < least {
				oldest, least = k, p.used
			}
		}
		p := e.places[oldest]
		_ = p.s.Close() // what it writes is clean also when it fails
		p.settle()
		e.a.found(p.s.Findings())
		delete(e.places, oldest)
	}
	p := &place{used: e.tick}
	p.s = e.a.c.Stream(&p.out)
	e.places[string(key)] = p
	return p
}

// put gives a piece to the text.
func (p *place) put(s *slot, text []byte) error {
	s.from, s.to = p.in, p.in+len(text)
	p.in = s.to
	p.waiting = append(p.waiting, s)
	_, err := p.s.Write(text)
	p.settle()
	return err
}

// settle gives what came out to the pieces that it came of: of a mask over two
// pieces, to the first. Those that have been judged to their ends are done.
func (p *place) settle() {
	before := p.judged
	p.judged = max(before, p.in-p.s.Held())
	for len(p.waiting) > 0 {
		s := p.waiting[0]
		n := p.out.Len()
		if len(p.waiting) > 1 && p.waiting[1].from < p.judged {
			n = p.share(n, before, s)
		}
		s.give(p, n)
		if s.to > p.judged {
			return
		}
		s.done = true
		p.waiting = p.waiting[1:]
	}
	p.waiting = nil
}

// share is how many of the n bytes that came of [before, judged) are s's, where
// they are also others': a mask is as long as it likes, so it is counted from the
// side on which there is none.
func (p *place) share(n, before int, s *slot) int {
	for _, f := range p.s.Findings() {
		if f.Offset < p.judged && f.Offset+f.Length > s.to {
			return min(n, max(0, s.to-max(before, s.from)))
		}
	}
	return min(n, max(0, n-(p.judged-s.to)))
}

// give moves n bytes that came out to the slot, and as many as end the character
// that the last of them belongs to; one whose end has not come stays.
func (s *slot) give(p *place, n int) {
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

// written is the slot's text as it stands in the event.
func (s *slot) written(doc []byte) []byte {
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
