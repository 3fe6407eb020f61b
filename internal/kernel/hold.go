package kernel

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// hold stores the question and answers with its handle (D11). The crossing
// stays ENTERING: it keeps no reservation and no raw payload, and its entry is
// written when it is decided, used or expired.
//
// A crash before the commit leaves nothing. A crash after it leaves the
// question, which survives the restart.
func (c *crossing) hold(ctx context.Context) error {
	k, j := c.k, c.j
	j.byRule = nil // another gate asks for a person all the same
	r, err := k.question(c)
	if err != nil {
		return c.refuseKind(holdfast.K7, err)
	}
	opened := false
	err = k.runInScope(ctx, func(tx *scope) error {
		opened, err = k.openReview(tx, j, &r)
		return err
	})
	var no *errRefused
	switch {
	case errors.As(err, &no):
		j.opinions = replaceOpinion(j.opinions, no.op)
		return c.refuse(no.op)
	case err != nil && k.store.Poisoned() == nil && ctx.Err() != nil:
		op := gaveUp(c.caller, holdfast.K7)
		j.opinions = replaceOpinion(j.opinions, op)
		return c.refuse(op)
	case err != nil:
		return c.refuseKind(holdfast.K7, walError(err))
	}
	c.out.Verdict, c.out.Review, c.out.Expires = holdfast.Hold, r.ID, r.Expires
	j.id, j.correlation = r.Crossing, r.Correlation
	if opened {
		k.stir(j.reviewIDs()...)
		k.notify(Opened(&r))
	}
	held := &holdfast.Error{Kind: holdfast.KindHeld, Gate: holdfast.K7, Rule: j.heldAs, Crossing: r.Crossing,
		Why:  "held for a person: " + r.Why,
		Hint: "`holdfast review approve " + r.ID + "` decides it; ask again with the same payload afterwards"}
	c.finish(held)
	c.count(holdfast.Hold, c.heldBy(), "", nil)
	return held
}

// heldBy is the first gate that put the request to a person.
func (c *crossing) heldBy() holdfast.Gate {
	if len(c.j.askedBy) > 0 {
		return c.j.askedBy[0]
	}
	return holdfast.K7
}

// ownReview is the newest review of that binding that this principal asked: an
// answer to one person's question is not another's to use, though their agents
// bear one name.
func ownReview(tx Tx, b review.Binding, principal string) (review.Review, error) {
	r, err := tx.ReviewFor(b)
	if err != nil || r.Principal == principal {
		return r, err
	}
	rs, err := tx.Reviews(b.Tenant, review.None, listLimit)
	if err != nil {
		return review.Review{}, err
	}
	for _, r := range rs {
		if r.Agent == b.Agent && r.Boundary == b.Boundary && r.Exact == b.Exact && r.Principal == principal {
			return r, nil
		}
	}
	return review.Review{}, ErrNotFound
}

// openReview attaches to a waiting question about the same request, or opens
// one (D11). It says whether it opened one.
func (k *Kernel) openReview(tx *scope, j *judgement, r *review.Review) (bool, error) {
	if err := k.admitAgent(tx, j, false); err != nil {
		return false, err
	}
	old, err := ownReview(tx, r.Binding, r.Principal)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	if err == nil {
		switch old.Answer(j.now, j.governs()) {
		case review.Pending:
			*r, j.heldAs = old, review.NameWaiting
			if old.State == review.Deferred {
				j.heldAs = review.NameDeferred
			}
			return false, nil
		case review.Voided:
			name, what := old.Moved(pinOf(j.contract, &old))
			if err := k.void(tx, old, name, what+" changed after this was asked"); err != nil {
				return false, err
			}
		case review.Approved, review.Rejected:
			return false, &errRefused{named(review.NameDecided, deny(holdfast.K7, holdfast.KindConflict,
				"review "+old.ID+" was decided a moment ago", "ask again"))}
		}
	}
	if err := roomForQuestion(tx, r); err != nil {
		return false, err
	}
	if err := takeQuestion(tx, j); err != nil {
		return false, err
	}
	other, err := standing(tx, j)
	if err != nil {
		return false, err
	}
	if other != "" {
		j.heldAs = review.NameArguments
		r.Why += "; the approval of review " + other + " is for other arguments"
	}
	if err := tx.PutReview(*r, review.None); err != nil {
		return false, err
	}
	data := map[string]any{"agent": r.Agent, "boundary": r.Boundary, "exact_hash": r.Exact,
		"preview_hash": r.PreviewHash, "policy": r.Policy, "why": r.Why, "expires_at": stamp(r.Expires)}
	if r.Asker != "" {
		data["asker"] = r.Asker
	}
	if j.beside != nil {
		data["beside"] = true // the preview is of more than the payload
	}
	return true, k.event(tx, Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_proposed", Who: r.Principal, Subject: r.ID,
		Part: []byte(r.Preview), Data: data})
}

// takeQuestion counts a new question against the rates of its contract, as the
// act would be, but apart from acts: one that took the act's own place would
// keep what is approved from acting.
func takeQuestion(tx Tx, j *judgement) error {
	if len(j.rates) == 0 {
		return nil
	}
	own := slices.Clone(j.rates)
	for i := range own {
		own[i].Key = "question/" + own[i].Key
	}
	no, err := tx.Rate(own, j.now)
	if err != nil {
		return err
	}
	if no != nil {
		return &errRefused{j.outOfBounds(no)}
	}
	return nil
}

// How many questions may wait for people: of one agent, and of one tenant. A
// person who is asked more can judge none.
const (
	agentQuestions  = 100
	tenantQuestions = sweepBatch
)

