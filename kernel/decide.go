package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/operator"
	"github.com/holdfast-dev/holdfast/internal/review"
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
		err = &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no review %q", clip(id, 64)), Hint: "`holdfast review ls` lists them"}
	}
	r.Entry = nil
	return r, err
}

// verifyPerson checks that a person with an operator key said this, here, a
// moment ago (D11).
func (k *Kernel) verifyPerson(signed operator.Signed) (operator.Statement, error) {
	keys := k.operator()
	if len(keys) == 0 {
		return operator.Statement{}, &holdfast.Error{Kind: holdfast.KindPermission, Why: "there is no operator key", Hint: "make one with `holdfast init`"}
	}
	var s operator.Statement
	var err error
	for _, key := range keys {
		if s, err = operator.Verify(key, signed, k.now()); err == nil {
			break
		}
	}
	if err != nil {
		return operator.Statement{}, err
	}
	if s.Runtime != k.runtime {
		return operator.Statement{}, &holdfast.Error{Kind: holdfast.KindPermission, Why: "the statement was made for another state directory", Hint: "name the same --state"}
	}
	// A statement is kept word for word, under its signature, for ever.
	if k.redact.Text([]byte(s.Reason)).Found() {
		return s, &holdfast.Error{Kind: holdfast.KindValue, Why: "the reason holds a secret or personal data, and would be kept as it is", Hint: "say it again without"}
	}
	return s, nil
}

// once makes a statement worthless for a second use.
func once(tx Tx, s operator.Statement) error {
	name := "statement/" + s.ID
	_, err := tx.Meta(name)
	if err == nil {
		return &holdfast.Error{Kind: holdfast.KindConflict, Why: "this statement was carried out already", Hint: "say it again"}
	}
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	return tx.PutMeta(name, []byte(stamp(s.At)))
}

// decisions is what each act makes of a review.
func decided(act string) (review.State, bool) {
	switch act {
	case operator.Approve:
		return review.Approved, true
	case operator.Reject:
		return review.Rejected, true
	case operator.Changes:
		return review.Changes, true
	case operator.Defer:
		return review.Deferred, true
	}
	return review.None, false
}

// Decide carries out a person's signed answer to a review. The statement must
// name the review's exact hash, preview hash, policy and nonce: what was seen
// is what is decided. It works while halted (D34). Errors: PermissionError,
// NotFoundError, ConflictError where the review was decided, expired or looks
// different, SelfApprovalError where the reviewer is who asked.
func (k *Kernel) Decide(signed operator.Signed) (review.Review, error) {
	s, err := k.verifyPerson(signed)
	if err != nil {
		return review.Review{}, err
	}
	state, ok := decided(s.Act)
	if !ok {
		return review.Review{}, &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("%q does not answer a review", s.Act)}
	}
	ctx, cancel := edge()
	defer cancel()
	var r review.Review
	err = k.store.Update(ctx, func(tx Tx) error {
		if err := once(tx, s); err != nil {
			return err
		}
		if r, err = k.answerable(tx, s); err != nil {
			return err
		}
		return k.applyDecision(tx, &r, s, signed, state)
	})
	if errors.Is(err, ErrConflict) {
		err = &holdfast.Error{Kind: holdfast.KindConflict, Why: "the review was decided by somebody else a moment ago", Hint: "`holdfast review show " + s.Subject + "`"}
	}
	if err != nil {
		return review.Review{}, walError(err)
	}
	k.notify(Notice{Level: "info", Event: "review_" + string(r.State), Tenant: r.Tenant, Agent: r.Agent, Boundary: r.Boundary, Review: r.ID, Crossing: r.Crossing, Why: reasonOr(r.Reason, string(r.State))})
	r.Entry = nil
	return r, nil
}

func reasonOr(s, or string) string {
	if s == "" {
		return or
	}
	return s
}

