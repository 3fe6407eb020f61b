package kernel

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// The names by which a hold or a refusal of K7 is known, beside its kind.
const (
	nameOpened    = "review/opened"
	nameWaiting   = "review/waiting"
	nameDeferred  = "review/deferred"
	nameExpired   = "review/expired"
	nameUnused    = "review/unused"
	nameUsed      = "review/used"
	nameRejected  = "review/rejected"
	nameChanges   = "review/changes_requested"
	nameDecided   = "review/decided"
	nameVoided    = "review/voided"
	namePolicy    = "review/policy_changed"
	nameTool      = "review/tool_changed"
	nameArguments = "review/other_arguments"
	nameSelf      = "review/self_approval"
	nameForged    = "review/not_signed"
	nameChannel   = "review/channel"
)

// holdOrDecision puts the question to a person, or gives the answer that one
// has given to exactly this request, or, for K7, once and for others like it.
func (j *judgement) holdOrDecision(g holdfast.Gate, rule, why, cause string) holdfast.Opinion {
	if j.factErr != nil || j.bookErr != nil {
		return named(nameChannel, deny(g, holdfast.KindApprovalChannel, "the reviews cannot be read", "see `holdfast doctor`"))
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
		return rejected(g, r)
	}
	if kept := j.ruleFor(g); kept != nil {
		j.byRule = kept
		return allow(g, "HUMAN_APPROVED", kept.name(), "as "+kept.said.Reviewer+" remembered until "+stamp(kept.said.Until))
	}
	if answer == review.Expired {
		return tooLate(g, r)
	}
	hold := holdfast.Opinion{Gate: g, Verdict: holdfast.Hold, State: "BLOCKED", Rule: rule, Hint: "a person decides with `holdfast review`"}
	j.heldAs = nameOpened
	switch {
	case answer == review.Pending:
		hold.Hint = fmt.Sprintf("a person decides with `holdfast review approve %s` until %s", r.ID, stamp(r.Expires))
	case answer == review.Voided:
		var what string
		j.heldAs, what = moved(r, j.contract)
		why += "; " + what + " changed after review " + r.ID + " was opened"
		cause = ""
	case r != nil && r.State == review.Used && j.now.Before(r.Decided.Add(review.Lifetime)):
		j.heldAs = nameUsed
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

// moved names what is not as it was when the review was asked.
func moved(r *review.Review, c *contract) (name, what string) {
	if c != nil && r.Pin != c.Pin {
		return nameTool, "the tool"
	}
	return namePolicy, "the policy"
}

func rejected(g holdfast.Gate, r *review.Review) holdfast.Opinion {
	op := deny(g, holdfast.KindRejected, "rejected by "+r.Reviewer+reason(r.Reason), "the same request is refused until "+stamp(r.Expires))
	op.State, op.Rule = "HUMAN_REJECTED", nameRejected
	if r.State == review.Changes {
		op.Why, op.Rule = r.Reviewer+" asks for changes"+reason(r.Reason), nameChanges
		op.Hint = "ask with what was changed; the same request is refused until " + stamp(r.Expires)
	}
	return op
}

func tooLate(g holdfast.Gate, r *review.Review) holdfast.Opinion {
	op := deny(g, holdfast.KindApprovalTimeout, "nobody answered review "+r.ID+" within "+review.Lifetime.String(), "ask again to open a new review")
	op.State, op.Rule = "APPROVAL_TIMEOUT", nameExpired
	if r.Reviewer != "" && (r.State == review.Approved || r.State == review.Expired) && r.Until.IsZero() {
		op.Why, op.Rule = "the approval of review "+r.ID+" was not used within "+review.Lifetime.String(), nameUnused
	}
	return op
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
