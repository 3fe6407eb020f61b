package egress

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/domain"
)

const (
	// maxEvent bounds one event, in bytes.
	maxEvent = 1 << 20
	// maxQueue and maxQueued bound the events that wait for what follows them,
	// and their bytes.
	maxQueue  = 256
	maxQueued = 1 << 20
	// patience is how long an event waits before its last words are let go, if
	// they are ordinary ones.
	patience = 100 * time.Millisecond
)

// frame is how events are told apart.
type frame uint8

const (
	frameEvents frame = iota // server-sent events: a blank line ends one
	frameLines               // one JSON document a line
)

// events gives an answer to the client event by event. Each event is redacted by
// itself; what a model says in pieces, over many events, is redacted as one text
// too, by place: an event waits for the next of its kind only while its own last
// word may be the head of something to mask, and goes on at a lull where that is
// an ordinary word (Stream.Yield). A secret whose halves come in two events is
// masked in the first of them; in other strings, which wait for nothing, the
// second half is.
func (a *answer) events(ctx context.Context, in io.Reader, f frame) error {
	a.flush = true
	e := &events{a: a, frame: f, places: map[string]*place{}, tails: map[string][][]byte{}}
	defer e.stop()
	if w, ok := a.w.(*patientWriter); ok {
		w.takeOver()
	}
	a.begin()
	if err := a.flushNow(); err != nil {
		return err
	}
	a.header, a.resp.Header = nil, nil // an answer may last long
	r := bufio.NewReaderSize(in, 256)  // so it holds little while nothing comes
	for ctx.Err() == nil {
		block, err := readBlock(r, f)
		if err != nil && err != io.EOF {
			return e.abandon(a.readError(err))
		}
		if len(block) > 0 {
			if err := e.aside(block); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return e.end()
		}
	}
	return ctx.Err()
}

// readBlock reads one event with the blank line behind it, or one line. A lone
// CR ends a line too (HTML section 9.2.6).
func readBlock(r *bufio.Reader, f frame) ([]byte, error) {
	var block []byte
	start := 0 // of the line in hand
	for {
		c, err := r.ReadByte()
		if err != nil {
			return block, err
		}
		if block = append(block, c); len(block) > maxEvent {
			return nil, errTooLarge
		}
		if f == frameLines && c == '\n' {
			return block, nil
		}
		if f == frameLines || c != '\n' && c != '\r' {
			continue
		}
		blank := len(block)-1 == start
		if c == '\r' && r.Buffered() > 0 {
			if next, _ := r.Peek(1); next[0] == '\n' {
				_, _ = r.ReadByte()
				block = append(block, '\n')
			}
		} else if c == '\n' && start == len(block)-1 && start > 0 && block[start-1] == '\r' && len(block) == start+1 {
			// The LF of a CR LF that came in two pieces.
			blank = false
		}
		if start = len(block); blank {
			return block, nil
		}
	}
}

// events is the state between events. mu guards all of it, and the answer: the
// timer's goroutine writes too.
type events struct {
	a     *answer
	frame frame

	mu     sync.Mutex
	places map[string]*place
	tails  map[string][][]byte // the ends of the last other strings, by their place
	queue  []*event
	held   int // bytes of the queue
	tick   int
	timer  *time.Timer
	waits  bool // the timer runs
	ended  bool
	err    error
}

// place is one text that comes in pieces: where it stands in the events, and
// what of it may not go on yet.
type place struct {
	s       *stream
	out     bytes.Buffer // what came out and belongs to no slot yet
	in      int          // how much of the text has come
	judged  int          // up to where it has come out, or been masked
	waiting []*slot      // the pieces whose ends have not been judged, in order
	used    int
}

// event is one event on its way. head is what stands before its data, tail what
// stands behind it; doc is the data, but for the slots.
type event struct {
	head, doc, tail []byte
	slots           []*slot
	lines           bool // doc is to be written as data lines
}

// slot is a piece of a place's text within an event's data.
type slot struct {
	start, end int // in doc
	from, to   int // in the place's text
	text       []byte
	quoted     bool
	done       bool // nothing more can come for it
}

