package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// An act that ran code tells of every other end by an error that is a
// *sandbox.News: which rows of the sandbox's error tables it is (spec 003 2.1 and
// 2.2). The kernel takes it off, so that a run that ended is no failure of its
// crossing, and tells each row like a gate's: a line of the log at its level, an
// event of the crossing's span, and, from WARNING on, one of the ledger.

// eventEnded is what the ledger calls a run that a limit or a wall ended, or kept
// from beginning.
const eventEnded = "sandbox_ended"

// ended records what a run came to, unless another event or the entry alone tells it.
func (k *Kernel) ended(tx Tx, j *judgement, n *posture.News) error {
	data := n.EventData()
	if data == nil {
		return nil
	}
	data["agent"], data["session"], data["boundary"] = j.who.Agent, j.who.Session, j.contract.Boundary
	return k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: eventEnded, Who: j.who.Principal,
		Subject: j.who.Agent, Data: data})
}

// told tells of the run's rows; of an escape attempt caught does.
func (c *crossing) told(n *posture.News) {
	if n == nil {
		return
	}
	j := c.j
	for _, s := range n.Signals {
		if s.Event == traceEscape {
			continue
		}
		args := []any{"trace", s.Event, "state", visible.Shorten(string(n.State)), "request_id",
			visible.Shorten(n.Run), "crossing", j.id, "boundary", j.recordedBoundary(), "agent", j.who.Agent,
			"exit", n.Exit}
		if n.Err != nil {
			args = append(args, "kind", string(holdfast.KindOf(n.Err)), "why", string(c.k.mask(n.Err.Error())))
		}
		c.k.log.Log(context.Background(), s.Level, "a run of code ended", args...)
		if c.span != nil {
			c.span.AddEvent(s.Event, trace.WithAttributes(attribute.String("holdfast.state",
				visible.Shorten(string(n.State))), attribute.String("holdfast.request", visible.Shorten(n.Run)),
				attribute.Int("holdfast.exit", n.Exit)))
		}
	}
}
