package daemon

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/review"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/watch"
	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestD41a_LateEscapeIsRecorded: an attempt that comes to light after its crossing has
// ended is recorded by the watch too, and names that crossing.
func TestD41a_LateEscapeIsRecorded(t *testing.T) {
	d, c, down := up(t, watched)
	defer down()
	token, err := d.Mint(holdfast.Identity{Agent: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	x, _, err := d.Kernel.Enter(t.Context(), holdfast.Request{Boundary: "test/act", Payload: []byte(`{}`), Token: token}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	<-x.Context().Done()
	until(t, "the entry of the lease's end", func() (ended bool) {
		err := d.store.View(t.Context(), func(tx kernel.Tx) error {
			leaves, err := tx.Crossing(holdfast.Local, x.ID())
			ended = slices.ContainsFunc(leaves, func(l ledger.Stored) bool { return l.Kind == ledger.KindEntry })
			return err
		})
		return err == nil && ended
	})
	if _, err := x.Exit(holdfast.Output{}, &sandbox.Escape{Run: "run-1", Call: sandbox.Call{Nr: 101, Name: "ptrace", Arch: "x86_64"}}); holdfast.KindOf(err) != holdfast.KindAbandoned {
		t.Fatal(err)
	}
	if g := answerTo(t, d, "ada", watch.Escape); g.Response != "record" || g.Severity != "HIGH" || g.Crossing != x.ID() || g.Review != "" {
		t.Errorf("%+v", g)
	}
	if w := waitingAbout(t, c, "ada"); len(w) != 1 || w[0].About != review.AboutEscape || stateOf(t, d, "ada").State != holdfast.AgentPaused {
		t.Errorf("%+v", w)
	}
}