// aside is take, in a goroutine of its own: a stack never shrinks to less than
// what waits on it needs, and this one waits for long while nothing comes.
func (e *events) aside(block []byte) error {
	done := make(chan error, 1)
	go func() { done <- guarded(func() error { return e.take(block) }) }()
	return <-done
}

// take reads one event and sends on what can go.
func (e *events) take(block []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	if err := e.read(block); err != nil {
		e.err = err
		return err
	}
	if e.err = e.release(false); e.err != nil {
		return e.err
	}
	if len(e.queue) > maxQueue || e.held > maxQueued {
		e.err = upstreamLied(e.a.resp, "more events than can wait for the end of one that may hold a secret", nil)
		return e.err
	}
	e.wait()
	return nil
}

// wait sees to it that no event waits longer than patience for another, if it
// ends in ordinary words.
func (e *events) wait() {
	if len(e.queue) == 0 || e.waits {
		return
	}
	limit := patience
	if e.a.p.out.patience > 0 {
		limit = e.a.p.out.patience
	}
	e.waits = true
	if e.timer == nil {
		e.timer = time.AfterFunc(limit, e.quiet)
		return
	}
	e.timer.Reset(limit)
}

// quiet is the end of the wait: what is ordinary at the end of a text goes on.
func (e *events) quiet() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waits = false
	if e.ended || e.err != nil {
		return
	}
	for _, p := range e.places {
		if len(p.waiting) == 0 {
			continue
		}
		if e.err = p.s.yield(); e.err != nil {
			break
		}
		p.settle()
	}
	if e.err == nil {
		e.err = e.release(false)
	}
	if e.err != nil {
		_ = e.a.resp.Body.Close() // wakes the reader, which ends the answer
	}
}

// stop ends the timer. Its goroutine writes nothing afterwards.
func (e *events) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	if e.timer != nil {
		e.timer.Stop()
	}
	for _, p := range e.places {
		e.a.found(p.s.findings())
	}
}

// end is the end of the answer: all that was held is judged and goes on.
func (e *events) end() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	for _, p := range e.places {
		if err := p.s.Close(); err != nil {
			return err
		}
		p.settle()
	}
	return e.release(true)
}

// abandon is the end of an answer that broke off with err, or before.
func (e *events) abandon(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	_ = e.release(false)
	return err
}

// release sends events in their order, up to the first that must wait.
func (e *events) release(all bool) error {
	for len(e.queue) > 0 {
		next := e.queue[0]
		for _, s := range next.slots {
			if !all && !s.done {
				return nil
			}
		}
		b := next.bytes()
		e.queue[0] = nil
		e.queue = e.queue[1:]
		e.held -= next.size()
		if len(b) > 0 {
			if _, err := e.a.Write(b); err != nil {
				return err
			}
		}
	}
	e.queue = nil
	return e.refused()
}

// refused is the error of a domain that takes no answer with a finding.
func (e *events) refused() error {
	if e.a.d.Response != domain.Refuse {
		return nil
	}
	list := e.a.got.findings
	for _, p := range e.places {
		list = append(list[:len(list):len(list)], p.s.findings()...)
	}
	if len(list) == 0 {
		return nil
	}
	return foundRefused(e.a.d, "the answer", list)
}

func (n *event) size() int { return len(n.head) + len(n.doc) + len(n.tail) }

// bytes is the event as the client gets it.
func (n *event) bytes() []byte {
	out := append([]byte(nil), n.head...)
	doc := n.doc
	if len(n.slots) > 0 {
		doc = nil
		at := 0
		for _, s := range n.slots {
			doc = append(append(doc, n.doc[at:s.start]...), s.written(n.doc)...)
			at = s.end
		}
		doc = append(doc, n.doc[at:]...)
	}
	if !n.lines {
		return append(append(out, doc...), n.tail...)
	}
	for line := range strings.SplitSeq(string(doc), "\n") {
		out = append(append(append(out, "data: "...), line...), '\n')
	}
	return append(out, n.tail...)
}

// flushNow sends the header, so that a client knows that the stream is open.
func (a *answer) flushNow() error { return flush(a.w) }
