package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Bounds of what waits to be written to one peer.
const (
	maxQueued      = 64
	maxQueuedBytes = 16 << 20
)

// ErrPeerGone is the error of a line for a closed peer.
var ErrPeerGone = errors.New("the peer is gone")

// outbox is the one way to a peer. Lines leave whole and in the order in which
// they were taken; what waits is bounded in number and bytes, so that a peer
// that does not read costs its senders time and nobody memory.
type outbox struct {
	mu    sync.Mutex
	lines []*queued
	bytes int
	// ended takes no more lines; what is queued is still written.
	ended bool
	// now, unless it is nil, is the peer as it can be written to without
	// waiting, and left whether somebody does.
	now  *prompt
	left bool
	// changed is closed and replaced whenever something above changes that
	// somebody waits for.
	changed chan struct{}
}

// queued is one line that an outbox took.
type queued struct {
	line []byte
	// to is the key of the client's request that the line belongs to, or "".
	to string
	// ctx says how long the line may still leave.
	ctx context.Context
	// leaving is set before the first byte is written, under the outbox's
	// lock. A line without it was never seen by the peer.
	leaving bool
	// own says that whoever brought the line writes it, and rest is what the
	// peer did not take at once, nil where it was not tried.
	own  bool
	rest []byte
}

// newOutbox is the way to a peer. now may be nil.
func newOutbox(now *prompt) *outbox { return &outbox{now: now, changed: make(chan struct{})} }

// signal wakes everyone who waits. The caller holds mu.
func (o *outbox) signal() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// try takes a line if there is room, and else returns what to wait for. taken,
// unless it is nil, is called before anybody can see the line.
func (o *outbox) try(ctx context.Context, to string, line []byte, taken func()) (*queued, <-chan struct{}, error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil, nil, ErrPeerGone
	}
	if len(o.lines) >= maxQueued || (len(o.lines) > 0 && o.bytes+len(line) > maxQueuedBytes) {
		return nil, o.changed, nil
	}
	q := &queued{line: line, to: to, ctx: ctx}
	o.lines = append(o.lines, q)
	o.bytes += len(line)
	if taken != nil {
		taken()
	}
	if o.now != nil && len(o.lines) == 1 && !o.left {
		q.leaving, q.own, o.left = true, true, true
	} else {
		o.signal()
	}
	return q, nil, nil
}

// leave writes a line that nothing waits before, as far as the peer takes it
// without being waited for: the writer need not be woken for it.
func (o *outbox) leave(q *queued) {
	if q == nil || !q.own {
		return
	}
	line := append(q.line, '\n')
	n := o.now.write(line)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = false
	first := len(o.lines) > 0 && o.lines[0] == q
	switch {
	case n < len(line):
		if q.rest = line[n:]; !first { // the end dropped it; a line leaves whole
			o.lines, o.bytes = []*queued{q}, len(q.line)
		}
	case first:
		o.bytes -= len(q.line)
		o.lines = slices.Delete(o.lines, 0, 1)
	}
	if len(o.lines) > 0 || o.ended {
		o.signal()
	}
}

// offer takes a line if there is room now. The outbox owns the line after.
func (o *outbox) offer(to string, line []byte) bool {
	q, _, _ := o.try(context.Background(), to, line, nil)
	o.leave(q)
	return q != nil
}

// urge takes a few words that stop what has begun, whether there is room or not:
// were they dropped, it would go on for ever. There is at most one for each line
// that was taken, so that they are bounded with those.
func (o *outbox) urge(to string, line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	o.lines = append(o.lines, &queued{line: line, to: to, ctx: context.Background()})
	o.bytes += len(line)
	o.signal()
}

// put waits for room until ctx ends. The outbox owns the line after, and writes
// it only while ctx lives: what has been cancelled or halted does not leave.
func (o *outbox) put(ctx context.Context, to string, line []byte) (*queued, error) {
	return o.putThen(ctx, to, line, nil)
}

// putThen is put, with try's taken.
func (o *outbox) putThen(ctx context.Context, to string, line []byte, taken func()) (*queued, error) {
	for {
		q, wait, err := o.try(ctx, to, line, taken)
		if wait == nil {
			o.leave(q)
			return q, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// withdraw takes back a line that has not begun to leave, and says whether it
// never will. A nil line cannot be taken back.
func (o *outbox) withdraw(q *queued) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q == nil || q.leaving {
		return false
	}
	if i := slices.Index(o.lines, q); i >= 0 {
		o.drop(i)
	}
	return true
}

// drop forgets a line. The caller holds mu.
func (o *outbox) drop(i int) {
	o.bytes -= len(o.lines[i].line)
	o.lines = slices.Delete(o.lines, i, i+1)
	o.signal()
}

// end takes no more lines. With drop, what is queued is thrown away, but for
// what is left of a line that has begun to leave.
func (o *outbox) end(drop bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	switch {
	case !drop:
	case len(o.lines) > 0 && o.lines[0].rest != nil:
		o.lines, o.bytes = o.lines[:1], len(o.lines[0].line)
	default:
		o.lines, o.bytes = nil, 0
	}
	o.signal()
}

// run writes lines until end, or until write fails; then nothing is taken any
// more.
func (o *outbox) run(write func(to string, line []byte) error) error {
	for {
		q, wait := o.head()
		if q == nil {
			if wait == nil {
				return nil
			}
			<-wait
			continue
		}
		var err error
		if q.rest != nil {
			_, err = o.now.Write(q.rest)
		} else {
			err = write(q.to, q.line)
		}
		if err != nil {
			o.end(true)
			return err
		}
		o.pop()
	}
}

// head returns the oldest line, or what to wait for, or neither at the end. A
// line whose time is over is dropped; one that is returned is leaving, and
// stays counted until it is written.
func (o *outbox) head() (*queued, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left {
		return nil, o.changed
	}
	for len(o.lines) > 0 {
		q := o.lines[0]
		if q.rest != nil || q.ctx.Err() == nil {
			q.leaving = true
			return q, nil
		}
		o.drop(0)
	}
	if o.ended {
		return nil, nil
	}
	return nil, o.changed
}

func (o *outbox) pop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) > 0 {
		o.drop(0)
	}
}
