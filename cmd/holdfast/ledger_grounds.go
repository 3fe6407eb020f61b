package main

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

// grounds says in words why a gate allowed, of what the columns of an entry and
// the opinion's state and rule keep of it: the sentence itself is not recorded.
// "" where they keep nothing.
func grounds(e *ledger.Entry, o ledger.Opinion) string {
	none := o.Rule == "none declared"
	switch {
	case o.Verdict != holdfast.Allow:
		return ""
	case o.State == "HUMAN_APPROVED":
		return prefix("approved by ", e.Reviewer)
	case o.Rule == "replay":
		return "what was settled is given back; nothing is done"
	}
	switch o.Gate {
	case holdfast.K1:
		if none {
			return "the payload is well-formed JSON"
		}
		return prefix("the payload conforms to ", text(e.SchemaID))
	case holdfast.K2:
		if none {
			return "the token is valid; the contract requires no permission"
		}
		return prefix("granted ", strings.Join(e.Required, ", "))
	case holdfast.K3:
		if none {
			return "the contract consumes nothing that is counted"
		}
		return "there was room"
	case holdfast.K4:
		return prefix("correlation ", e.Correlation)
	case holdfast.K5:
		return earlier(e, o)
	case holdfast.K6:
		return "the ledger took its records"
	case holdfast.K7:
		if e.Confidence != nil {
			return fmt.Sprintf("the confidence %.2f suffices", *e.Confidence)
		}
		return prefix("the risk is ", e.Risk)
	case holdfast.K8:
		return "no rule refuses it"
	}
	return ""
}

// earlier says whether it was done before (K5).
func earlier(e *ledger.Entry, o ledger.Opinion) string {
	switch {
	case e.ReplayOf != "":
		return "done already by crossing " + e.ReplayOf
	case o.Rule == "idempotency key":
		return "not done before"
	}
	return prefix("key ", text(e.Key))
}
