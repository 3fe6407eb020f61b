package kernel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/budget"
	"github.com/holdfast-dev/holdfast/kernel"
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
	check := func() (c kernel.Counted) {
		t.Helper()
		w.view(func(tx kernel.Tx) (err error) { c, err = kernel.CheckCounters(t.Context(), tx, nil); return err })
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
	w.view(func(tx kernel.Tx) error {
		if _, err := kernel.CheckCounters(ended, tx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("it goes on after its time: %v", err)
		}
		return nil
	})
}
