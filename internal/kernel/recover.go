package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Recovery is what Recover found.
type Recovery struct {
	// Closed crossings had begun and not ended: their outcome is unknown.
	Closed int
	// Expired reviews ran out while nobody was there.
	Expired int
}

// edge is a context for entering or leaving that no caller can end (D6a).
func edge() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), edgeTime)
}

// Recover closes every crossing that a crash left between begin and entry: as
// FAULTED with outcome unknown, never as done, its reservation settled at what
// was reserved (D6, D9). refused is the number of requests that a poisoned
// ledger could not record before the restart (D5); it becomes an event. Call
// it once, before the first crossing; after a crash in the middle it goes on
// where it stopped.
func (k *Kernel) Recover(refused int64) (Recovery, error) {
	var found []ledger.Stored
	ctx, cancel := edge()
	defer cancel()
	err := k.store.View(ctx, func(tx Tx) error {
		return tx.Open(func(s ledger.Stored) error {
			found = append(found, s)
			return nil
		})
	})
	if err == nil {
		err = k.store.View(ctx, k.loadStops)
	}
	if err != nil {
		return Recovery{}, err
	}
	if err := k.startFeatures(ctx); err != nil {
		return Recovery{}, err
	}
	var r Recovery
	for _, s := range found {
		if err := k.closeUnknown(s); err != nil {
			return r, err
		}
		r.Closed++
	}
	if refused > 0 {
		if err := k.Record(Event{Tenant: holdfast.Local, Name: "refused_while_poisoned", Who: "holdfast", Subject: "ledger", Data: map[string]any{"count": refused}}); err != nil {
			return r, err
		}
	}
	// What sweeping leaves undone the next sweep does.
	if r.Expired, err = k.Sweep(); err != nil {
		k.log.Error("not everything could be swept", "err", err)
	}
	return r, nil
}

func (k *Kernel) closeUnknown(s ledger.Stored) error {
	b, err := ledger.ParseBegin(s.Record)
	if err != nil {
		return err
	}
	e := b.Entry(s.Seq, k.instant())
	e.Why = "holdfast stopped between the begin and the end; whether the act took effect is not known"
	for i := range e.Uses {
		amount := e.Uses[i].Draw.Amount
		e.Uses[i].Used = &amount
	}
	leaf, err := k.sealEntry(e, nil)
	if err != nil {
		return err
	}
	err = k.updateAtEdge(func(tx *scope) error {
		if err := k.appendEntry(tx, e, leaf); err != nil {
			return err
		}
		return tx.runEntryHooks(nil, e)
	})
	if c := k.policy.Load().contracts.Find(b.Boundary); err == nil && c != nil && c.OnError == OnErrorRollback {
		k.notify(Notice{Level: "error", Event: "rollback_failed", Tenant: b.TenantID, Agent: b.Agent, Crossing: b.ID, Boundary: b.Boundary,
			Why: "holdfast stopped in the middle of an act, and what it changed stays, unless it was being put back already, which goes on to its end; look, then `holdfast rollback --before " + b.ID + "`"})
	}
	return err
}

// sweepBatch bounds how many stops one sweep drops.
const sweepBatch = 1000

// Sweep does what time asks for: it expires reviews, erases results whose time
// is over, and summarises floods of denials. The daemon calls it every few
// seconds. It returns how many reviews expired. What fails keeps nothing else
// from being done, and is tried again by the next sweep.
func (k *Kernel) Sweep() (int, error) {
	n := 0
	err := timely(func(ctx context.Context) (err error) {
		n, err = k.Book.Sweep(ctx)
		return err
	})
	return n, errors.Join(err, timely(k.reactUnlessBusy), timely(k.dropStops), k.sweepFloods(), timely(k.dropReplays))
}

// timely gives one step of a sweep a time of its own.
func timely(step func(context.Context) error) error {
	ctx, cancel := edge()
	defer cancel()
	return step(ctx)
}

func (k *Kernel) dropReplays(ctx context.Context) error {
	return walError(k.store.Update(ctx, func(tx Tx) error {
		_, err := tx.DropReplays(k.now())
		return err
	}))
}

func (k *Kernel) sweepFloods() error {
	for _, f := range k.flood.Ended(k.now()) {
		err := k.Record(Event{Tenant: f.Tenant, Name: "denials_summarised", Who: orNobody(f.Agent),
			Subject: orNobody(f.Agent),
			Data: map[string]any{"recorded": f.Denied, "unrecorded": f.Dropped,
				"since": f.Since.UTC().Format(time.RFC3339)}})
		if err != nil {
			return err
		}
		k.flood.Forget(f)
	}
	return nil
}
