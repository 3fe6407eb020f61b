package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/ledger"
)

// What there was of a run when its caller gave up is given, in an entry that
// says that it was not done; what K8 refuses of it is not, and where a person
// halted it nothing is.
func TestAStoppedRunIsNotDone(t *testing.T) {
	gaveUp := &holdfast.Error{Kind: holdfast.KindCanceled, Why: "stopped by who asked"}
	cases := []struct {
		name, said string
		outcome    ledger.Outcome
		kind       holdfast.Kind
		halt       bool
	}{
		{"by its caller", `{"ok":true}`, ledger.Canceled, holdfast.KindCanceled, false},
		{"by its caller, with what may not be shown", `{"key":1}`, ledger.Withheld, holdfast.KindEvalFailure, false},
		{"by a person", `{"ok":true}`, ledger.Halted, holdfast.KindHalted, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, outputRules)
			ctx, cancel := context.WithCancelCause(t.Context())
			out, err := w.k.Cross(ctx, w.req("test/low", `{}`), func(act context.Context) (holdfast.Output, error) {
				if c.halt {
					go w.k.Halt("ann", "enough")
				} else {
					cancel(gaveUp)
				}
				<-act.Done()
				return holdfast.Output{Body: json.RawMessage(c.said), ExitCode: 137, Ran: &holdfast.Ran{State: "COMPLETED", Walls: []string{"pid", "net"}}}, &posture.Stopped{Run: "r", Err: context.Cause(act)}
			})
			e := w.entries(holdfast.Local)[0]
			if holdfast.KindOf(err) != c.kind || e.Outcome != c.outcome || e.State != holdfast.Faulted || e.ExitCode != 137 || e.Run != "COMPLETED" || !slices.Equal(e.Walls, []string{"pid", "net"}) {
				t.Fatalf("%v: %+v", err, e)
			}
			given := c.outcome == ledger.Canceled
			if given != (out.Output != nil) || given && string(out.Output.Body) != c.said {
				t.Errorf("given: %+v", out.Output)
			}
			if he := (*holdfast.Error)(nil); given && (!errors.As(err, &he) || he.Why != "stopped by who asked" || e.Why != he.Why) {
				t.Errorf("%v, in the entry %q", err, e.Why)
			}
		})
	}
}
