// Package deadline makes contexts that end at an instant and cost a timer only if something waits
// for them.
package deadline

import (
	"context"
	"sync"
	"time"
)

// limited is a context that ends with its parent or at an instant, like one of
// context.WithDeadline, but starts no timer until something waits for it: each gate has one and
// hardly ever waits.
type limited struct {
	context.Context // the parent
	at              time.Time

	mu    sync.Mutex
	ended bool            // guarded by mu
	waits context.Context // guarded by mu; made when something waits
	stop  context.CancelFunc
}

// After returns a context that ends after d, and the function that ends it at any time.
func After(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	l := &limited{Context: ctx, at: time.Now().Add(d)}
	return l, l.end
}

// Deadline implements context.Context.
func (l *limited) Deadline() (time.Time, bool) {
	if at, ok := l.Context.Deadline(); ok && at.Before(l.at) {
		return at, true
	}
	return l.at, true
}

// Done implements context.Context.
func (l *limited) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting().Done()
}

// Err implements context.Context. Once it is not nil, Done is closed.
func (l *limited) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits == nil && !l.ended && l.Context.Err() == nil && time.Now().Before(l.at) {
		return nil
	}
	return l.waiting().Err()
}

// waiting makes the context on which callers wait. The caller holds mu.
func (l *limited) waiting() context.Context {
	if l.waits == nil {
		l.waits, l.stop = context.WithDeadline(l.Context, l.at)
		if l.ended {
			l.stop()
		}
	}
	return l.waits
}

func (l *limited) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.stop != nil {
		l.stop()
	}
}
