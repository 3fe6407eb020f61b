package approval

import (
	"errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Use uses up, in the transaction that begins the crossing, what lets the request pass: its
// approval, or once more a remembered one. It returns a Refusal if that no longer does.
func (c *Case) Use(tx Tx) error {
	if c.Approved {
		if err := c.useApproval(tx); err != nil {
			return err
		}
	}
	if c.Rule != nil {
		return c.useRule(tx)
	}
	return nil
}

// useApproval spends the approval; a second use finds it spent (D11).
func (c *Case) useApproval(tx Tx) error {
	spent := newRefusal(holdfast.KindApprovalUsed, review.NameUsed,
		"the approval of review "+c.Review.ID+" was used already", "ask again to open a new review")
	r, err := tx.Review(c.Review.ID)
	if err != nil {
		return err
	}
	if r.Answer(c.Now, c.Policy) != review.Approved || r.Nonce != c.Review.Nonce {
		return spent
	}
	if err := c.book.checkGenuine(tx, &r); err != nil {
		c.Approved = false
		op := holdfast.Opinion{Gate: holdfast.K7, Kind: holdfast.KindOf(err), State: "BLOCKED",
			Why: "the check failed", Hint: "the log has the cause"}
		if e := (*holdfast.Error)(nil); errors.As(err, &e) {
			op.Why, op.Hint, op.Rule = e.Why, e.Hint, e.Rule
		}
		return &Refusal{op}
	}
	was := r.State
	r.State = review.Used
	err = tx.PutReview(r, was)
	if errors.Is(err, table.ErrConflict) {
		return spent
	}
	return err
}

// useRule checks once more whether the rule applies, and counts its use.
func (c *Case) useRule(tx Tx) error {
	id := c.Rule.id
	kept, err := ruleByID(tx, id)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return err
	}
	why := "it is gone"
	if err == nil {
		why = c.book.explainEnd(kept, c.Contract, c.book.src.Now())
	}
	if why == "" {
		if why, err = explainRecordedEnd(tx, kept); err != nil {
			return err
		}
	}
	if why != "" {
		c.Rule = nil
		return newRefusal(holdfast.KindConflict, "review/rule_ended",
			"the remembered rule "+id+" ended a moment ago: "+why, "ask again, so that a person is asked")
	}
	use, version, err := ruleUses.Find(tx, id)
	if err != nil {
		return err
	}
	use.Uses, use.Last = use.Uses+1, c.At
	if err := ruleUses.Put(tx, id, use, version); err != nil || c.Review == nil {
		return err
	}
	// A question about this very request waits for no one any longer.
	r, err := tx.Review(c.Review.ID)
	if err != nil || !r.Waiting(c.book.src.Now()) {
		return err
	}
	return voidReview(tx, r, "review/by_rule", "the remembered rule "+id+" answers it")
}

// RecordBegin records that what a person approved has begun: an event of the review, in
// the transaction of the crossing's begin.
func (c *Case) RecordBegin(tx Tx) error {
	if !c.Approved {
		return nil
	}
	return tx.Event(record.Event{Tenant: c.Tenant, Crossing: c.Review.Crossing, Name: "review_executed",
		Who: c.Principal, Subject: c.Review.ID, Data: map[string]any{"exact_hash": c.Exact, "session": c.Session}})
}

// RecordReturn records that the backend of what a person approved returned, in the
// transaction of the crossing's entry. What a crash or its lease ended, and a backend that was left
// behind, never returned.
func (c *Case) RecordReturn(tx Tx, outcome ledger.Outcome, exitCode int64) error {
	if !c.Approved {
		return nil
	}
	return tx.Event(record.Event{Tenant: c.Tenant, Crossing: c.Review.Crossing, Name: "review_returned",
		Who: "holdfast", Subject: c.Review.ID, Data: map[string]any{"outcome": string(outcome), "exit_code": exitCode}})
}
