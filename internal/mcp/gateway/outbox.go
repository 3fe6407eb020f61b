package gateway

import (
	"context"
	"errors"
	"io"
	"sync"
)

// Bounds of what waits to be written to one peer.
const (
	maxQueued      = 64
	maxQueuedBytes = 16 << 20
)

// errClosed is what a peer that has gone answers to every line.
var errClosed = errors.New("the peer is gone")

// outbox is the one way to a peer. Lines leave whole and in the order in which
// they were taken; what waits is bounded in number and bytes, so that a peer
// that does not read costs its senders time and nobody memory.
type outbox struct {
	mu    sync.Mutex
	lines [][]byte
	bytes int
	// ended takes no more lines; what is queued is still written.
	ended bool
	// changed is closed and replaced whenever something above changes.
	changed chan struct{}
}

func newOutbox() *outbox { return &outbox{changed: make(chan struct{})} }

// signal wakes everyone who waits. The caller holds mu.
func (o *outbox) signal() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// try takes a line if there is room, and else returns what to wait for.
func (o *outbox) try(line []byte) (<-chan struct{}, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil, errClosed
	}
	if len(o.lines) >= maxQueued || (len(o.lines) > 0 && o.bytes+len(line) > maxQueuedBytes) {
		return o.changed, nil
	}
	o.lines = append(o.lines, line)
	o.bytes += len(line)
	o.signal()
	return nil, nil
}

// offer takes a line if there is room now. The outbox owns the line after.
func (o *outbox) offer(line []byte) bool {
	wait, err := o.try(line)
	return wait == nil && err == nil
}

// put waits for room until ctx ends. The outbox owns the line after.
func (o *outbox) put(ctx context.Context, line []byte) error {
	for {
		wait, err := o.try(line)
		if wait == nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// end takes no more lines. With drop, what is queued is thrown away.
func (o *outbox) end(drop bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if drop {
		o.lines, o.bytes = nil, 0
	}
	o.signal()
}

// run writes lines to w until end, or until w fails; then nothing is taken
// any more.
func (o *outbox) run(w io.Writer) error {
	for {
		line, wait := o.head()
		if line == nil {
			if wait == nil {
				return nil
			}
			<-wait
			continue
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			o.end(true)
			return err
		}
		o.pop()
	}
}

// head returns the oldest line, or what to wait for, or neither at the end.
// The line stays counted until it is written.
func (o *outbox) head() ([]byte, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) > 0 {
		return o.lines[0], nil
	}
	if o.ended {
		return nil, nil
	}
	return nil, o.changed
}

func (o *outbox) pop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) == 0 {
		return
	}
	o.bytes -= len(o.lines[0])
	o.lines[0] = nil
	o.lines = o.lines[1:]
	o.signal()
}
