package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// executed and returned record that what a person approved has begun, and that
// its hand came back: events of the review, in the transactions of the
// crossing's begin and of its entry. What a crash or its lease ended, and a hand
// that was left behind, never returned.

func (k *Kernel) executed(tx Tx, j *judgement) error {
	if !j.approved {
		return nil
	}
	return k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: "review_executed", Who: j.who.Principal, Subject: j.review.ID,
		Data: map[string]any{"exact_hash": j.exact(), "session": j.who.Session}})
}

func (k *Kernel) returned(tx Tx, j *judgement, end *ending) error {
	if !j.approved || end.unstarted || end.deaf || end.outcome == ledger.Abandoned {
		return nil
	}
	return k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: "review_returned", Who: "holdfast", Subject: j.review.ID,
		Data: map[string]any{"outcome": string(end.outcome), "exit_code": exitCode(end)}})
}

// LifeOf reads what became of a review, in order: proposed, decided, executed,
// returned, and how it ended otherwise. The ledger knows it, the review's row
// does not.
func LifeOf(tx Tx, r *review.Review) ([]review.Step, error) {
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
func (k *Kernel) Life(ctx context.Context, id string) ([]review.Step, error) {
	var out []review.Step
	err := k.store.View(ctx, func(tx Tx) error {
		r, err := tx.Review(id)
		if errors.Is(err, ErrNotFound) {
			return review.NoReview(id)
		}
		if err == nil {
			out, err = LifeOf(tx, &r)
		}
		return err
	})
	return out, err
}
