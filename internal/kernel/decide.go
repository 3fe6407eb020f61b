package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// listLimit bounds what a list of reviews returns.
const listLimit = 1000

// Reviews lists reviews, newest first, without their entries; an empty state
// lists all.
func (k *Kernel) Reviews(ctx context.Context, tenant string, state review.State) ([]review.Review, error) {
	var out []review.Review
	err := k.store.View(ctx, func(tx Tx) error {
		var err error
		out, err = tx.Reviews(tenant, state, listLimit)
		return err
	})
	for i := range out {
		out[i].Entry = nil
	}
	return out, err
}

// Review returns one review by its id.
func (k *Kernel) Review(ctx context.Context, id string) (review.Review, error) {
	var r review.Review
	err := k.store.View(ctx, func(tx Tx) error {
		var err error
		r, err = tx.Review(id)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		err = review.NoReview(id)
	}
	r.Entry = nil
	return r, err
}

// verifyPerson checks that a person with an operator key said this, here, a
// moment ago (D11).
func (k *Kernel) verifyPerson(signed operator.Signed) (operator.Statement, operator.Public, error) {
	keys := k.operator()
	var s operator.Statement
	var key operator.Public
	err := error(&holdfast.Error{Kind: holdfast.KindPermission, Rule: "statement/no_key", Why: "there is no operator key", Hint: "make one with `holdfast init`"})
	for _, key = range keys {
		if s, err = operator.Verify(key, signed, k.now()); err == nil {
			break
		}
	}
	if err != nil {
		return operator.Statement{}, operator.Public{}, err
	}
	if s.Runtime != k.runtime {
		return operator.Statement{}, operator.Public{}, &holdfast.Error{Kind: holdfast.KindPermission, Rule: "statement/other_runtime", Why: "the statement was made for another state directory", Hint: "name the same --state"}
	}
	if name := key.Name(); name != "" && s.Reviewer != name && s.Reviewer != key.ID() {
		return operator.Statement{}, operator.Public{}, &holdfast.Error{Kind: holdfast.KindPermission, Rule: "statement/other_name",
			Why: "the key is " + name + "'s, and the statement is said as " + excerpt.Of(s.Reviewer, 64), Hint: "say it under the key's own name"}
	}
	// A statement is kept word for word, under its signature, for ever.
	if k.redact.Text([]byte(s.Reason)).Found() {
		return s, key, &holdfast.Error{Kind: holdfast.KindValue, Rule: "statement/secret", Why: "the reason holds a secret or personal data, and would be kept as it is", Hint: "say it again without"}
	}
	return s, key, nil
}

// once makes a statement worthless for a second use.
func once(tx Tx, s operator.Statement) error {
	err := usedStatements.Insert(tx, s.ID, usedStatement{At: stamp(s.At)})
	if errors.Is(err, ErrExists) {
		return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "statement/replayed", Why: "this statement was carried out already", Hint: "say it again"}
	}
	return err
}

// Decide carries out a person's signed answer to a review. The statement must
// name the review's exact hash, preview hash, policy and nonce: what was seen
// is what is decided. It works while halted (D34). Errors: PermissionError,
// NotFoundError, ConflictError where the review was decided, expired or looks
// different, SelfApprovalError where the reviewer is who asked.
func (k *Kernel) Decide(signed operator.Signed) (review.Review, error) {
	s, key, err := k.verifyPerson(signed)
	if err != nil {
		return review.Review{}, err
	}
	state, ok := review.StateOf(s.Act)
	if !ok {
		return review.Review{}, &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("%q does not answer a review", s.Act)}
	}
	ctx, cancel := edge()
	defer cancel()
	var r review.Review
	err = k.runInScope(ctx, func(tx *scope) error {
		if err := once(tx, s); err != nil {
			return err
		}
		if r, err = k.answerable(tx, s, key); err != nil {
			return err
		}
		if err := r.CheckMayBe(state); err != nil {
			return err
		}
		return k.applyDecision(tx, &r, s, signed, state)
	})
	if errors.Is(err, ErrConflict) {
		err = &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7, Rule: review.NameDecided,
			Why: "the review was decided by somebody else a moment ago", Hint: "`holdfast review show " +
				s.Subject + "`"}
	}
	if err != nil {
		return review.Review{}, walError(err)
	}
	goesOn := ""
	if r.About != "" && r.State == review.Approved {
		goesOn = r.Agent
	}
	k.observer.Attended(r.Tenant, goesOn)
	k.stir(r.ID)
	k.notify(decidedNotice(&r))
	r.Entry = nil
	return r, nil
}

