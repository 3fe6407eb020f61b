package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/kernel/checkpoint"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Checkpoint signs the heads of the trees that have grown, and returns their number
// (checkpoint.SignHeads). The daemon calls it on a timer, never per record.
func (k *Kernel) Checkpoint(signer *ledger.Signer) (int, error) {
	ctx, cancel := edge()
	defer cancel()
	return checkpoint.SignHeads(ctx, &checkpoint.Store{
		View: func(ctx context.Context, fn func(checkpoint.Tx) error) error {
			return k.store.View(ctx, func(tx Tx) error { return fn(tx) })
		},
		Update: func(ctx context.Context, fn func(checkpoint.Tx) error) error {
			return walError(k.store.Update(ctx, func(tx Tx) error { return fn(tx) }))
		},
		Now: k.instant,
		NewLeaf: func(c ledger.SignedCheckpoint) (ledger.Leaf, error) {
			id, err := k.newID()
			if err != nil {
				return ledger.Leaf{}, err
			}
			e := ledger.CheckpointEvent(id, c)
			return k.records.Leaf(ledger.KindEvent, ledger.CheckpointsTenant, "", c.At, e, nil)
		},
	}, signer)
}
