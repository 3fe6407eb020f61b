package daemon

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
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
		for i := range maxFindings + 10 {
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

// TestD41a_WhatWasFoundLastIsSaidLast: of a condition that comes and goes faster than is
// answered, the last that is said is how it stands.
func TestD41a_WhatWasFoundLastIsSaidLast(t *testing.T) {
	is := watch.Finding{Condition: watch.Rapid, Response: watch.Alert, Tenant: holdfast.Local, Agent: "ada"}
	ended, other := is, is
	ended.Cleared, ended.Response, other.Agent = true, watch.Record, "bea"
	for name, found := range map[string][]watch.Finding{"it holds": {is, ended, other, is}, "it ended": {ended, is, other, ended}} {
		w := newWatching(nil, watch.Limits{})
		for i := range found {
			w.take(found[i : i+1])
		}
		var order []bool
		for _, k := range w.order {
			if k.agent == "ada" {
				order = append(order, k.cleared)
			}
		}
		if want := found[3].Cleared; len(w.order) != 3 || len(order) != 2 || order[0] == want || order[1] != want {
			t.Errorf("%s: %+v", name, w.order)
		}
	}
}
