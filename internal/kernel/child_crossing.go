package kernel

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// inside marks a context as belonging to a crossing that is under way.
type inside struct {
	id          string
	correlation string
	traceparent string
	// child says that Child was called: one may cross from here.
	child bool
	tasks *tasks
	// soFar judges what an act has given so far; nil of what is no act.
	soFar func(context.Context, holdfast.Output) error
}

type insideKey struct{}

func within(ctx context.Context, in inside) context.Context {
	return context.WithValue(ctx, insideKey{}, in)
}

func current(ctx context.Context) (inside, bool) {
	in, ok := ctx.Value(insideKey{}).(inside)
	return in, ok
}

// Child returns a context from which crossings may be made inside the one that
// ctx belongs to; they inherit its correlation and are crossings of their own
// (D1). Crossing on ctx itself is the re-entrancy error. Outside a crossing it
// returns ctx.
func Child(ctx context.Context) context.Context {
	in, ok := current(ctx)
	if !ok {
		return ctx
	}
	in.child = true
	return within(ctx, in)
}

// Traceparent returns the W3C header of the crossing that ctx belongs to, or
// "".
func Traceparent(ctx context.Context) string {
	in, _ := current(ctx)
	return in.traceparent
}

// CrossingID returns the id of the crossing that ctx belongs to, or "".
func CrossingID(ctx context.Context) string {
	in, _ := current(ctx)
	return in.id
}

// Go runs fn in a goroutine that belongs to the crossing of ctx: the crossing
// does not leave before fn has returned, and fn's context ends with the act
// (spec 003 section 1.1, invariant 7). Outside a crossing it is an error.
func Go(ctx context.Context, fn func(context.Context)) error {
	in, ok := current(ctx)
	if !ok || !in.tasks.add() {
		return &holdfast.Error{Kind: holdfast.KindTasks, Why: "no crossing is under way to which the task could belong"}
	}
	go func() {
		defer in.tasks.done()
		fn(ctx)
	}()
	return nil
}

// tasks counts what must end before a crossing leaves: goroutines started with
// Go, and child crossings.
type tasks struct {
	mu     sync.Mutex
	n      int           // guarded by mu
	closed bool          // guarded by mu
	idle   chan struct{} // guarded by mu; closed when n falls to zero after close
}

func (t *tasks) add() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.n++
	return true
}

func (t *tasks) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// close refuses further tasks and returns a channel that is closed once none
// is left.
func (t *tasks) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	ch := make(chan struct{})
	if t.n == 0 {
		close(ch)
	} else {
		t.idle = ch
	}
	return ch
}