// roomForQuestion refuses one more question where too many wait already.
func roomForQuestion(tx Tx, r *review.Review) error {
	waiting, own := 0, 0
	for _, state := range []review.State{review.Pending, review.Deferred} {
		rs, err := tx.Reviews(r.Tenant, state, tenantQuestions)
		if err != nil {
			return err
		}
		waiting += len(rs)
		for i := range rs {
			if rs[i].Agent == r.Agent {
				own++
			}
		}
	}
	if own < agentQuestions && waiting < tenantQuestions {
		return nil
	}
	return &errRefused{deny(holdfast.K7, holdfast.KindApprovalChannel,
		fmt.Sprintf("%d questions of this agent and %d of its tenant wait for a person already", own, waiting), "answer them first: `holdfast review ls`")}
}

// void closes a question, or an approval, that nobody's answer is for any more:
// of an earlier policy, or of what a remembered rule has let pass.
func (k *Kernel) void(tx *scope, r review.Review, name, why string) error {
	was := r.State
	r.State = review.Voided
	if err := tx.PutReview(r, was); err != nil {
		return err
	}
	if err := k.event(tx, Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_voided", Who: "holdfast", Subject: r.ID,
		Data: map[string]any{"why": why, "state": string(was)}}); err != nil {
		return err
	}
	return k.closeHeld(tx, r, was, ledger.Denied, &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7, Rule: name, Why: why})
}

// question makes the review of a held crossing.
func (k *Kernel) question(c *crossing) (review.Review, error) {
	j := c.j
	id, err := k.reviewID()
	if err != nil {
		return review.Review{}, err
	}
	nonce, err := k.randomHex(16)
	if err != nil {
		return review.Review{}, err
	}
	seen, err := k.shown(j)
	if err != nil {
		return review.Review{}, err
	}
	entry, err := heldEntry(j.skeleton(c.parent), j.at)
	if err != nil {
		return review.Review{}, err
	}
	// Created orders the questions of one request, whatever the clock does.
	return review.Review{ID: id, Crossing: j.id, Binding: j.binding(), Principal: j.who.Principal, Session: j.who.Session,
		Intent: j.who.Intent, Asker: j.asker(), Correlation: j.correlation, Risk: j.risk(), Why: j.why, Cause: j.cause, Confidence: j.score, Threshold: j.limit,
		Preview: seen.Text, PreviewHash: seen.Hash(), Cut: seen.Cut, Masked: seen.Masked, Shape: shape(j, &seen),
		Contract: j.contract.Hash, Pin: j.contract.Pin, Gates: j.askedBy, Key: j.key(), Nonce: nonce,
		State:   review.Pending,
		Created: j.at, Expires: j.now.Add(review.Lifetime), Entry: entry}, nil
}

// shape is what is known of the arguments' members beside the preview, for a
// rule that a person may make of it. Of a request with more than arguments
// nothing but its exact hash is remembered.
func shape(j *judgement, seen *record.Preview) []review.Arg {
	if seen.Cut || j.beside != nil {
		return nil
	}
	shown, err := payload.Parse([]byte(seen.Text))
	if err != nil {
		return nil
	}
	return review.ShapeOf(j.doc.Value(), shown.Value())
}

// reviewID is short enough to type and is no secret: deciding needs the
// operator key, never the id alone (D38).
func (k *Kernel) reviewID() (string, error) {
	h, err := k.randomHex(5)
	return "rv_" + h, err
}

func (k *Kernel) randomHex(n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(k.random, b); err != nil {
		return "", &holdfast.Error{Kind: holdfast.KindInternal, Why: "no randomness", Err: err}
	}
	return hex.EncodeToString(b), nil
}

// closeHeld writes the entry of a crossing that was held and will never begin.
// answer is the state in which a person's answer, if any, left the review:
// time or a new policy may have moved it on since.
func (k *Kernel) closeHeld(tx *scope, r review.Review, answer review.State, outcome ledger.Outcome, why error) error {
	e, err := ledger.ParseEntry(r.Entry)
	if err != nil {
		return err
	}
	e.Outcome, e.Review, e.Reviewer, e.ExitCode = outcome, r.ID, visible.ReplaceUnprintable(r.Reviewer), 1
	fault(e, why)
	switch answer {
	case review.Approved, review.Rejected, review.Changes:
		approved := answer == review.Approved
		e.Approved = &approved
	}
	leaf, err := k.sealEntry(e, nil)
	if err != nil {
		return err
	}
	if err := k.appendEntry(tx, e, leaf); err != nil {
		return err
	}
	return tx.runEntryHooks(nil, e)
}

// expire closes a review whose time is over. seen says that its agent is being
// told now; otherwise the agent is told when it asks again.
func (k *Kernel) expire(tx *scope, r review.Review, seen bool) error {
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
	if err := k.event(tx, Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "review_expired", Who: "holdfast", Subject: r.ID,
		Data: map[string]any{"state": string(was)}}); err != nil {
		return err
	}
	name := review.NameExpired
	if was == review.Approved {
		name = review.NameUnused
	}
	return k.closeHeld(tx, now, was, ledger.HeldExpired, &holdfast.Error{Kind: holdfast.KindApprovalTimeout, Gate: holdfast.K7, Rule: name,
		Why: "nobody answered, or the approval was not used, within " + review.Lifetime.String()})
}

// heldEntry writes an entry that waits in a review until it is known how the
// crossing ends.
func heldEntry(e *ledger.Entry, at time.Time) ([]byte, error) {
	e.CreatedAt, e.Outcome, e.ExitCode = at, ledger.HeldExpired, 1
	return e.AppendJSON(nil)
}
