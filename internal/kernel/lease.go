package kernel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/flight"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// MaxLease is the longest time a caller may act between Enter and Exit.
const MaxLease = 10 * time.Minute

// nameLeases is the rule of the refusal of one more.
const nameLeases = "leases/open"

func noLease() holdfast.Opinion {
	op := deny(holdfast.K3, holdfast.KindBounds,
		fmt.Sprintf("%d crossings of this agent are open under leases", flight.MaxLeases),
		"leave one with Exit, or wait until a lease runs out")
	op.State = "EXCEEDED"
	return nameDenial(nameLeases, op)
}

// Crossing is a crossing whose caller acts itself, between Enter and Exit.
type Crossing struct {
	c     *crossing
	ends  time.Time
	stop  context.CancelFunc
	once  sync.Once
	after func() bool
}

// Enter takes a request to ACTIVE for a caller that acts itself, under a
// lease of at most MaxLease: the caller must call Exit before it runs out, else
// the crossing is closed as FAULTED, abandoned. Errors are those of Cross; the
// outcome is never nil, and the Crossing is nil only with an error. Where a
// settled result was given back (a replay) nothing is to be done: the outcome
// has it, and the Crossing has ended: its context is done, and Exit is an
// AbandonedError. Where flight.MaxLeases of the agent are open, one more is refused
// under K3 with the rule leases/open, and recorded as any refusal is.
func (k *Kernel) Enter(ctx context.Context, req holdfast.Request, lease time.Duration) (*Crossing, *holdfast.Outcome, error) {
	if lease <= 0 || lease > MaxLease {
		return nil, &holdfast.Outcome{Boundary: req.Boundary}, &holdfast.Error{Kind: holdfast.KindValue, Why: "a lease is longer than nothing and at most " + MaxLease.String()}
	}
	c, err := k.enter(ctx, &req, true, byCaller)
	if c.machine.state() != holdfast.Active {
		if err != nil {
			return nil, c.outcome(), err
		}
		return c.past(), c.outcome(), nil
	}
	if t := c.j.contract.Timeout; t > 0 {
		lease = min(lease, t)
	}
	if d := req.Deadline; !d.IsZero() {
		lease = min(lease, max(d.Sub(k.now()), 0))
	}
	x := &Crossing{c: c, ends: k.now().Add(lease)}
	lctx, cancel := context.WithTimeoutCause(c.ctx, lease, &holdfast.Error{Kind: holdfast.KindAbandoned, Why: "the lease of " + lease.String() + " ran out"})
	x.stop = cancel
	c.ctx = within(lctx, c.inside())
	x.after = context.AfterFunc(lctx, x.expire)
	out := *c.outcome()
	return x, &out, nil
}

// past is the lease of a crossing that ended before anybody acted.
func (c *crossing) past() *Crossing {
	ctx, stop := context.WithCancelCause(c.caller)
	stop(&holdfast.Error{Kind: holdfast.KindAbandoned, Crossing: c.j.id, Why: "the crossing ended before its act: its result was given back"})
	c.ctx = ctx
	x := &Crossing{c: c, ends: c.k.now()}
	x.once.Do(func() {})
	return x
}

// ID is the crossing's id.
func (x *Crossing) ID() string { return x.c.j.id }

// Context ends when halt cuts the crossing, the caller of Enter gives up, or
// the lease runs out. Whoever acts must heed it.
func (x *Crossing) Context() context.Context { return x.c.ctx }

// Expires is when the lease runs out.
func (x *Crossing) Expires() time.Time { return x.ends }

// Exit ends the crossing with what came out, or with the act's error. It
// returns as Cross does. A second Exit, and one after the lease, is an
// AbandonedError and changes nothing.
func (x *Crossing) Exit(out holdfast.Output, actErr error) (*holdfast.Outcome, error) {
	var o *holdfast.Outcome
	err := error(&holdfast.Error{Kind: holdfast.KindAbandoned, Crossing: x.ID(), Why: "the crossing has ended: it was left already, or its lease ran out"})
	x.once.Do(func() {
		x.after()
		e := ended{out: out, err: actErr}
		if actErr != nil && x.c.ctx.Err() != nil && !posture.IsNews(actErr) {
			e.err = context.Cause(x.c.ctx)
		}
		x.stop()
		err = x.c.leave(e)
		o = x.c.outcome()
	})
	if o == nil {
		x.c.lateNews(actErr)
		o = &holdfast.Outcome{Crossing: x.ID(), Boundary: x.c.out.Boundary}
	}
	return o, err
}

// expire closes a crossing whose caller did not come back.
func (x *Crossing) expire() {
	x.once.Do(func() {
		cause := context.Cause(x.c.ctx)
		x.stop()
		if err := x.c.leave(ended{err: cause, deaf: holdfast.KindOf(cause) == holdfast.KindHalted}); err != nil {
			x.c.k.log.Warn("a crossing was closed without its caller", "crossing", x.ID(), "why", err)
		}
	})
}
