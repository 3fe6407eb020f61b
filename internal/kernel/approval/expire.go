package approval

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Expire closes a review whose time is over. seen says that its agent
// learns of it now; otherwise it does when it asks again.
func Expire(tx Tx, r *review.Review, seen bool) error {
	now, err := tx.Review(r.ID)
	if err != nil {
		return err
	}
	was := now.State
	if was == review.Voided || was == review.Used {
		return nil
	}
	now.State = review.Expired
	if seen {
		now.State = review.Voided
	}
	if err := tx.PutReview(now, was); err != nil || was == review.Expired {
		return err
	}
	if err := tx.Event(record.Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_expired", Who: "holdfast",
		Subject: r.ID, Data: map[string]any{"state": string(was)}}); err != nil {
		return err
	}
	name := review.NameExpired
	if was == review.Approved {
		name = review.NameUnused
	}
	return tx.CloseHeld(&now, was, ledger.HeldExpired, &holdfast.Error{Kind: holdfast.KindApprovalTimeout,
		Gate: holdfast.K7, Rule: name,
		Why: "nobody answered, or the approval was not used, within " + review.Lifetime.String()})
}

// Sweep expires the reviews whose time is over, each on its own, and returns their number; only
// a poisoned store, which takes none, ends it early. ctx is for reading.
func (b *Book) Sweep(ctx context.Context) (int, error) {
	due, err := b.dueReviews(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range due {
		r := &due[i]
		fault := b.src.Update(func(tx Tx) error { return Expire(tx, r, false) })
		switch {
		case fault == nil:
			n++
			b.Wake(r.ID)
			b.src.Notify("info", "review_expired", *r, "nobody answered, or the approval was not used, in time")
		case b.src.Poisoned() != nil:
			return n, fault
		default:
			err = fault
			b.src.Log.Error("a review could not be closed", "review", r.ID, "err", fault)
		}
	}
	return n, err
}

// dueReviews returns those whose time is over.
func (b *Book) dueReviews(ctx context.Context) ([]review.Review, error) {
	var due []review.Review
	err := b.src.View(ctx, func(tx Reader) error {
		for _, state := range []review.State{review.Pending, review.Deferred, review.Approved} {
			rs, err := listAll(tx, state)
			if err != nil {
				return err
			}
			for _, r := range rs {
				if r.Over(b.src.Now()) {
					due = append(due, r)
				}
			}
		}
		return nil
	})
	return due, err
}

// listAll lists the reviews in a state of every tenant, the newest MaxWaiting of
// each, so that no tenant's crowd another's out. Of questions that wait no
// tenant has more.
func listAll(tx Reader, state review.State) ([]review.Review, error) {
	rs, err := tx.Reviews("", state, MaxWaiting)
	if err != nil || len(rs) < MaxWaiting {
		return rs, err
	}
	heads, err := tx.Heads()
	if err != nil {
		return nil, err
	}
	rs = nil
	for _, h := range heads {
		own, err := tx.Reviews(h.Tenant, state, MaxWaiting)
		if err != nil {
			return nil, err
		}
		rs = append(rs, own...)
	}
	return rs, nil
}
