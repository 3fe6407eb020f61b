package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// eraseBatch bounds how many leaves one sweep looks at in a tenant.
const eraseBatch = 5000

// eraseOldParts erases the parts of records that are older than the policy
// keeps them: redacted results and previews go, records and proofs stay (D14).
func (k *Kernel) eraseOldParts(ctx context.Context) error {
	keep := k.policy.Load().ErasePartsAfter
	if keep <= 0 {
		return nil
	}
	var heads []ledger.Head
	if err := k.store.View(ctx, func(tx Tx) (err error) { heads, err = tx.Heads(); return err }); err != nil {
		return err
	}
	for _, h := range heads {
		if err := k.eraseIn(ctx, h, k.now().Add(-keep)); err != nil {
			return err
		}
	}
	return nil
}

var errEnough = errors.New("enough")

// eraseIn goes on in one tenant's tree where the last sweep stopped.
func (k *Kernel) eraseIn(ctx context.Context, h ledger.Head, before time.Time) error {
	var from, to int64
	parts := 0
	err := k.store.View(ctx, func(tx Tx) error {
		erased, _, err := erasedParts.Find(tx, h.Tenant)
		if err != nil {
			return err
		}
		from, to = erased.To, erased.To
		return tx.Leaves(h.Tenant, from, min(h.Size, from+eraseBatch), func(s ledger.Stored) error {
			if !s.At.Before(before) {
				return errEnough
			}
			if to = s.Seq + 1; s.Part != nil {
				parts++
			}
			return nil
		})
	})
	if (err != nil && !errors.Is(err, errEnough)) || to == from {
		if errors.Is(err, errEnough) {
			err = nil
		}
		return err
	}
	return walError(k.runInScope(ctx, func(tx *scope) error {
		if parts > 0 {
			if err := tx.EraseParts(h.Tenant, from, to); err != nil {
				return err
			}
			data, err := tx.raiseSignal(signal.PartsErased{Tenant: h.Tenant, From: from, To: to})
			if err != nil {
				return err
			}
			data["from"], data["to"], data["parts"] = from, to, parts
			if err := k.event(tx, Event{Tenant: h.Tenant, Name: "parts_erased", Who: "holdfast",
				Subject: "retention", Data: data}); err != nil {
				return err
			}
		}
		_, version, err := erasedParts.Find(tx, h.Tenant)
		if err != nil {
			return err
		}
		return erasedParts.Put(tx, h.Tenant, erasedRow{to}, version)
	}))
}