// decidedNotice is how people are told of an answer.
func decidedNotice(r *review.Review) Notice {
	return Notice{Level: "info", Event: "review_" + string(r.State), Tenant: r.Tenant, Agent: r.Asks(), Boundary: r.Boundary, Review: r.ID, Crossing: r.Crossing,
		Why: reasonOr(r.Reason, string(r.State))}
}

func reasonOr(s, or string) string {
	if s == "" {
		return or
	}
	return s
}

// answerable finds the review that the statement is about, if it may still be
// answered by that person.
func (k *Kernel) answerable(tx Tx, s operator.Statement, key operator.Public) (review.Review, error) {
	r, err := tx.Review(s.Subject)
	if errors.Is(err, ErrNotFound) {
		return r, review.NoReview(s.Subject)
	}
	if err != nil {
		return r, err
	}
	if !r.Waiting(k.now()) {
		return r, r.IsAnswered()
	}
	if err := r.CheckAnswer(&s, key); err != nil || s.Act != operator.Approve {
		return r, err
	}
	if r.About == "" && r.Policy != k.governs(r.Boundary) {
		name, what := r.Moved(pinOf(k.lookup(k.policy.Load(), r.Boundary), &r))
		return r, &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7, Rule: name, Why: what + " changed since this was asked", Hint: "the agent must ask anew"}
	}
	return r, nil
}

func (k *Kernel) applyDecision(tx *scope, r *review.Review, s operator.Statement, signed operator.Signed,
	state review.State) error {
	was := r.State
	r.State, r.Decided, r.Reviewer, r.Reason = state, k.instant(), s.Reviewer, string(k.mask(s.Reason))
	if state == review.Deferred {
		r.Until = s.Until
	} else {
		r.Until = time.Time{}
		if !r.Expires.IsZero() {
			r.Expires = r.Decided.Add(review.Lifetime)
		}
	}
	word, err := json.Marshal(signed)
	if err != nil {
		return err
	}
	r.Word = word
	if err := tx.PutReview(*r, was); err != nil {
		return err
	}
	data := map[string]any{"decision": string(state), "reason": r.Reason, "exact_hash": r.Exact, "preview_hash": r.PreviewHash,
		"policy": r.Policy, "statement": signed.Statement, "signature": signed.Signature}
	if s.Act == operator.Unpause {
		data["by"] = "agent_unpaused"
	}
	more, err := tx.raiseSignal(signal.ReviewDecided{Tenant: r.Tenant, Agent: r.Agent, Crossing: r.Crossing,
		Review: r.ID, About: r.About,
		State: string(state), Reviewer: s.Reviewer, At: r.Decided})
	if err != nil {
		return err
	}
	maps.Copy(data, more)
	if err := k.event(tx, Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_decided", Who: s.Reviewer, Subject: r.ID, Data: data}); err != nil {
		return err
	}
	if r.About != "" {
		err := k.attemptAnswered(tx, r, s, signed)
		if err == nil && r.About == review.AboutBudget && state == review.Approved {
			_, err = tx.raiseSignal(signal.BudgetGranted{Tenant: r.Tenant, Agent: r.Agent, Crossing: r.Crossing,
				Session: r.Session, Review: r.ID, Reviewer: s.Reviewer})
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
	return k.closeHeld(tx, *r, state, ledger.Denied, &holdfast.Error{Kind: holdfast.KindRejected,
		Gate: holdfast.K7, Rule: name, Why: "rejected by " + r.Reviewer + review.SuffixReason(r.Reason)})
}

// every lists the reviews in a state of every tenant, the newest sweepBatch of
// each, so that no tenant's crowd another's out. Of questions that wait no
// tenant has more.
func every(tx Tx, state review.State) ([]review.Review, error) {
	rs, err := tx.Reviews("", state, sweepBatch)
	if err != nil || len(rs) < sweepBatch {
		return rs, err
	}
	heads, err := tx.Heads()
	if err != nil {
		return nil, err
	}
	rs = nil
	for _, h := range heads {
		own, err := tx.Reviews(h.Tenant, state, sweepBatch)
		if err != nil {
			return nil, err
		}
		rs = append(rs, own...)
	}
	return rs, nil
}

// dueReviews are those whose time is over.
func (k *Kernel) dueReviews(ctx context.Context) ([]review.Review, error) {
	var due []review.Review
	err := k.store.View(ctx, func(tx Tx) error {
		for _, state := range []review.State{review.Pending, review.Deferred, review.Approved} {
			rs, err := every(tx, state)
			if err != nil {
				return err
			}
			for _, r := range rs {
				if r.Over(k.now()) {
					due = append(due, r)
				}
			}
		}
		return nil
	})
	return due, err
}
