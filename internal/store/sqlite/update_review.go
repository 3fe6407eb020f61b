package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

func (tx *updateTx) Review(id string) (review.Review, error) {
	if tx.over {
		return review.Review{}, errOver
	}
	for _, b := range [...]*batch{tx.b, tx.s.fly} {
		if b == nil {
			continue
		}
		if v, ok := b.reviews[id]; ok {
			return cloneReview(v), nil
		}
	}
	return oneReview(tx.s.side, "id = ?", id)
}

func oneReview(c *connection.Conn, where string, args ...any) (review.Review, error) {
	r, err := c.One("SELECT doc FROM review WHERE "+where+" ORDER BY created DESC, id DESC LIMIT 1", args...)
	if err == nil && r == nil {
		err = notFound("review %v", args[len(args)-1])
	}
	if err != nil {
		return review.Review{}, err
	}
	return readReview(r)
}

func cloneReview(v review.Review) review.Review {
	if v.Confidence != nil {
		c := *v.Confidence
		v.Confidence = &c
	}
	if v.Threshold != nil {
		t := *v.Threshold
		v.Threshold = &t
	}
	return v
}

func okReview(r *review.Review) error {
	n := len(r.Preview) + len(r.Why) + len(r.Reason) + len(r.Key) + len(r.Principal) + len(r.Correlation)
	if n > maxDoc {
		return fmt.Errorf("review %q has %d bytes of text, more than %d", r.ID, n, maxDoc)
	}
	if r.State == review.None {
		return fmt.Errorf("review %q has no state", r.ID)
	}
	return okName("the review's id", r.ID)
}

func (tx *updateTx) PutReview(r review.Review, was review.State) error {
	if tx.over {
		return errOver
	}
	if err := okReview(&r); err != nil {
		return err
	}
	old, err := tx.Review(r.ID)
	switch {
	case err == nil && was == review.None:
		return fmt.Errorf("review %s: %w: %w", r.ID, kernel.ErrExists, kernel.ErrConflict)
	case err != nil && (was != review.None || !errors.Is(err, kernel.ErrNotFound)):
		return err
	case err == nil && old.State != was:
		return fmt.Errorf("review %s is %s, not %s: %w", r.ID, old.State, was, kernel.ErrConflict)
	}
	b := tx.b
	if b.reviews == nil {
		b.reviews = make(map[string]review.Review)
	}
	before, had := b.reviews[r.ID]
	b.reviews[r.ID] = normalReview(r)
	if was == review.None {
		b.fresh = append(b.fresh, r.ID)
	}
	tx.undone(func() {
		if had {
			b.reviews[r.ID] = before
		} else {
			delete(b.reviews, r.ID)
		}
		if was == review.None {
			b.fresh = b.fresh[:len(b.fresh)-1]
		}
	})
	return nil
}

// normalReview is the review as it will be read back.
func normalReview(r review.Review) review.Review {
	r = cloneReview(r)
	for _, t := range [...]*time.Time{&r.Created, &r.Expires, &r.Decided, &r.Until} {
		if !t.IsZero() {
			*t = utc(*t)
		}
	}
	return r
}

const bindingIs = "tenant = ? AND agent = ? AND boundary = ? AND exact = ?"

func (tx *updateTx) ReviewFor(b review.Binding) (review.Review, error) {
	vs, err := tx.merged(1, func(v *review.Review) bool {
		return v.Tenant == b.Tenant && v.Agent == b.Agent && v.Boundary == b.Boundary && v.Exact == b.Exact
	}, bindingIs, b.Tenant, b.Agent, b.Boundary, b.Exact)
	if err == nil && len(vs) == 0 {
		err = notFound("review of %s by %s", b.Boundary, b.Agent)
	}
	if err != nil {
		return review.Review{}, err
	}
	return vs[0], nil
}

func (tx *updateTx) Reviews(tenant string, state review.State, limit int) ([]review.Review, error) {
	where, args := reviewFilter(tenant, state)
	return tx.merged(limit, func(v *review.Review) bool {
		return (tenant == "" || v.Tenant == tenant) && (state == review.None || v.State == state)
	}, where, args...)
}

func reviewFilter(tenant string, state review.State) (string, []any) {
	where, args := "1 = 1", []any(nil)
	if tenant != "" {
		where, args = where+" AND tenant = ?", append(args, tenant)
	}
	if state != review.None {
		where, args = where+" AND state = ?", append(args, string(state))
	}
	return where, args
}

func readReviews(c *connection.Conn, limit int, where string, args ...any) ([]review.Review, error) {
	var vs []review.Review
	err := c.Query("SELECT doc FROM review WHERE "+where+" ORDER BY created DESC, id DESC LIMIT ?",
		func(r connection.Row) error {
			v, err := readReview(r)
			vs = append(vs, v)
			return err
		}, append(args, int64(limit))...)
	return vs, err
}

// merged lays the reviews in memory over those of the database.
func (tx *updateTx) merged(limit int, match func(*review.Review) bool, where string, args ...any) ([]review.Review, error) {
	if tx.over {
		return nil, errOver
	}
	if limit <= 0 {
		return nil, nil
	}
	over := make(map[string]review.Review)
	for _, b := range tx.layers() {
		maps.Copy(over, b.reviews)
	}
	stored, err := readReviews(tx.s.side, limit+len(over), where, args...)
	if err != nil {
		return nil, err
	}
	vs := slices.DeleteFunc(stored, func(v review.Review) bool { _, ok := over[v.ID]; return ok })
	for _, v := range over {
		if match(&v) {
			vs = append(vs, cloneReview(v))
		}
	}
	slices.SortFunc(vs, func(a, b review.Review) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	})
	return vs[:min(limit, len(vs))], nil
}
