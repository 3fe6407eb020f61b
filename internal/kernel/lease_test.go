package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/kernel/flight"
	"github.com/holdfast-dev/holdfast/ledger"
)

// A replay asked for with Enter gives the settled result back and a lease that
// has ended: leaving it is an error by name, and records nothing.
func TestK5_D10_replay_of_a_lease(t *testing.T) {
	w := newWorld(t, "")
	var n atomic.Int64
	first, err := w.k.Cross(t.Context(), w.keyed("test/cost", `{"a":1}`, "k1"), counted(&n))
	if err != nil {
		t.Fatal(err)
	}
	x, out, err := w.k.Enter(t.Context(), w.keyed("test/cost", `{"a":1}`, "k1"), time.Minute)
	if err != nil || x == nil || !out.Replayed || string(out.Output.Body) != `{"act":1}` {
		t.Fatalf("%v %+v %v", x, out, err)
	}
	if x.ID() != out.Crossing || x.ID() == first.Crossing {
		t.Error("the lease's id", x.ID())
	}
	if x.Context().Err() == nil || holdfast.KindOf(context.Cause(x.Context())) != holdfast.KindAbandoned {
		t.Error("its context is open:", context.Cause(x.Context()))
	}
	if x.Expires().After(w.now()) {
		t.Error("it expires", x.Expires())
	}
	before := len(w.entries(holdfast.Local))
	for range 2 {
		left, err := x.Exit(holdfast.Output{Body: []byte(`{"act":2}`)}, nil)
		if holdfast.KindOf(err) != holdfast.KindAbandoned || left == nil || left.Crossing != x.ID() {
			t.Errorf("left: %+v %v", left, err)
		}
	}
	if after := len(w.entries(holdfast.Local)); after != before || n.Load() != 1 || w.spent() != 10 {
		t.Error("leaving it changed something:", before, after, n.Load(), w.spent())
	}
}

// An agent that enters and never leaves has so many leases and no more: one more
// is refused by name, with an entry and without a begin; others are not its
// concern, calls that the kernel makes are not counted, and a lease that ends
// makes room.
func TestLeasesOfOneAgentAreBounded(t *testing.T) {
	w := newWorld(t, "")
	var open []*kernel.Crossing
	for i := range flight.MaxLeases {
		x, _, err := w.k.Enter(t.Context(), w.req("test/low", fmt.Sprintf(`{"n":%d}`, i)), time.Minute)
		if err != nil {
			t.Fatal(i, err)
		}
		open = append(open, x)
	}
	before := len(w.entries(holdfast.Local))
	x, out, err := w.k.Enter(t.Context(), w.req("test/low", `{"more":1}`), time.Minute)
	if x != nil || holdfast.KindOf(err) != holdfast.KindBounds || out.Verdict != holdfast.Deny || out.Deciding().Rule != "leases/open" {
		t.Fatalf("one more: %v %+v", err, out)
	}
	all := w.entries(holdfast.Local)
	if len(all) != before+1 || all[len(all)-1].Outcome != ledger.Denied || all[len(all)-1].BeginSeq != nil {
		t.Errorf("its record: %d of %d, %+v", len(all), before+1, all[len(all)-1])
	}
	other := w.req("test/low", `{"other":1}`)
	other.Token = w.who("another")
	y, _, err := w.k.Enter(t.Context(), other, time.Minute)
	if err != nil {
		t.Fatal("another agent's:", err)
	}
	var n atomic.Int64
	if _, err := w.k.Cross(t.Context(), w.req("test/low", `{"call":1}`), counted(&n)); err != nil || n.Load() != 1 {
		t.Error("a call:", err)
	}
	for _, end := range []*kernel.Crossing{open[0], y} {
		if _, err := end.Exit(holdfast.Output{Body: []byte(`{}`)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if x, _, err = w.k.Enter(t.Context(), w.req("test/low", `{"more":1}`), time.Minute); err != nil {
		t.Fatal("after one was left:", err)
	}
	for _, end := range slices.Concat(open[1:], []*kernel.Crossing{x}) {
		if _, err := end.Exit(holdfast.Output{Body: []byte(`{}`)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if f := w.k.Flights(); len(f) != 0 {
		t.Errorf("%d flights are left", len(f))
	}
}
