package approval

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// LifeOf reads the life of a review, in order: proposed, decided, executed,
// returned, and how it ended otherwise. The ledger knows it, the review's row
// does not.
func LifeOf(tx Reader, r *review.Review) ([]review.Step, error) {
	const most = 32
	found, err := tx.Events(r.Tenant, r.Crossing, most)
	if err != nil {
		return nil, err
	}
	var out []review.Step
	for _, s := range found {
		e, err := ledger.ParseEvent(s.Record)
		if err != nil {
			return nil, err
		}
		what, ours := strings.CutPrefix(e.Name, "review_")
		if !ours || e.Subject != r.ID {
			continue
		}
		var data struct {
			Decision string `json:"decision"`
			Outcome  string `json:"outcome"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil && len(e.Data) > 0 {
			return nil, err
		}
		out = append(out, review.Step{Event: what, At: e.Timestamp, Who: e.Who, How: data.Decision + data.Outcome})
	}
	return out, nil
}

// Life is LifeOf for a review by its id.
func (b *Book) Life(ctx context.Context, id string) ([]review.Step, error) {
	var out []review.Step
	err := b.src.View(ctx, func(tx Reader) error {
		r, err := findReview(tx, id)
		if err == nil {
			out, err = LifeOf(tx, &r)
		}
		return err
	})
	return out, err
}
