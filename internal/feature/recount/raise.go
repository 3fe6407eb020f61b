package recount

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
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

// Recounter compares the counters of a store with its ledger. It is safe for concurrent use.
type Recounter struct {
	store    kernel.Store
	raiser   *kernel.CounterRaiser
	log      *slog.Logger
	mask     func(string) string // redacts a text
	compared compared
}

// New returns a Recounter that writes with raiser, which a kernel has bound.
func New(store kernel.Store, raiser *kernel.CounterRaiser, log *slog.Logger, mask func(string) string) *Recounter {
	return &Recounter{store: store, raiser: raiser, log: log, mask: mask}
}

// Compared returns the state of the comparison.
func (r *Recounter) Compared() Compared {
	c := &r.compared
	c.mu.Lock()
	defer c.mu.Unlock()
	return Compared{Read: c.read, Of: c.of, Astray: slices.Clone(c.astray), Failed: c.failed}
}

// Compare adds up the ledger while crossings continue, as Check does, and raises each
// counter that is less than what the ledger adds up to. One that is more stays: the larger
// of the two counts holds. What differed is an event, a line of the log, a notice, and in
// Compared. It reads no longer than it rests, until ctx ends.
func (r *Recounter) Compare(ctx context.Context) error {
	last := time.Now()
	progress := func(read, of int64) {
		r.compared.mu.Lock()
		r.compared.read, r.compared.of = read, of
		r.compared.mu.Unlock()
		if took := time.Since(last); read < of {
			select {
			case <-ctx.Done():
			case <-time.After(took):
			}
		}
		last = time.Now()
	}
	_, err := checkLedger(ctx, r.store, progress, func(c *counting,
		astray []Astray) error {
		return r.raiseCounters(ctx, c, astray)
	})
	if err != nil && ctx.Err() == nil {
		r.log.Error("the counters of money and iterations could not be compared with the ledger", "err", err)
		r.compared.mu.Lock()
		r.compared.failed = r.mask(err.Error())
		r.compared.mu.Unlock()
	}
	return err
}

// raiseCounters looks at those counters again where nothing can change them meanwhile, and
// makes each at least what the ledger adds up to.
func (r *Recounter) raiseCounters(ctx context.Context, c *counting, found []Astray) error {
	keys := make([]string, 0, len(found))
	for _, a := range found {
		keys = append(keys, a.Key)
	}
	var astray []Astray
	err := r.raiser.Commit(ctx, func(tx kernel.FeatureTx, raise func(budget.Draw) error) (err error) {
		if _, err = c.read(ctx, tx, math.MaxInt64-c.next); err != nil {
			return err
		}
		if astray, err = c.astray(tx, slices.Values(keys)); err != nil || len(astray) == 0 {
			return err
		}
		var named []map[string]any
		for _, a := range astray {
			if a.Stored < a.Ledger {
				d := budget.Draw{Key: a.Key, Name: a.Budget, Amount: a.Ledger - a.Stored, Window: c.sums[a.Key].window}
				// One below zero cannot be raised: it refuses by itself.
				if err := raise(d); err != nil {
					return err
				}
			}
			if len(named) < maxAstray {
				named = append(named, map[string]any{"budget": a.Budget, "key": a.Key, "stored": a.Stored,
					"ledger": a.Ledger})
			}
		}
		tx.Notify(kernel.Notice{Level: "critical", Event: eventAstray, Tenant: c.tenant,
			Why: fmt.Sprintf("%d of the counters were not what the ledger adds up to; the larger count holds; the first is %s", len(astray), astray[0].Budget)})
		return tx.Event(kernel.Event{Tenant: c.tenant, Name: eventAstray, Who: "holdfast", Subject: "counters",
			Data: map[string]any{"counters": len(astray), "first": named}})
	})
	if err != nil || len(astray) == 0 {
		return err
	}
	r.compared.mu.Lock()
	r.compared.astray = append(r.compared.astray, astray...)
	r.compared.mu.Unlock()
	for _, a := range astray[:min(len(astray), maxAstray)] {
		r.log.Error("a counter was not what the ledger adds up to; the larger count holds", "tenant", a.Tenant,
			"budget", a.Budget, "stored", a.Stored, "ledger", a.Ledger)
	}
	return nil
}
