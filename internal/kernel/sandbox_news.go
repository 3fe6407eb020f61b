package kernel

import (
	"context"
	"errors"
	"log/slog"

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

// heard takes the news off an act's error.
func heard(err error) (*posture.News, error) {
	var n *posture.News
	if errors.As(err, &n) {
		return n, n.Err
	}
	return nil, err
}

// ended records what a run came to. What its code did has an event of its own
// (violated, answer), and of a program that fails by itself its exit code stands
// in the entry.
func (k *Kernel) ended(tx Tx, j *judgement, n *posture.News) error {
	if n == nil || len(n.Signals) == 0 || n.Signals[0].Level < slog.LevelWarn || n.State == posture.SyscallBlocked {
		return nil
	}
	data := map[string]any{"level": levelWord(n.Signals[0].Level), "trace": n.Signals[0].Event,
		"request_id": visible.Shorten(n.Run), "state": visible.Shorten(string(n.State)),
		"exit_code": n.Exit, "agent": j.who.Agent, "session": j.who.Session, "boundary": j.contract.Boundary}
	if n.Err != nil {
		data["kind"] = string(holdfast.KindOf(n.Err))
	}
	return k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: eventEnded, Who: j.who.Principal, Subject: j.who.Agent, Data: data})
}

// levelWord is a level as the document writes it.
func levelWord(l slog.Level) string {
	switch {
	case l >= holdfast.LevelCritical:
		return "CRITICAL"
	case l >= slog.LevelError:
		return "ERROR"
	case l >= slog.LevelWarn:
		return "WARNING"
	}
	return "INFO"
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
