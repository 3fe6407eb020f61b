package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestFeatureHearsAgainOfEachEntry: each entry of one transaction is delivered to a hook that had failed.
func TestFeatureHearsAgainOfEachEntry(t *testing.T) {
	var repaired atomic.Bool
	repaired.Store(true)
	var mu sync.Mutex
	seen := map[string]int{}
	p := &probe{onEntry: func(tx kernel.FeatureTx, _ kernel.Part, e *ledger.Entry) error {
		if !repaired.Load() {
			return errors.New("no")
		}
		mu.Lock()
		seen[e.ID]++
		mu.Unlock()
		return nil
	}}
	w := newWorld(t, "", withFeature(p))
	w.held(w.req("test/high", `{}`))
	w.advance(48 * time.Hour)
	repaired.Store(false)
	w.refused(w.req("test/high", `{}`), holdfast.K7, holdfast.KindApprovalTimeout)
	repaired.Store(true)
	w.untilReacted()
	mu.Lock()
	defer mu.Unlock()
	for _, e := range w.entries(holdfast.Local) {
		if seen[e.ID] == 0 {
			t.Errorf("the entry of %s (%s) was never delivered", e.ID, e.Outcome)
		}
	}
}

// TestFeatureTaskIsNotBehindThoseThatFail: tasks that fail do not keep later ones from being done.
func TestFeatureTaskIsNotBehindThoseThatFail(t *testing.T) {
	var good atomic.Int64
	p := &probe{onReact: func(_ context.Context, task kernel.Task) error {
		if task.Name == "bad" {
			return errors.New("no")
		}
		good.Add(1)
		return nil
	}}
	w := newWorld(t, "", withFeature(p))
	later := func(name string) {
		if err := p.host.Commit(t.Context(),
			func(tx kernel.FeatureTx) error { return tx.Later(kernel.Task{Name: name}) }); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		later("bad")
	}
	_ = w.k.React(t.Context())
	later("good")
	for range 5 {
		w.advance(time.Second)
		_ = w.k.React(t.Context())
	}
	w.advance(5 * time.Minute)
	_ = w.k.React(t.Context())
	if good.Load() == 0 {
		t.Error("a task is never done behind 100 that fail")
	}
}

// TestFeatureThatFailsStopsOnce: a hook that fails at the denials too does not leave a stop for each.
func TestFeatureThatFailsStopsOnce(t *testing.T) {
	p := &probe{onEntry: func(kernel.FeatureTx, kernel.Part, *ledger.Entry) error { return errors.New("no") }}
	w := newWorld(t, "", withFeature(p))
	for i := range 50 {
		_, _ = w.cross(w.req("test/low", fmt.Sprintf(`{"i":%d}`, i)))
	}
	if n := len(w.k.Stops()); n > 1 {
		t.Errorf("%d stops of one agent, %d notices", n, len(w.told("feature_failed")))
	}
}

// TestFeatureStopsOfStopsEnd: a handler that stops on each stop ends.
func TestFeatureStopsOfStopsEnd(t *testing.T) {
	var n atomic.Int64
	p := &probe{}
	p.onSignal = func(tx kernel.FeatureTx, s signal.Signal) (map[string]any, error) {
		if _, ok := s.(signal.Stopped); !ok || n.Add(1) > 20000 {
			return nil, nil
		}
		_, err := tx.Stop(kernel.Stop{Tenant: holdfast.Local, Agent: "bob", Cause: "x", Why: "y"})
		return nil, err
	}
	newWorld(t, "", withFeature(p))
	start := time.Now()
	_, err := p.host.Stop(t.Context(), kernel.Stop{Tenant: holdfast.Local, Agent: "alice", Cause: "x", Why: "y"})
	if n.Load() > 100 {
		t.Errorf("%d stops deep in %s: %v", n.Load(), time.Since(start), err)
	}
}

// TestFeatureStopsNothingAfterItsTransaction: a transaction that is over arms nothing.
func TestFeatureStopsNothingAfterItsTransaction(t *testing.T) {
	p := &probe{}
	w := newWorld(t, "", withFeature(p))
	var kept kernel.FeatureTx
	if err := p.host.Commit(t.Context(), func(tx kernel.FeatureTx) error { kept = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	_, err := kept.Stop(kernel.Stop{Tenant: holdfast.Local, Cause: "x", Why: "y"})
	if err == nil || len(w.k.Stops()) != 0 {
		t.Errorf("%v, %+v", err, w.k.Stops())
	}
}

// TestFeatureStopThatIsRefused: a stop that cannot be written undoes its transaction, whatever the feature
// makes of the error.
func TestFeatureStopThatIsRefused(t *testing.T) {
	p := &probe{}
	w := newWorld(t, "", withFeature(p))
	long := string(make([]byte, 2000))
	err := p.host.Commit(t.Context(), func(tx kernel.FeatureTx) error {
		_, err := tx.Stop(kernel.Stop{Tenant: long, Cause: "x", Why: "y"})
		if err == nil {
			t.Error("taken")
		}
		return nil
	})
	if err == nil || len(w.k.Stops()) != 0 {
		t.Errorf("%v, %d stops", err, len(w.k.Stops()))
	}
}

// TestFeatureStopsThatEnded: stops that ended by themselves do not keep the kernel from starting.
func TestFeatureStopsThatEnded(t *testing.T) {
	dir := t.TempDir()
	p := &probe{}
	w := reopen(t, dir, "", withFeature(p))
	for i := range 11 {
		err := p.host.Commit(t.Context(), func(tx kernel.FeatureTx) error {
			for range 1000 {
				if _, err := tx.Stop(kernel.Stop{Tenant: holdfast.Local, Agent: fmt.Sprint("a", i), Cause: "x",
					Why:   "y",
					Until: w.now().Add(-time.Minute)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.k.Sweep(); err != nil {
		t.Log(err)
	}
	w.passes(w.req("test/low", `{}`))
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.k = nil
	w = reopen(t, dir, "", withFeature(p))
	w.passes(w.req("test/low", `{}`))
}

// TestFeatureReactionHoldsUpNoSweep: a sweep does not wait for a reaction.
func TestFeatureReactionHoldsUpNoSweep(t *testing.T) {
	hang, in := make(chan struct{}), make(chan struct{}, 9)
	p := &probe{onReact: func(context.Context, kernel.Task) error { in <- struct{}{}; <-hang; return nil }}
	w := newWorld(t, "", withFeature(p))
	if err := p.host.Commit(t.Context(),
		func(tx kernel.FeatureTx) error { return tx.Later(kernel.Task{Name: "slow"}) }); err != nil {
		t.Fatal(err)
	}
	<-in
	done := make(chan struct{})
	go func() { _, _ = w.k.Sweep(); close(done) }()
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		t.Error("the sweep waits for the reaction")
	}
	close(hang)
	<-done
}
