// Package checkpoint signs the heads of the ledger's trees (D14).
package checkpoint

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Store is where the trees are.
type Store struct {
	View, Update func(ctx context.Context, fn func(Tx) error) error
	// Now returns a time that is later than any before.
	Now func() time.Time
	// NewLeaf returns the leaf of a checkpoint, for the log of checkpoints.
	NewLeaf func(c ledger.SignedCheckpoint) (ledger.Leaf, error)
}

// Tx is what is read and written in one view or update.
type Tx interface {
	Heads() ([]ledger.Head, error)
	Append(l ledger.Leaf) (ledger.Place, error)
	Checkpoint(tenant string) (ledger.SignedCheckpoint, error)
	PutCheckpoint(c ledger.SignedCheckpoint) error
}

// SignHeads signs the head of every tenant's tree that has grown since its
// last checkpoint, and writes each into the log of checkpoints that witnesses
// can cosign, whose own head is signed with it. It returns the number that it signed.
func SignHeads(ctx context.Context, s *Store, signer *ledger.Signer) (int, error) {
	due, err := s.dueHeads(ctx, false)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	for _, h := range due {
		if err := s.sign(ctx, signer, h); err != nil {
			return 0, err
		}
	}
	own, err := s.dueHeads(ctx, true) // it is signed already, unless its last signature was lost
	if err != nil {
		return 0, err
	}
	for _, h := range own {
		c, err := signer.Sign(h, s.Now())
		if err == nil {
			err = s.Update(ctx, func(tx Tx) error { return tx.PutCheckpoint(c) })
		}
		if err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// dueHeads returns the heads whose newest checkpoint is of another size: that of the log of
// checkpoints, or all others.
func (s *Store) dueHeads(ctx context.Context, ofLog bool) ([]ledger.Head, error) {
	var due []ledger.Head
	err := s.View(ctx, func(tx Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			if (h.Tenant == ledger.CheckpointsTenant) != ofLog || h.Size == 0 {
				continue
			}
			c, err := tx.Checkpoint(h.Tenant)
			if err != nil && !errors.Is(err, table.ErrNotFound) {
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

// sign signs the head of a tenant's tree. The head of the log of checkpoints is signed in the
// transaction that makes it grow. So the log is signed to its last leaf at every moment, and one
// that is not has lost a signature.
func (s *Store) sign(ctx context.Context, signer *ledger.Signer, h ledger.Head) error {
	c, err := signer.Sign(h, s.Now())
	if err != nil {
		return err
	}
	leaf, err := s.NewLeaf(c)
	if err != nil {
		return err
	}
	return s.Update(ctx, func(tx Tx) error {
		if err := tx.PutCheckpoint(c); err != nil {
			return err
		}
		if _, err := tx.Append(leaf); err != nil {
			return err
		}
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, log := range heads {
			if log.Tenant != ledger.CheckpointsTenant {
				continue
			}
			own, err := signer.Sign(log, s.Now())
			if err != nil {
				return err
			}
			return tx.PutCheckpoint(own)
		}
		return nil
	})
}