// answerable finds the review that the statement is about, if it may still be
// answered by that person.
func (k *Kernel) answerable(tx Tx, s operator.Statement) (review.Review, error) {
	r, err := tx.Review(s.Subject)
	if errors.Is(err, ErrNotFound) {
		return r, &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no review %q", clip(s.Subject, 64)), Hint: "`holdfast review ls` lists them"}
	}
	if err != nil {
		return r, err
	}
	switch {
	case !r.Waiting(k.now()):
		by := ""
		if r.Reviewer != "" {
			by = " by " + r.Reviewer
		}
		return r, &holdfast.Error{Kind: holdfast.KindConflict, Why: "review " + r.ID + " is " + string(r.State) + by + " and cannot be answered again", Hint: "the agent can ask anew"}
	case s.Nonce != r.Nonce || s.Exact != r.Exact || s.PreviewHash != r.PreviewHash || s.Policy != r.Policy:
		return r, &holdfast.Error{Kind: holdfast.KindConflict, Why: "the statement is about something other than what review " + r.ID + " holds", Hint: "look at it again with `holdfast review show " + r.ID + "`"}
	case s.Tenant != "" && s.Tenant != r.Tenant:
		return r, &holdfast.Error{Kind: holdfast.KindPermission, Why: "the statement is about another tenant than review " + r.ID + " is of", Hint: "look at it again with `holdfast review show " + r.ID + "`"}
	case s.Act == operator.Approve && r.Cut && s.Value != operator.InPart:
		return r, &holdfast.Error{Kind: holdfast.KindPermission, Why: "review " + r.ID + " is shown in part, and the statement does not say that this was seen",
			Hint: "`holdfast review approve " + r.ID + " --in-part` approves what nobody saw whole"}
	case s.Act == operator.Approve && (sameName(s.Reviewer, r.Principal) || sameName(s.Reviewer, r.Agent)):
		return r, &holdfast.Error{Kind: holdfast.KindSelfApproval, Why: s.Reviewer + " asked for this and cannot approve it", Hint: "another person must"}
	case s.Act == operator.Approve && r.Policy != k.governs(r.Boundary):
		return r, &holdfast.Error{Kind: holdfast.KindConflict, Why: "the policy changed since this was asked", Hint: "the agent must ask anew"}
	}
	return r, nil
}

// sameName compares a name that a person gave with one from a token, however
// either is written. It keeps an honest person from a mistake: who holds the
// operator key may bear any name.
func sameName(a, b string) bool { return strings.EqualFold(bareName(a), bareName(b)) }

// bareName is a name without what says whose kind it is.
func bareName(s string) string {
	s = strings.TrimSpace(s)
	kind, rest, found := strings.Cut(s, ":")
	if found && slices.ContainsFunc([]string{"user", "agent", "operator"}, func(k string) bool { return strings.EqualFold(k, kind) }) {
		return bareName(rest)
	}
	return s
}

// genuine checks, where an approval is used, what was checked when it was
// given: that a person with an operator key signed exactly this (D11). A row
// that somebody changed in the store is no approval.
func (k *Kernel) genuine(r *review.Review) error {
	forged := &holdfast.Error{Kind: holdfast.KindApprovalChannel, Gate: holdfast.K7, Rule: "review " + r.ID,
		Why: "the approval of review " + r.ID + " carries no signature of an operator", Hint: "somebody changed the store: look at it with `holdfast ledger verify`"}
	var signed operator.Signed
	if json.Unmarshal(r.Word, &signed) != nil || len(signed.Statement) > operator.MaxStatement {
		return forged
	}
	said, err := operator.Parse(signed.Statement)
	if err != nil {
		return forged
	}
	for _, key := range k.operator() {
		// Its age was judged when it was given.
		s, err := operator.Verify(key, signed, said.At)
		if err == nil && s.Act == operator.Approve && s.Subject == r.ID && s.Nonce == r.Nonce && s.Exact == r.Exact &&
			s.PreviewHash == r.PreviewHash && s.Policy == r.Policy && s.Runtime == k.runtime && s.Reviewer == r.Reviewer {
			return nil
		}
	}
	return forged
}

func (k *Kernel) applyDecision(tx Tx, r *review.Review, s operator.Statement, signed operator.Signed, state review.State) error {
	was := r.State
	r.State, r.Decided, r.Reviewer, r.Reason = state, k.instant(), s.Reviewer, string(k.mask(s.Reason))
	if state == review.Deferred {
		r.Until = s.Until
	} else {
		r.Expires = r.Decided.Add(review.Lifetime)
	}
	word, err := json.Marshal(signed)
	if err != nil {
		return err
	}
	r.Word = word
	if err := tx.PutReview(*r, was); err != nil {
		return err
	}
	if err := k.event(tx, Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_decided", Who: s.Reviewer, Subject: r.ID,
		Data: map[string]any{"decision": string(state), "reason": r.Reason, "exact_hash": r.Exact, "preview_hash": r.PreviewHash,
			"policy": r.Policy, "statement": signed.Statement, "signature": signed.Signature}}); err != nil {
		return err
	}
	if state != review.Rejected && state != review.Changes {
		return nil
	}
	return k.closeHeld(tx, *r, state, ledger.Denied, &holdfast.Error{Kind: holdfast.KindRejected, Gate: holdfast.K7, Why: "rejected by " + r.Reviewer + reason(r.Reason)})
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
				if !k.now().Before(r.Expires) {
					due = append(due, r)
				}
			}
		}
		return nil
	})
	return due, err
}
