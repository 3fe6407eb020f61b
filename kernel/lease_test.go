package kernel_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
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
