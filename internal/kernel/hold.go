package kernel

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
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
	j.human.Rule = nil // another gate asks for a person anyway
	r, err := c.makeQuestion()
	if err != nil {
		return c.refuseKind(holdfast.K7, err)
	}
	attached := false
	err = k.runInScope(ctx, func(tx *scope) error {
		attached, err = j.openReview(tx, &r)
		return err
	})
	no, denied := findDenial(err)
	switch {
	case denied:
		j.opinions = replaceOpinion(j.opinions, no)
		return c.refuse(no)
	case err != nil && k.store.Poisoned() == nil && ctx.Err() != nil:
		op := gaveUp(c.caller, holdfast.K7)
		j.opinions = replaceOpinion(j.opinions, op)
		return c.refuse(op)
	case err != nil:
		return c.refuseKind(holdfast.K7, walError(err))
	}
	c.out.Verdict, c.out.Review, c.out.Expires = holdfast.Hold, r.ID, r.Expires
	j.id, j.correlation = r.Crossing, r.Correlation
	if !attached {
		k.Wake(j.reviewIDs()...)
		k.notify(Opened(&r))
	}
	held := &holdfast.Error{Kind: holdfast.KindHeld, Gate: holdfast.K7, Rule: j.human.Held, Crossing: r.Crossing,
		Why:  "held for a person: " + r.Why,
		Hint: "`holdfast review approve " + r.ID + "` decides it; ask again with the same payload afterwards"}
	c.finish(held)
	c.count(holdfast.Hold, c.heldBy(), "", nil)
	return held
}

// heldBy is the first gate that put the request to a person.
func (c *crossing) heldBy() holdfast.Gate {
	if len(c.j.human.Gates) > 0 {
		return c.j.human.Gates[0]
	}
	return holdfast.K7
}

// openReview attaches to a waiting question about the same request, or opens
// one (D11). It reports whether it attached.
func (j *judgement) openReview(tx *scope, r *review.Review) (attached bool, err error) {
	if err := j.k.admitAgent(tx, j, false); err != nil {
		return false, err
	}
	if attached, err = j.human.Attach(tx, r); err != nil || attached {
		return attached, err
	}
	if err := takeQuestion(tx, j); err != nil {
		return false, err
	}
	return false, j.human.Open(tx, r)
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

// makeQuestion makes the review of a held crossing.
func (c *crossing) makeQuestion() (review.Review, error) {
	j := c.j
	seen, err := c.k.shown(j)
	if err != nil {
		return review.Review{}, err
	}
	r, err := j.human.Question(&seen)
	if err != nil {
		return review.Review{}, err
	}
	r.Crossing, r.Intent, r.Asker, r.Correlation, r.Key = j.id, j.who.Intent, j.asker(), j.correlation, j.key()
	r.Risk, r.Confidence, r.Threshold = j.risk(), j.score, j.limit
	r.Entry, err = heldEntry(j.skeleton(c.parent), j.at)
	return r, err
}

// CloseHeld implements approval.Tx.
func (s *scope) CloseHeld(r *review.Review, answer review.State, outcome ledger.Outcome, why error) error {
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
	leaf, err := s.k.sealEntry(e, nil)
	if err != nil {
		return err
	}
	if err := s.k.appendEntry(s, e, leaf); err != nil {
		return err
	}
	return s.runEntryHooks(nil, e)
}

// heldEntry writes an entry that waits in a review until it is known how the
// crossing ends.
func heldEntry(e *ledger.Entry, at time.Time) ([]byte, error) {
	e.CreatedAt, e.Outcome, e.ExitCode = at, ledger.HeldExpired, 1
	return e.AppendJSON(nil)
}
