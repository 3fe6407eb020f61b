package approval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Decide carries out a person's signed answer to a review. The statement must
// name the review's exact hash, preview hash, policy and nonce: what was seen
// is what is decided. It works while halted (D34). Errors: PermissionError,
// NotFoundError, ConflictError where the review was decided, expired or looks
// different, SelfApprovalError where the reviewer is who asked.
func (b *Book) Decide(signed operator.Signed) (review.Review, error) {
	w, err := b.VerifySigned(signed)
	if err != nil {
		return review.Review{}, err
	}
	state, ok := review.StateOf(w.Act)
	if !ok {
		return review.Review{}, &holdfast.Error{Kind: holdfast.KindUsage,
			Why: fmt.Sprintf("%q does not answer a review", w.Act)}
	}
	var r review.Review
	err = b.src.Update(func(tx Tx) error {
		if err := w.Spend(tx); err != nil {
			return err
		}
		var err error
		if r, err = b.findWaiting(tx, w); err != nil {
			return err
		}
		if err := r.CheckMayBe(state); err != nil {
			return err
		}
		return b.ApplyAnswer(tx, &r, w, state)
	})
	if errors.Is(err, table.ErrConflict) {
		err = &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7, Rule: review.NameDecided,
			Why:  "the review was decided by somebody else a moment ago",
			Hint: "`holdfast review show " + w.Subject + "`"}
	}
	if err != nil {
		return review.Review{}, err
	}
	continues := ""
	if r.About != "" && r.State == review.Approved {
		continues = r.Agent
	}
	b.src.Attended(r.Tenant, continues)
	b.AnnounceAnswers(r)
	r.Entry = nil
	return r, nil
}

// AnnounceAnswers wakes and notifies people after answers that are durable.
func (b *Book) AnnounceAnswers(rs ...review.Review) {
	var ids []string
	for i := range rs {
		ids = append(ids, rs[i].ID)
	}
	b.Wake(ids...)
	for i := range rs {
		r := &rs[i]
		b.src.Notify("info", "review_"+string(r.State), *r, cmp.Or(r.Reason, string(r.State)))
	}
}

// findWaiting returns the review that the statement is about, if it may still be
// answered by that person.
func (b *Book) findWaiting(tx Reader, w *Word) (review.Review, error) {
	r, err := findReview(tx, w.Subject)
	if err != nil {
		return r, err
	}
	if !r.Waiting(b.src.Now()) {
		return r, r.IsAnswered()
	}
	if err := r.CheckAnswer(&w.Statement, w.key); err != nil || w.Act != operator.Approve {
		return r, err
	}
	if r.About != "" {
		return r, nil
	}
	if c, policy := b.src.Contract(r.Boundary); r.Policy != policy {
		name, what := r.Moved(pinOf(c, &r))
		return r, &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7, Rule: name,
			Why: what + " changed since this was asked", Hint: "the agent must ask anew"}
	}
	return r, nil
}

// ApplyAnswer brings a review to the state that a person's statement gives it, with all that follows in
// the same transaction: its event, the signals, the pause that it is about, and the entry of the
// crossing that waited for it.
func (b *Book) ApplyAnswer(tx Tx, r *review.Review, w *Word, state review.State) error {
	was := r.State
	r.State, r.Decided, r.Reviewer = state, b.src.Instant(), w.Reviewer
	r.Reason = string(b.src.Records.Mask(w.Reason))
	if state == review.Deferred {
		r.Until = w.Until
	} else {
		r.Until = time.Time{}
		if !r.Expires.IsZero() {
			r.Expires = r.Decided.Add(review.Lifetime)
		}
	}
	word, err := json.Marshal(w.signed)
	if err != nil {
		return err
	}
	r.Word = word
	if err := tx.PutReview(*r, was); err != nil {
		return err
	}
	if err := recordDecision(tx, r, w); err != nil {
		return err
	}
	if r.About != "" {
		err := tx.AnswerPause(r, w)
		if err == nil && r.About == review.AboutBudget && state == review.Approved {
			_, err = tx.RaiseSignal(signal.BudgetGranted{Tenant: r.Tenant, Agent: r.Agent, Crossing: r.Crossing,
				Session: r.Session, Review: r.ID, Reviewer: w.Reviewer})
		}
		return err
	}
	if state != review.Rejected && state != review.Changes {
		return nil // no crossing waits for it
	}
	name := review.NameRejected
	if state == review.Changes {
		name = review.NameChanges
	}
	return tx.CloseHeld(r, state, ledger.Denied, &holdfast.Error{Kind: holdfast.KindRejected,
		Gate: holdfast.K7, Rule: name, Why: "rejected by " + r.Reviewer + review.SuffixReason(r.Reason)})
}

// recordDecision raises the signal of a decision and writes its event.
func recordDecision(tx Tx, r *review.Review, w *Word) error {
	data := w.Data()
	data["decision"], data["reason"], data["exact_hash"], data["preview_hash"], data["policy"] = string(r.State),
		r.Reason, r.Exact, r.PreviewHash, r.Policy
	if w.Act == operator.Unpause {
		data["by"] = "agent_unpaused"
	}
	more, err := tx.RaiseSignal(signal.ReviewDecided{Tenant: r.Tenant, Agent: r.Agent, Crossing: r.Crossing,
		Review: r.ID, About: r.About, State: string(r.State), Reviewer: w.Reviewer, At: r.Decided})
	if err != nil {
		return err
	}
	maps.Copy(data, more)
	return tx.Event(record.Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_decided", Who: w.Reviewer,
		Subject: r.ID, Data: data})
}
