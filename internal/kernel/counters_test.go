package kernel_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/recount"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// Spec 001, layer 1; D9: the counters of money and iterations are what the ledger
// adds up to, over settlements, windows, crashes and clocks that go back; one that
// is not is named.
func Test001_Layer1_Counters_against_the_ledger(t *testing.T) {
	ls := []budget.Limit{{Scope: budget.Tenant, Resource: holdfast.MoneyMicro, Amount: 1 << 40, Window: 24 * time.Hour, Source: "test"},
		{Scope: budget.Session, Resource: holdfast.MoneyMicro, Amount: 1 << 40, Source: "test"}, {Scope: budget.Tenant, Resource: holdfast.Iterations, Amount: 1 << 40, Window: 24 * time.Hour, Source: "test"}}
	w := newWorld(t, "", limits(ls...))
	spend := func(reserve int64, used map[holdfast.Resource]int64, err error) {
		_, _ = w.k.Cross(t.Context(), w.pays("alice", reserve), func(context.Context) (holdfast.Output, error) {
			return holdfast.Output{Body: []byte(`{}`), Used: used}, err
		})
	}
	spend(100, nil, nil)
	spend(100, map[holdfast.Resource]int64{holdfast.MoneyMicro: 30}, nil)
	spend(100, map[holdfast.Resource]int64{holdfast.MoneyMicro: 500}, nil)
	spend(100, nil, holdfast.ErrNotStarted)
	spend(100, nil, errors.New("no"))
	w.passes(w.req("agent/step", `{}`))
	w.advance(24 * time.Hour)
	spend(7, nil, nil)
	w.advance(-24 * time.Hour)
	spend(9, nil, nil)
	check := func() (c recount.Counted) {
		t.Helper()
		c, err := recount.Check(t.Context(), w.store, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := check(); len(c.Astray) != 0 || c.Counters < 4 || c.Leaves < 16 {
		t.Fatalf("%+v", c)
	}
	draws, _, _ := budget.Plan(ls[1:2], nil, budget.Ask{Who: holdfast.Identity{Tenant: holdfast.Local, Agent: "alice", Session: "alice-s1"},
		Boundary: "test/low", Consumes: map[holdfast.Resource]int64{holdfast.MoneyMicro: 600}, Now: w.now()})
	if err := w.store.Update(t.Context(), func(tx kernel.Tx) error { return tx.Settle(draws, []int64{0}) }); err != nil {
		t.Fatal(err)
	}
	c := check()
	if len(c.Astray) != 1 || c.Astray[0].Ledger-c.Astray[0].Stored != 600 || c.Astray[0].Budget != draws[0].Name {
		t.Fatalf("a counter that somebody lowered is not named: %+v", c.Astray)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := recount.Check(ended, w.store, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it goes on after its time: %v", err)
	}
}

// D41, D3: what the daemon finds astray it raises to what the ledger adds up to,
// while crossings go on, and says so; of two counts the larger one holds.
func Test001_Layer1_Counters_that_were_lowered_are_raised(t *testing.T) {
	ls := []budget.Limit{{Scope: budget.Tenant, Resource: holdfast.MoneyMicro, Amount: 1000, Window: 24 * time.Hour, Source: "test"},
		{Scope: budget.Session, Resource: holdfast.MoneyMicro, Amount: 1000, Source: "test"}}
	w := newWorld(t, "", limits(ls...))
	for range 3 {
		w.passes(w.pays("alice", 300))
	}
	w.passes(w.pays("bob", 100))
	draws, _, _ := budget.Plan(ls, nil, budget.Ask{Who: holdfast.Identity{Tenant: holdfast.Local, Agent: "alice", Session: "alice-s1"},
		Boundary: "test/low", Consumes: map[holdfast.Resource]int64{holdfast.MoneyMicro: 900}, Now: w.now()})
	set := func(used ...int64) {
		t.Helper()
		if err := w.store.Update(t.Context(), func(tx kernel.Tx) error { return tx.Settle(draws, used) }); err != nil {
			t.Fatal(err)
		}
	}
	set(0, 0) // the tenant's falls to 100, the session's to nothing
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) { return holdfast.Output{Body: []byte(`{}`)}, nil })
			}
		}
	}()
	err := w.recounter.Compare(t.Context())
	close(stop)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	how := w.recounter.Compared()
	if len(how.Astray) != 2 || how.Read < 8 || how.Failed != "" {
		t.Fatalf("%+v", how)
	}
	if c, err := recount.Check(t.Context(), w.store, nil); err != nil || len(c.Astray) != 0 {
		t.Fatalf("afterwards: %+v, %v", c, err)
	}
	w.refusedAs(w.pays("alice", 101), holdfast.K3, holdfast.KindBounds)
	if n := w.events(holdfast.Local, "counters_astray"); len(n) != 1 || !strings.Contains(string(n[0].Data), `"stored":100`) {
		t.Errorf("%d events: %+v", len(n), n)
	}
	if w.recounter.Compare(t.Context()) != nil || len(w.recounter.Compared().Astray) != 2 {
		t.Error("what was mended is found again")
	}
	// More than the ledger says stays: nobody knows what it was for.
	if err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		no, err := tx.Draw([]budget.Draw{{Key: draws[1].Key, Window: draws[1].Window, Amount: 50, Limit: 1 << 40}})
		if no != nil {
			t.Error(no)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.recounter.Compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err := recount.Check(t.Context(), w.store, nil); err != nil || len(c.Astray) != 1 ||
		c.Astray[0].Stored-c.Astray[0].Ledger != 50 {
		t.Errorf("the larger count does not hold: %+v, %v", c, err)
	}
}

// A ledger of more leaves than one view reads is added up in several, and one that
// grows meanwhile is read to its end.
func Test001_Layer1_Counters_are_added_up_in_stretches(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand leaves")
	}
	w := newWorld(t, "", limits(budget.Limit{Scope: budget.Tenant, Resource: holdfast.MoneyMicro, Amount: 1 << 40, Window: 24 * time.Hour, Source: "test"}))
	w.passes(w.pays("alice", 1))
	var wg sync.WaitGroup
	for range 50 { // they share commits
		wg.Go(func() {
			for range 220 {
				if err := w.k.Record(kernel.Event{Tenant: holdfast.Local, Name: "note", Who: "test", Subject: "test"}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	w.passes(w.pays("alice", 1))
	var calls int
	c, err := recount.Check(t.Context(), w.store, func(read, of int64) {
		if calls++; calls == 1 {
			w.passes(w.pays("alice", 1))
		}
	})
	if err != nil || len(c.Astray) != 0 || calls != 2 || c.Leaves < 11_006 {
		t.Fatalf("%d calls, %+v, %v", calls, c, err)
	}
}
