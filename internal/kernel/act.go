package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// run acts and leaves.
func (c *crossing) run(act Act) (*holdfast.Outcome, error) {
	err := c.leave(c.perform(act))
	return c.outcome(), err
}

// ended is how an act ended.
type ended struct {
	out holdfast.Output
	err error
	// deaf says that the hand ignored its context and was left behind.
	deaf bool
	// unstarted says that the hand was never called, or that it says that
	// what it was to do never began.
	unstarted bool
	// partial says that its output is what there was when it was stopped.
	partial bool
	putBack string        // what became of the work of an act that failed
	news    *posture.News // what a run of code has to tell
}

// How long a hand may take to obey the end of its context before it is left
// behind and named: at a halt, and otherwise.
const (
	haltGrace   = 25 * time.Millisecond
	cancelGrace = 5 * time.Second
)

// performed runs the hand in a goroutine of its own, so that one which ignores
// its context cannot keep a halt from being recorded. On a context that has
// ended it is not called at all.
func (c *crossing) performed(act Act) ended {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.j.contract.ActTime(), errTimeout)
	defer cancel()
	if d := c.j.req.Deadline; !d.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, d, errTimeout)
		defer stop()
	}
	if ctx.Err() != nil {
		return ended{err: context.Cause(ctx), unstarted: true}
	}
	in := c.inside()
	if c.j.asksOutput() {
		in.soFar = c.judgeSoFar()
	}
	ctx = within(ctx, in)
	ch := make(chan ended, 1)
	go func() { ch <- guarded(ctx, act) }()
	select {
	case e := <-ch:
		return c.settleCause(ctx, e)
	case <-ctx.Done():
	}
	grace := time.NewTimer(graceFor(context.Cause(ctx)))
	defer grace.Stop()
	select {
	case e := <-ch:
		return c.settleCause(ctx, e)
	case <-grace.C:
		go func() { c.lateNews((<-ch).err) }()
		return c.settleCause(ctx, ended{deaf: true, err: context.Cause(ctx)})
	}
}

var errTimeout = errors.New("the act's time is over")

func graceFor(cause error) time.Duration {
	if holdfast.KindOf(cause) == holdfast.KindHalted {
		return haltGrace
	}
	return cancelGrace
}

// settleCause lets the reason for the context's end stand above whatever error
// the hand made of it, but for what the code did to its walls.
func (c *crossing) settleCause(ctx context.Context, e ended) ended {
	if e.err != nil && ctx.Err() != nil && !posture.IsNews(e.err) {
		var stopped *posture.Stopped
		e.partial = errors.As(e.err, &stopped)
		e.err = context.Cause(ctx)
	}
	return e
}

// guarded turns a hand's panic into an error.
func guarded(ctx context.Context, act Act) (e ended) {
	defer func() {
		if r := recover(); r != nil {
			e = ended{err: &holdfast.Error{Kind: holdfast.KindOperation, Why: "the hand panicked", Err: fmt.Errorf("panic: %v", r)}}
		}
	}()
	out, err := act(ctx)
	news, err := posture.TakeNews(err)
	return ended{out: out, err: err, unstarted: errors.Is(err, holdfast.ErrNotStarted) && !usedAny(out), news: news}
}

// usedAny says whether something was used, whatever else is said of it.
func usedAny(out holdfast.Output) bool {
	for _, n := range out.Used {
		if n > 0 {
			return true
		}
	}
	return false
}
