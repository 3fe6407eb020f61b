package stops

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestRefuseNamesTheWidestStop: a blocked tenant learns that, whichever stop was put in place first.
func TestRefuseNamesTheWidestStop(t *testing.T) {
	goals := Stop{ID: "1", Tenant: "local", Boundary: "goal/admit", Why: "goals are paused"}
	block := Stop{ID: "2", Tenant: "local", Why: "the budget is spent"}
	for _, all := range [][]Stop{{goals, block}, {block, goals}} {
		s := Set{all: all}
		got := s.Refuse(func(*Stop) bool { return true })
		if got == nil || got.Verdict != holdfast.Deny || got.Why != block.newRefusal().Why {
			t.Fatalf("%+v", got)
		}
	}
}
