package erasure

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/ledger"
)

// batch bounds how many leaves of a tenant one transaction looks at.
const batch = 5000

// progress is of one tenant: the parts of leaves before To are erased.
type progress struct {
	To int64 `json:"to"`
}

var erasedParts = table.New[string, progress]("erased_part", table.Options{Key: "tenant"})

// Tables returns the tables of the feature.
func Tables() []*table.Def { return []*table.Def{erasedParts.Def()} }

// EraseOld erases the parts of records that are older than they are kept, of at most batch
// leaves of each tenant.
func (e *Erasure) EraseOld() error {
	keep := e.keep()
	if keep <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	var heads []ledger.Head
	err := e.eraser.View(ctx, func(r kernel.Reader) (err error) { heads, err = r.Heads(); return err })
	if err != nil {
		return err
	}
	for _, h := range heads {
		if err := e.eraseOldOf(ctx, h, e.eraser.Now().Add(-keep)); err != nil {
			return err
		}
	}
	return nil
}

var errYoung = errors.New("the rest is younger")

// eraseOldOf continues in one tenant's tree where the last call stopped.
func (e *Erasure) eraseOldOf(ctx context.Context, h ledger.Head, before time.Time) error {
	var from, to int64
	parts := 0
	err := e.eraser.View(ctx, func(r kernel.Reader) error {
		erased, _, err := erasedParts.Find(r, h.Tenant)
		if err != nil {
			return err
		}
		from, to = erased.To, erased.To
		return r.Leaves(h.Tenant, from, min(h.Size, from+batch), func(s ledger.Stored) error {
			if !s.At.Before(before) {
				return errYoung
			}
			if to = s.Seq + 1; s.Part != nil {
				parts++
			}
			return nil
		})
	})
	if errors.Is(err, errYoung) {
		err = nil
	}
	if err != nil || to == from {
		return err
	}
	return e.eraser.Commit(ctx, func(tx kernel.EraserTx) error {
		if parts > 0 {
			err := tx.EraseParts(from, to, kernel.Event{Tenant: h.Tenant, Name: "parts_erased", Who: "holdfast",
				Subject: "retention", Data: map[string]any{"from": from, "to": to, "parts": parts}})
			if err != nil {
				return err
			}
		}
		_, version, err := erasedParts.Find(tx, h.Tenant)
		if err != nil {
			return err
		}
		return erasedParts.Put(tx, h.Tenant, progress{to}, version)
	})
}
