package egress

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/frames"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/pieces"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/modeltext"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/substitute"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

const (
	// maxQueue and maxQueued bound the events that wait for what follows them,
	// and their bytes.
	maxQueue  = 256
	maxQueued = 1 << 20
	// patience is how long an event waits before its last words are let go, if
	// they are ordinary ones.
	patience = 100 * time.Millisecond
)

// events gives an answer to the client event by event. Each event is redacted by
// itself; what a model says in pieces, over many events, is redacted as one text
// too, by place: an event waits for the next of its kind only while its own last
// word may be the head of something to mask, and goes on at a lull where that is
// an ordinary word (Stream.Yield). A secret whose halves come in two events is
// masked in the first of them; in other strings, which wait for nothing, the
// second half is.
func (a *answer) events(ctx context.Context, in io.Reader, f frames.Frame) error {
	a.flush = true
	e := &events{a: a, frame: f, places: map[string]*place{}, tails: map[string][][]byte{}}
	if w, ok := a.w.(*patientWriter); ok {
		w.takeOver()
	}
	a.begin()
	if err := a.flushNow(); err != nil {
		return err
	}
	a.header, a.resp.Header = nil, nil // an answer may last long
	r := &frames.Blocks{In: in, Frame: f, Pieces: &a.p.pieces, Wait: e.sent}
	defer r.Done()
	return e.leave(e.all(ctx, r))
}

// all reads events until the answer ends.
func (e *events) all(ctx context.Context, r *frames.Blocks) error {
	for ctx.Err() == nil {
		block, err := r.Next()
		if err != nil && err != io.EOF {
			return e.abandon(e.a.readError(err))
		}
		if len(block) > 0 {
			if err := e.aside(block, r); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return e.end()
		}
	}
	return ctx.Err()
}

// events is the state between events. mu guards all of it, and the answer: the
// timer's goroutine writes too.
type events struct {
	a     *answer
	frame frames.Frame

	mu     sync.Mutex
	places map[string]*place
	tails  map[string][][]byte // the ends of the last other strings, by their place
	queue  []*pieces.Event
	held   int    // bytes of the queue
	out    []byte // what may go, and has not been written yet
	tick   int
	timer  *time.Timer
	waits  bool // the timer runs
	ended  bool
	gate   bool // a call of a tool waits to be judged
	err    error

	signed substitute.SignedParts

	pieces *modeltext.PieceReader // of an answer whose placeholders are restored

	reading frames.Pieces
	plain   []byte // the last field beside data in which nothing was found
	key     []byte // of the place in hand
}

// place is one text that comes in pieces, and when its last piece came.
type place struct {
	*pieces.Text
	used int
}

// aside takes a block, and those behind it that have come already, in a goroutine
// that is not the reader's: a stack never shrinks to less than what waits on it
// needs, and this one waits for long while nothing comes.
func (e *events) aside(block []byte, r *frames.Blocks) error {
	return e.a.p.out.cleaners.Asides.Do(func() error {
		for ; len(block) > 0; block = r.Come() {
			if err := e.take(block); err != nil {
				return err
			}
		}
		return nil
	})
}

// take reads one event; what can go waits only for those that have come already.
func (e *events) take(block []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	if e.a.mode == domain.Restore {
		e.a.keepText(block)
	}
	if err := e.read(block); err != nil {
		e.err = err
		return err
	}
	if e.err = e.release(false); e.err != nil {
		return e.err
	}
	if most, size := e.bounds(); len(e.queue) > most || e.held > size {
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
	e.waits = true
	left := max(0, e.left())
	if e.timer == nil {
		e.timer = time.AfterFunc(left, e.quiet)
		return
	}
	e.timer.Reset(left)
}

// left is how long the first event of the queue has to wait still.
func (e *events) left() time.Duration {
	limit := patience
	if e.a.p.out.patience > 0 {
		limit = e.a.p.out.patience
	}
	return limit - time.Since(e.queue[0].Came)
}

// quiet is the end of the wait, if the event that is first now has waited so long:
// what is ordinary at the end of a text goes on. A stream that goes on in time never
// comes to that.
func (e *events) quiet() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waits = false
	if e.ended || e.err != nil || len(e.queue) == 0 {
		return
	}
	if e.left() > 0 {
		e.wait()
		return
	}
	for _, p := range e.places {
		if !p.Waits() {
			continue
		}
		if e.err = p.Stream().Yield(); e.err != nil {
			break
		}
		p.Settle()
	}
	if e.err == nil {
		e.err = e.release(false)
	}
	if err := e.send(); e.err == nil {
		e.err = err
	}
	if e.err != nil {
		_ = e.a.resp.Body.Close() // wakes the reader, which ends the answer
	}
}

// send writes what may go, in one piece.
func (e *events) send() error {
	if len(e.out) == 0 {
		return nil
	}
	_, err := e.a.Write(e.out)
	if e.out = e.out[:0]; cap(e.out) > frames.MaxKept {
		e.out = nil
	}
	return err
}

// sent is send, before the next events are waited for.
func (e *events) sent() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = e.send()
	}
	return e.err
}

// leave writes what may go still, and ends the timer, whose goroutine writes
// nothing afterwards. It returns why the answer ended.
func (e *events) leave(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	if e.timer != nil {
		e.timer.Stop()
	}
	for _, p := range e.places {
		e.leavePlace(p)
	}
	if failed := e.send(); err == nil {
		err = failed
	}
	return err
}

// end is the end of the answer: all that was held is judged and goes on.
func (e *events) end() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	for _, p := range e.places {
		if err := p.Close(); err != nil {
			return err
		}
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
	free, err := e.pass(all)
	if err != nil {
		return err
	}
	for len(e.queue) > 0 {
		next := e.queue[0]
		if next.Gated && !free {
			return nil
		}
		for _, s := range next.Slots {
			if !all && !s.Done() {
				return nil
			}
		}
		e.queue[0] = nil
		e.queue = e.queue[1:]
		e.held -= next.Size()
		if e.out = next.Append(e.out); len(e.out) >= pieceSize {
			if err := e.send(); err != nil {
				return err
			}
		}
	}
	e.queue = nil
	return e.refused()
}

// refused is the error of a domain that takes no answer with a finding.
func (e *events) refused() error {
	rules := e.a.listRules()
	if rules.Secrets != domain.Refuse && e.a.d.Personal != domain.Refuse {
		return nil
	}
	list := e.a.got.findings
	for _, p := range e.places {
		list = append(list[:len(list):len(list)], p.Stream().Findings()...)
	}
	if list = rules.ListRefused(list); len(list) == 0 {
		return nil
	}
	return rules.Refuse("the answer", list)
}

// flushNow sends the header, so that a client knows that the stream is open.
func (a *answer) flushNow() error { return flush(a.w) }
