package review

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// The names by which a hold or a refusal of K7 is known, in addition to its kind.
const (
	NameOpened    = "review/opened"
	NameWaiting   = "review/waiting"
	NameDeferred  = "review/deferred"
	NameExpired   = "review/expired"
	NameUnused    = "review/unused"
	NameUsed      = "review/used"
	NameRejected  = "review/rejected"
	NameChanges   = "review/changes_requested"
	NameDecided   = "review/decided"
	NameVoided    = "review/voided"
	NamePolicy    = "review/policy_changed"
	NameTool      = "review/tool_changed"
	NameArguments = "review/other_arguments"
	NameSelf      = "review/self_approval"
	NameForged    = "review/not_signed"
	NameChannel   = "review/channel"
)

// SuffixReason returns a reason as it follows a sentence, "" for an empty one.
func SuffixReason(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + excerpt.Of(reason, 256)
}

// FormatTime returns a time as people and records read it: RFC 3339, in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Moved names what changed since the review was opened, pin being that of the boundary's
// contract now.
func (r *Review) Moved(pin string) (name, what string) {
	if r.Pin != pin {
		return NameTool, "the tool"
	}
	return NamePolicy, "the policy"
}

// RefuseRejected returns the opinion of a gate on a request that a person rejected.
func (r *Review) RefuseRejected(g holdfast.Gate) holdfast.Opinion {
	op := holdfast.Opinion{Gate: g, Verdict: holdfast.Deny, Kind: holdfast.KindRejected, State: "HUMAN_REJECTED",
		Rule: NameRejected, Why: "rejected by " + r.Reviewer + SuffixReason(r.Reason),
		Hint: "the same request is refused until " + FormatTime(r.Expires)}
	if r.State == Changes {
		op.Why, op.Rule = r.Reviewer+" asks for changes"+SuffixReason(r.Reason), NameChanges
		op.Hint = "ask with what was changed; the same request is refused until " + FormatTime(r.Expires)
	}
	return op
}

// RefuseLate returns the opinion of a gate on a request whose review ended without an
// answer, or whose approval was not used in time.
func (r *Review) RefuseLate(g holdfast.Gate) holdfast.Opinion {
	op := holdfast.Opinion{Gate: g, Verdict: holdfast.Deny, Kind: holdfast.KindApprovalTimeout,
		State: "APPROVAL_TIMEOUT", Rule: NameExpired,
		Why:  "nobody answered review " + r.ID + " within " + Lifetime.String(),
		Hint: "ask again to open a new review"}
	if r.Reviewer != "" && (r.State == Approved || r.State == Expired) && r.Until.IsZero() {
		op.Why, op.Rule = "the approval of review "+r.ID+" was not used within "+Lifetime.String(), NameUnused
	}
	return op
}

// NoReview returns the error for an ID that no review has.
func NoReview(id string) error {
	return &holdfast.Error{Kind: holdfast.KindNotFound, Rule: "review/none",
		Why: fmt.Sprintf("there is no review %q", excerpt.Of(id, 64)), Hint: "`holdfast review ls` lists them"}
}

// IsAnswered returns why a review that does not wait takes no answer: a ConflictError.
func (r *Review) IsAnswered() error {
	e := &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7, Rule: NameDecided,
		Hint: "the agent can ask anew"}
	if r.About != "" {
		e.Hint = ""
	}
	by := ""
	if r.Reviewer != "" {
		by = " by " + r.Reviewer
	}
	e.Why = "review " + r.ID + " is " + string(r.State) + by + " and cannot be answered again"
	switch r.State {
	case Pending, Deferred, Expired:
		e.Rule = NameExpired
		e.Why = "review " + r.ID + " ended at " + FormatTime(r.Expires) + " and cannot be answered any more"
	case Voided:
		e.Rule = NameVoided
	case Used:
		e.Rule = NameUsed
		e.Why = "review " + r.ID + " was approved" + by + " and has been used: it cannot be answered again"
	}
	return e
}

// CheckAnswer refuses a statement that does not answer the review as it was shown to the
// person, who has the key. It does not look at the review's state or policy.
func (r *Review) CheckAnswer(s *operator.Statement, key operator.Public) error {
	if err := r.CheckSeen(s); err != nil || s.Act != operator.Approve {
		return err
	}
	switch {
	case r.InPart() && s.Value != operator.InPart:
		return &holdfast.Error{Kind: holdfast.KindPermission, Rule: "review/seen_in_part",
			Why:  "review " + r.ID + " " + r.inPart() + ", and the statement does not say that this was seen",
			Hint: "`holdfast review approve " + r.ID + " --in-part` approves what nobody saw whole"}
	case SaidBySelf(s, key, r):
		return RefuseSelf(s.Reviewer)
	}
	return nil
}

// RefuseSelf returns the error for a person who asked and would approve.
func RefuseSelf(who string) error {
	return &holdfast.Error{Kind: holdfast.KindSelfApproval, Gate: holdfast.K7, Rule: NameSelf,
		Why: who + " asked for this and cannot approve it", Hint: "another person must"}
}

// inPart says why a reviewer does not see the whole.
func (r *Review) inPart() string {
	switch {
	case !r.Masked:
		return "is shown in part"
	case !r.Cut:
		return "is shown with something masked in it"
	}
	return "is shown in part, with something masked in it"
}

// CheckSeen refuses a statement about something other than the review holds: a person
// decides exactly what was shown.
func (r *Review) CheckSeen(s *operator.Statement) error {
	hint := "look at it again with `holdfast review show " + r.ID + "`"
	for _, f := range []struct{ name, is, said string }{
		{NameArguments, r.Exact, s.Exact}, {"review/other_preview", r.PreviewHash, s.PreviewHash},
		{NamePolicy, r.Policy, s.Policy}, {"review/other_question", r.Nonce, s.Nonce},
	} {
		if f.is != f.said {
			return &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K7, Rule: f.name,
				Why: "the statement is about something other than what review " + r.ID + " holds", Hint: hint}
		}
	}
	if cmp.Or(s.Tenant, holdfast.Local) != r.Tenant {
		return &holdfast.Error{Kind: holdfast.KindPermission, Gate: holdfast.K7, Rule: "review/other_tenant",
			Why: "the statement is about another tenant than review " + r.ID + " is of", Hint: hint}
	}
	return nil
}

// CheckMayBe refuses an answer that a review of its kind cannot have.
func (r *Review) CheckMayBe(answer State) error {
	if r.MayBe(answer) {
		return nil
	}
	about := "an escape attempt"
	switch r.About {
	case AboutBudget:
		about = "a spent budget"
	case AboutAnomaly:
		about = "what is out of the ordinary"
	}
	return &holdfast.Error{Kind: holdfast.KindUsage,
		Why:  "review " + r.ID + " is about " + about + ", of which nothing can be changed",
		Hint: "approve it, which lets the agent go on, or reject it, which keeps the agent stopped"}
}

// StateOf returns the state to which an act of a statement brings a review.
func StateOf(act string) (State, bool) {
	switch act {
	case operator.Approve:
		return Approved, true
	case operator.Reject:
		return Rejected, true
	case operator.Changes:
		return Changes, true
	case operator.Defer:
		return Deferred, true
	}
	return None, false
}
