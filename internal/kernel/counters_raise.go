package kernel

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// Whoever writes the store past Holdfast could make room in a counter. The ledger
// tells what it was, so the daemon adds it up beside its work, and of two counts
// the larger one holds.

// eventAstray is what the ledger calls counters that were not what it adds up to.
const eventAstray = "counters_astray"

// maxAstray bounds how many counters an event names.
const maxAstray = 20

// compared is how far the counters were compared since the start.
type compared struct {
	mu       sync.Mutex
	read, of int64    // guarded by mu; leaves
	astray   []Astray // guarded by mu
	failed   string   // guarded by mu
}

// Compared is how it stands with the counters of money and iterations since this
// kernel began: leaves read, of how many; what was astray, before it was mended;
// and why they could not be compared, or empty.
type Compared struct {
	Read, Of int64
	Astray   []Astray
	Failed   string
}

// Compared says how it stands with the counters.
func (k *Kernel) Compared() Compared {
	c := &k.counted
	c.mu.Lock()
	defer c.mu.Unlock()
	return Compared{Read: c.read, Of: c.of, Astray: slices.Clone(c.astray), Failed: c.failed}
}

// CompareCounters adds up the ledger beside what goes on, as CheckCounters does,
// and raises each counter that is less than what the ledger adds up to. One that is
// more stays: the larger of the two counts holds. What was astray is an event, a
// line of the log, a notice, and what Compared says. It reads no longer than it
// rests, until ctx ends.
func (k *Kernel) CompareCounters(ctx context.Context) error {
	last := time.Now()
	progress := func(read, of int64) {
		k.counted.mu.Lock()
		k.counted.read, k.counted.of = read, of
		k.counted.mu.Unlock()
		if took := time.Since(last); read < of {
			select {
			case <-ctx.Done():
			case <-time.After(took):
			}
		}
		last = time.Now()
	}
	_, err := checkCounters(ctx, k.store, progress, func(c *counting, astray []Astray) error { return k.raise(ctx, c, astray) })
	if err != nil && ctx.Err() == nil {
		k.log.Error("the counters of money and iterations could not be compared with the ledger", "err", err)
		k.counted.mu.Lock()
		k.counted.failed = string(k.mask(err.Error()))
		k.counted.mu.Unlock()
	}
	return err
}

// raise looks at those counters again where nothing can change them meanwhile, and
// makes each at least what the ledger adds up to.
func (k *Kernel) raise(ctx context.Context, c *counting, found []Astray) error {
	keys := make([]string, 0, len(found))
	for _, a := range found {
		keys = append(keys, a.Key)
	}
	var astray []Astray
	err := walError(k.store.Update(ctx, func(tx Tx) (err error) {
		if _, err = c.read(ctx, tx, math.MaxInt64-c.next); err != nil {
			return err
		}
		if astray, err = c.astray(tx, slices.Values(keys)); err != nil || len(astray) == 0 {
			return err
		}
		var named []map[string]any
		for _, a := range astray {
			if a.Stored < a.Ledger {
				d := budget.Draw{Key: a.Key, Name: a.Budget, Amount: a.Ledger - a.Stored, Limit: math.MaxInt64, Window: c.sums[a.Key].window}
				// One below zero cannot be raised: it refuses by itself.
				if _, err := tx.Draw([]budget.Draw{d}); err != nil {
					return err
				}
			}
			if len(named) < maxAstray {
				named = append(named, map[string]any{"budget": a.Budget, "key": a.Key, "stored": a.Stored, "ledger": a.Ledger})
			}
		}
		return k.event(tx, Event{Tenant: c.tenant, Name: eventAstray, Who: "holdfast", Subject: "counters", Data: map[string]any{"counters": len(astray), "first": named}})
	}))
	if err != nil || len(astray) == 0 {
		return err
	}
	k.counted.mu.Lock()
	k.counted.astray = append(k.counted.astray, astray...)
	k.counted.mu.Unlock()
	for _, a := range astray[:min(len(astray), maxAstray)] {
		k.log.Error("a counter was not what the ledger adds up to; the larger count holds", "tenant", a.Tenant, "budget", a.Budget, "stored", a.Stored, "ledger", a.Ledger)
	}
	k.notify(Notice{Level: "critical", Event: eventAstray, Tenant: c.tenant,
		Why: fmt.Sprintf("%d of the counters were not what the ledger adds up to; the larger count holds; the first is %s", len(astray), astray[0].Budget)})
	return nil
}
