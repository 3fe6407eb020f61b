package kernel

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast"
)

// Versions keeps what agents' acts change, and puts it back (spec 001, layer 3,
// "Integration Points").
type Versions interface {
	Feature
	// Bind is called once, in New.
	Bind(h Host)
	// Before keeps what the agent works on, before an act whose contract says
	// on_error: rollback. An error of it keeps the act from beginning, and so does the
	// end of ctx, which ends when the crossing is cut or its caller gives up. after is
	// called once, whatever became of the act: where it failed, it puts back what was
	// kept, and says in one sentence what it did; else it lets go of it.
	Before(ctx context.Context, a Acting) (after func(ctx context.Context, failed bool) (string, error), err error)
	// Ended is told of each act that was begun, once its entry is durable. It must
	// not wait.
	Ended(a Acting)
}

// Acting is one act.
type Acting struct {
	Tenant, Agent, Session, Crossing, Boundary string
	Risk                                       holdfast.Risk
	Failed                                     bool
}

// OnErrorRollback is the Contract.OnError of an act whose work is put back when it
// fails.
const OnErrorRollback = "rollback"

func (c *crossing) acting() Acting {
	j := c.j
	return Acting{Tenant: j.tenant(), Agent: j.who.Agent, Session: j.who.Session, Crossing: j.id, Boundary: j.req.Boundary, Risk: j.contract.Risk}
}

// perform acts. Where the contract says so, what the agent works on is kept first,
// and put back when the act fails: by its error, or by the exit code of the program
// that it ran.
func (c *crossing) perform(act Act) ended {
	if c.j.contract.OnError != OnErrorRollback {
		return c.performed(act)
	}
	after, err := c.keepFirst()
	if err != nil {
		return ended{err: err, unstarted: true}
	}
	e := c.performed(act)
	failed := !e.unstarted && (e.err != nil || e.out.ExitCode != 0)
	e.putBack, err = after(context.WithoutCancel(c.caller), failed)
	if err != nil {
		c.k.log.Error("what a failed act changed could not be put back", "crossing", c.j.id, "err", err)
		c.k.notify(Notice{Level: "error", Event: "rollback_failed", Tenant: c.j.tenant(), Agent: c.j.who.Agent, Crossing: c.j.id, Boundary: c.j.req.Boundary,
			Why: "what a failed act changed could not be put back: " + c.k.quote(err.Error(), 256)})
		e.putBack = "what it changed could not be put back"
	}
	return e
}

// keepFirst keeps what the agent works on. That may take long: whoever ends the
// crossing meanwhile ends the keeping too, and the latch is asked once more, so that
// no act begins after it is set.
func (c *crossing) keepFirst() (after func(context.Context, bool) (string, error), err error) {
	if c.k.versions == nil {
		return nil, errNoVersions(errors.New("nobody keeps any here"))
	}
	after, err = c.k.versions.Before(c.ctx, c.acting())
	switch {
	case err != nil && c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case err != nil:
		return nil, errNoVersions(err)
	case c.ctx.Err() != nil:
		err = context.Cause(c.ctx)
	default:
		err = c.k.asked()
	}
	if err != nil {
		_, _ = after(context.WithoutCancel(c.caller), false) // nothing was done that could be put back
	}
	return after, err
}

func errNoVersions(err error) error {
	hint := "track its work tree under `snapshots: trees:`, with this agent among its agents"
	if he, ok := asError(err); ok && he.Hint != "" { // such as of a full disk
		hint = he.Hint
	}
	return &holdfast.Error{Kind: holdfast.KindOperation, Rule: "on_error/nothing kept", Why: "what the agent works on could not be kept first, as the contract asks (on_error: rollback): " + err.Error(),
		Hint: hint, Err: err}
}

// withPutBack adds to a failure what became of the work.
func withPutBack(err error, said string) error {
	if err == nil || said == "" {
		return err
	}
	if he, ok := asError(err); ok {
		own := *he
		own.Why += "; " + said
		own.PutBack = true
		return &own
	}
	return &holdfast.Error{Kind: holdfast.KindOperation, Why: err.Error() + "; " + said, Err: err, PutBack: true}
}

// tellVersions tells who keeps versions that an act has ended.
func (c *crossing) tellVersions(end *ending) {
	if c.k.versions == nil || end.unstarted {
		return
	}
	a := c.acting()
	a.Failed = end.err != nil
	c.k.versions.Ended(a)
}
