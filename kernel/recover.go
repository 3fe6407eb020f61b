package kernel

import (
	"context"
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
	if err != nil {
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
	r.Expired, err = k.Sweep()
	return r, err
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
	e.DurationUS = max(0, e.CreatedAt.Sub(e.Timestamp).Microseconds())
	leaf, err := k.seal(ledger.KindEntry, e.TenantID, e.ID, e.CreatedAt, e, nil)
	if err != nil {
		return err
	}
	ctx, cancel := edge()
	defer cancel()
	return walError(k.store.Update(ctx, func(tx Tx) error {
		_, err := tx.Append(leaf)
		return err
	}))
}

// sweepBatch bounds how many reviews one sweep closes.
const sweepBatch = 1000

// Sweep does what time asks for: it expires reviews, erases results whose time
// is over, and summarises floods of denials. The daemon calls it every few
// seconds. It returns how many reviews expired.
func (k *Kernel) Sweep() (int, error) {
	ctx, cancel := edge()
	defer cancel()
	n, err := k.sweepReviews(ctx)
	if err != nil {
		return n, err
	}
	for _, f := range k.flood.drain(k.now()) {
		err := k.Record(Event{Tenant: f.tenant, Name: "denials_summarised", Who: orNobody(f.agent), Subject: orNobody(f.agent),
			Data: map[string]any{"recorded": f.denied, "unrecorded": f.dropped, "since": f.since.UTC().Format(time.RFC3339)}})
		if err != nil {
			return n, err
		}
	}
	if err := k.eraseOldParts(ctx); err != nil {
		return n, err
	}
	return n, walError(k.store.Update(ctx, func(tx Tx) error {
		_, err := tx.DropReplays(k.now())
		return err
	}))
}

func (k *Kernel) sweepReviews(ctx context.Context) (int, error) {
	due, err := k.dueReviews(ctx)
	if err != nil {
		return 0, err
	}
	for i, r := range due {
		if err := walError(k.store.Update(ctx, func(tx Tx) error { return k.expire(tx, r, false) })); err != nil {
			return i, err
		}
	}
	return len(due), nil
}
