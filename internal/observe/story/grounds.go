package story

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/ledger"
)

// shownKey is how many digits of a key name it for people.
const shownKey = 16

// Grounds says in words why a gate allowed, of what the columns of an entry and
// the opinion's state and rule keep of it: the sentence itself is not recorded.
// "" where they keep nothing, or the gate did not allow.
func Grounds(e *ledger.Entry, o ledger.Opinion) string {
	none := o.Rule == "none declared"
	switch {
	case o.Verdict != holdfast.Allow:
		return ""
	case o.State == "HUMAN_APPROVED":
		return after("approved by ", e.Reviewer)
	case o.Rule == "replay":
		return "what was settled is given back; nothing is done"
	}
	switch o.Gate {
	case holdfast.K1:
		if none {
			return "the payload is well-formed JSON"
		}
		return after("the payload conforms to ", Text(e.SchemaID))
	case holdfast.K2:
		if none {
			return "the token is valid; the contract requires no permission"
		}
		return after("granted ", strings.Join(e.Required, ", "))
	case holdfast.K3:
		if none {
			return "the contract consumes nothing that is counted"
		}
		return "there was room" + after(": ", tightest(e))
	case holdfast.K4:
		return after("correlation ", e.Correlation)
	case holdfast.K5:
		return earlier(e, o)
	case holdfast.K6:
		return "the ledger took its records"
	case holdfast.K7:
		return answered(e)
	case holdfast.K8:
		return "no rule refuses it"
	}
	return ""
}

// tightest is what was asked of the resource that had the least room (K3).
func tightest(e *ledger.Entry) string {
	if e.ResourceType == nil || e.Requested == nil || e.BudgetLimit == nil || e.UsageBefore == nil {
		return ""
	}
	return fmt.Sprintf("%s, %d asked, %d of %d used before", *e.ResourceType, *e.Requested, *e.UsageBefore, *e.BudgetLimit)
}

// earlier says whether it was done before (K5).
func earlier(e *ledger.Entry, o ledger.Opinion) string {
	switch {
	case e.ReplayOf != "":
		return "done already by crossing " + e.ReplayOf
	case o.Rule == "idempotency key":
		return "not done before"
	}
	return after("key ", excerpt.Of(Text(e.Key), shownKey))
}

// answered says who approved it, or why nobody had to (K7).
func answered(e *ledger.Entry) string {
	switch {
	case e.Approved != nil && *e.Approved && e.Reviewer != "":
		return "approved by " + e.Reviewer
	case e.Confidence != nil:
		return fmt.Sprintf("the confidence %.2f suffices", *e.Confidence)
	}
	return after("the risk is ", e.Risk)
}

// after is s behind what leads to it, "" where there is no s.
func after(lead, s string) string {
	if s == "" {
		return ""
	}
	return lead + s
}
