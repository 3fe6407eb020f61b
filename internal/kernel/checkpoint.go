package kernel

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/ledger"
)

// Checkpoint signs the head of every tenant's tree that has grown since its
// last checkpoint, and writes each into the log of checkpoints that witnesses
// can cosign, whose own head is signed with it (D14). The daemon calls it on a
// timer, never per record. It returns how many it signed.
func (k *Kernel) Checkpoint(signer *ledger.Signer) (int, error) {
	ctx, cancel := edge()
	defer cancel()
	due, err := k.dueHeads(ctx, func(tenant string) bool { return tenant != ledger.CheckpointsTenant })
	if err != nil || len(due) == 0 {
		return 0, err
	}
	for _, h := range due {
		if err := k.sign(ctx, signer, h, true); err != nil {
			return 0, err
		}
	}
	own, err := k.dueHeads(ctx, func(tenant string) bool { return tenant == ledger.CheckpointsTenant })
	if err != nil {
		return 0, err
	}
	for _, h := range own {
		if err := k.sign(ctx, signer, h, false); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// dueHeads are the heads whose newest checkpoint is of another size.
func (k *Kernel) dueHeads(ctx context.Context, which func(string) bool) ([]ledger.Head, error) {
	var due []ledger.Head
	err := k.store.View(ctx, func(tx Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			if !which(h.Tenant) || h.Size == 0 {
				continue
			}
			c, err := tx.Checkpoint(h.Tenant)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			if err != nil || c.Size != h.Size {
				due = append(due, h)
			}
		}
		return nil
	})
	return due, err
}

func (k *Kernel) sign(ctx context.Context, signer *ledger.Signer, h ledger.Head, log bool) error {
	c, err := signer.Sign(h, k.instant())
	if err != nil {
		return err
	}
	id, err := k.newID()
	if err != nil {
		return err
	}
	var leaf ledger.Leaf
	if log {
		if leaf, err = k.records.Leaf(ledger.KindEvent, ledger.CheckpointsTenant, "", c.At,
			ledger.CheckpointEvent(id, c), nil); err != nil {
			return err
		}
	}
	return walError(k.store.Update(ctx, func(tx Tx) error {
		if err := tx.PutCheckpoint(c); err != nil || !log {
			return err
		}
		if _, err := tx.Append(leaf); err != nil {
			return err
		}
		return k.signLog(tx, signer)
	}))
}

// signLog signs the head of the log of checkpoints in the transaction that
// makes it grow. So the log is signed to its last leaf at every moment, and one
// that is not has lost a signature.
func (k *Kernel) signLog(tx Tx, signer *ledger.Signer) error {
	heads, err := tx.Heads()
	if err != nil {
		return err
	}
	for _, h := range heads {
		if h.Tenant != ledger.CheckpointsTenant {
			continue
		}
		c, err := signer.Sign(h, k.instant())
		if err != nil {
			return err
		}
		return tx.PutCheckpoint(c)
	}
	return nil
}
