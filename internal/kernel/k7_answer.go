package kernel

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// holdOrDecision puts the question to a person, or gives the answer that one
// has given to exactly this request, or, for K7, once and for others like it.
func (j *judgement) holdOrDecision(g holdfast.Gate, rule, why, cause string) holdfast.Opinion {
	if j.factErr != nil || j.bookErr != nil {
		return named(review.NameChannel, deny(g, holdfast.KindApprovalChannel, "the reviews cannot be read",
			"see `holdfast doctor`"))
	}
	if j.doc == nil {
		return deny(g, holdfast.KindApprovalChannel, "what is not well formed cannot be put to a person", "")
	}
	r, answer := j.review, review.None
	if r != nil {
		answer = r.Answer(j.now, j.governs())
	}
	switch answer {
	case review.Approved:
		j.approved = true
		return allow(g, "HUMAN_APPROVED", "review "+r.ID, "approved by "+r.Reviewer)
	case review.Rejected:
		return r.RefuseRejected(g)
	}
	if kept := j.ruleFor(g); kept != nil {
		j.byRule = kept
		return allow(g, "HUMAN_APPROVED", kept.name(), "as "+kept.said.Reviewer+" remembered until "+stamp(kept.said.Until))
	}
	if answer == review.Expired {
		return r.RefuseLate(g)
	}
	hold := holdfast.Opinion{Gate: g, Verdict: holdfast.Hold, State: "BLOCKED", Rule: rule, Hint: "a person decides with `holdfast review`"}
	j.heldAs = review.NameOpened
	switch {
	case answer == review.Pending:
		hold.Hint = fmt.Sprintf("a person decides with `holdfast review approve %s` until %s", r.ID, stamp(r.Expires))
	case answer == review.Voided:
		var what string
		j.heldAs, what = r.Moved(pinOf(j.contract, r))
		why += "; " + what + " changed after review " + r.ID + " was opened"
		cause = ""
	case r != nil && r.State == review.Used && j.now.Before(r.Decided.Add(review.Lifetime)):
		j.heldAs = review.NameUsed
		why += "; the approval of review " + r.ID + " was used already"
		cause = ""
	}
	if j.ended != "" {
		why += "; " + j.ended
		cause = ""
	}
	hold.Why, j.why, j.cause, j.askedBy = why, why, cause, append(j.askedBy, g)
	return hold
}

// ruleFor is the remembered rule that lets the request pass, if the gate may
// be answered by one: what a rule of the constitution puts to a person is put
// to a person each time.
func (j *judgement) ruleFor(g holdfast.Gate) *keptRule {
	if g != holdfast.K7 {
		return nil
	}
	return j.remembered()
}

// standing finds an approval of the same caller at the same boundary that is
// for other arguments, so that an agent which changed them learns why it is
// held again. It tells the review's id and nothing else of it.
func standing(tx Tx, j *judgement) (string, error) {
	const look = 100
	rs, err := tx.Reviews(j.who.Tenant, review.Approved, look)
	if err != nil {
		return "", err
	}
	for i := range rs {
		r := &rs[i]
		if r.Agent == j.who.Agent && r.Principal == j.who.Principal && r.Boundary == j.req.Boundary && r.Exact != j.exact() &&
			r.Answer(j.now, j.governs()) == review.Approved {
			return r.ID, nil
		}
	}
	return "", nil
}

// pinOf returns the pin of the contract now; without a contract, that of the review.
func pinOf(c *contract.Contract, r *review.Review) string {
	if c == nil {
		return r.Pin
	}
	return c.Pin
}
