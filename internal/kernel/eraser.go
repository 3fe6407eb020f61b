package kernel

import (
	"context"
	"errors"
	"maps"

	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Eraser erases parts of the ledger (D14). Only the composition has one: New binds that of
// the Config.
type Eraser struct{ *host }

// eraserFeature is whose transactions those of an Eraser are.
var eraserFeature = &feature{spec: Spec{Name: "erasure"}}

// EraserTx is a FeatureTx that can erase parts of the ledger.
type EraserTx struct{ *featureTx }

// Commit runs fn in one transaction.
func (e *Eraser) Commit(ctx context.Context, fn func(tx EraserTx) error) error {
	return e.host.Commit(ctx, func(tx FeatureTx) error { return fn(EraserTx{tx.(*featureTx)}) })
}

// Verify returns a person's word of that act. It counts for any number of transactions, of
// which the first uses it up.
func (e *Eraser) Verify(signed operator.Signed, act string) (*Word, error) {
	w, err := e.k.VerifySigned(signed)
	if err != nil {
		return nil, err
	}
	return w, w.CheckAct(act)
}

// UseWord uses a person's word up. If it was used before, it returns a ConflictError.
func (t EraserTx) UseWord(w *Word) error {
	return t.withScope(func(s *scope) error { return w.Spend(s) })
}

// Events returns the events that name a crossing, in order, at most limit.
func (t EraserTx) Events(tenant, crossing string, limit int) ([]ledger.Stored, error) {
	return readWith(t.featureTx, func(tx Tx) ([]ledger.Stored, error) { return tx.Events(tenant, crossing, limit) })
}

// Reviews returns all of a tenant's reviews in a state.
func (t EraserTx) Reviews(tenant string, state review.State) ([]review.Review, error) {
	return readWith(t.featureTx, func(tx Tx) ([]review.Review, error) {
		return tx.Reviews(tenant, state, approval.MaxWaiting)
	})
}

// EraseParts erases the parts of the tenant's leaves in [from, to), and appends e, to whose
// data the handlers of the signal add.
func (t EraserTx) EraseParts(from, to int64, e Event) error {
	return t.withScope(func(s *scope) error {
		if err := s.EraseParts(e.Tenant, from, to); err != nil {
			return err
		}
		more, err := s.raiseSignal(signal.PartsErased{Tenant: e.Tenant, From: from, To: to})
		if err != nil {
			return err
		}
		maps.Copy(e.Data, more)
		return s.k.event(s.Tx, e)
	})
}

// ErasePreview erases what a review shows of its request.
func (t EraserTx) ErasePreview(id string) error {
	return t.withScope(func(s *scope) error {
		r, err := s.Review(id)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		r.Preview, r.Shape = "", nil
		return s.PutReview(r, r.State)
	})
}
