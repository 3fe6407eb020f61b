package daemon

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/watch"
)

// TestD41a_NoRoomHaltsOnce: however many find no room, everything is halted once; and
// what halts everything is answered before all that waits.
func TestD41a_NoRoomHaltsOnce(t *testing.T) {
	d, _, down := up(t, watched)
	defer func() {
		_ = d.latch.Clear()
		down()
	}()
	w := d.watching
	full := func() (halting bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i := range maxFindings + 1000 {
			w.add(&watch.Finding{Condition: watch.Loop, Response: watch.Pause, Tenant: holdfast.Local, Agent: fmt.Sprint(i)})
		}
		w.add(&watch.Finding{Condition: watch.Loop, Response: watch.Halt, Tenant: holdfast.Local, Agent: "7"})
		if first := w.order[0]; first.agent != "7" || len(w.order) != maxFindings {
			t.Errorf("%+v is first of %d", first, len(w.order))
		}
		halting = w.halting
		w.order, w.waiting = nil, map[findingKey]*waitingFinding{} // thousands of answers are no part of this
		return halting
	}
	if !full() {
		t.Error("nobody halts")
	}
	until(t, "the halt", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return d.latch.Halted() && !w.halting
	})
	if n := countEvents(t, d, "halted"); n != 1 {
		t.Errorf("halted %d times", n)
	}
}
