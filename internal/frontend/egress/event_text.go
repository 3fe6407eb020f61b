package egress

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/frames"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/pieces"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
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
	ev := &pieces.Event{}
	data, has := e.split(ev, block)
	if !has {
		if len(e.queue) == 0 && !e.gate || e.frame == frames.Events && frames.IsComment(block) {
			e.out = append(e.out, ev.Head...)
			return nil
		}
		ev.Lines = false
		e.push(ev)
		return nil
	}
	if e.frame == frames.Events && !e.meter(data) {
		return nil
	}
	if e.a.mode == domain.Restore {
		return e.restoreEvent(ev, block, data)
	}
	share := e.a.p.out.memory.NewShare(heldBy(e.a.ctx))
	defer share.Done()
	if !share.Grow(4 * int64(len(data))) {
		return memory.Busy()
	}
	var clean redact.Result
	if err := e.a.p.out.cleaners.RunWithin(len(data), func() (err error) {
		clean, err = e.a.c.Body("", data)
		return err
	}); err != nil {
		return cleaner.AsRedactionError(err)
	}
	e.a.found(clean.Findings)
	ev.Doc = bytes.Clone(clean.Out)
	defer e.reading.Done()
	if err := e.follow(ev, data); err != nil {
		return err
	}
	e.push(ev)
	return nil
}

func (e *events) push(ev *pieces.Event) {
	ev.Gated, ev.Came = e.gate, time.Now()
	e.queue = append(e.queue, ev)
	e.held += ev.Size()
}

// split takes the data out of a block; the rest, redacted, becomes the event's
// head.
func (e *events) split(ev *pieces.Event, block []byte) (data []byte, has bool) {
	if e.frame == frames.Lines {
		line := bytes.TrimRight(block, "\r\n")
		ev.Tail = bytes.Clone(block[len(line):])
		if len(line) > 0 && line[0] == 0x1e {
			ev.Head, line = []byte{0x1e}, line[1:]
		}
		if len(line) == 0 {
			ev.Head = append(ev.Head, ev.Tail...)
			ev.Tail = nil
			return nil, false
		}
		return line, true
	}
	ev.Lines = true
	ev.Head, data, ev.Tail, has = frames.Split(block, func(name, line []byte) []byte {
		e.named(name)
		return e.field(line)
	})
	return data, has
}

// field is a line that is no data, redacted. Mostly it is the one before.
func (e *events) field(line []byte) []byte {
	if bytes.Equal(line, e.plain) || e.a.mode == domain.Restore {
		return line
	}
	r := e.a.c.Text(line)
	e.a.found(r.Findings)
	if len(line) <= maxTail && bytes.Equal(r.Out, line) {
		e.plain = append(e.plain[:0], line...)
	}
	return r.Out
}

// follow finds the pieces of longer texts in the event and gives each to its
// text.
func (e *events) follow(ev *pieces.Event, raw []byte) error {
	after, index := e.reading.Of(ev.Doc)
	before := after
	if !bytes.Equal(raw, ev.Doc) {
		var other frames.Pieces
		if was, i := other.Of(raw); len(was) == len(after) {
			before, index = was, i
		}
	}
	for i := range after {
		e.key = append(append(e.key[:0], before[i].Key...), index...)
		if !after[i].Follows {
			if e.across(e.key, before[i].Text) {
				ev.Slots = append(ev.Slots, pieces.NewFilledSlot(after[i].Start, after[i].End, true, []byte(
					"[secret]")))
			}
			continue
		}
		s, text := pieces.NewSlot(after[i].Start, after[i].End, after[i].Quoted), before[i].Text
		if !bytes.Equal(before[i].Text, after[i].Text) && !bytes.Equal(e.a.c.Text(before[i].Text).Out, after[i].Text) {
			text = after[i].Text // what was found there was wrapped, or named, and a text is not opened
		}
		if err := e.place(e.key, e.clean).Put(s, text); err != nil {
			return err
		}
		ev.Slots = append(ev.Slots, s)
	}
	return nil
}

// clean opens a text that is redacted.
func (e *events) clean(w io.Writer) pieces.Stream { return e.a.c.Stream(w) }

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
func (e *events) place(key []byte, open func(io.Writer) pieces.Stream) *place {
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
		e.endPlace(oldest)
	}
	p := &place{pieces.NewText(open), e.tick}
	e.places[string(key)] = p
	return p
}

// endPlace ends the text of a key and releases all that was held.
func (e *events) endPlace(key string) {
	p := e.places[key]
	if p == nil {
		return
	}
	_ = p.Close() // what it writes is clean also when it fails
	e.leavePlace(p)
	delete(e.places, key)
}

// leavePlace notes what was found in a text that ends.
func (e *events) leavePlace(p *place) {
	if r, ok := p.Stream().(*mapping.Restorer); ok {
		e.a.model.mapped.addCounts(r.Counts())
		return
	}
	e.a.found(p.Stream().Findings())
}
