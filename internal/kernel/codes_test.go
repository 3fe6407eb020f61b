package kernel

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// TestConditionOfReadsOldReviews: a review that was stored before 2026-11-27 has its
// condition only in the sentence; in later ones the sentence says nothing to code.
func TestConditionOfReadsOldReviews(t *testing.T) {
	for _, c := range watch.Conditions() {
		f := watch.Finding{Condition: c.Name, Why: "the same action 5 times: rm"}
		old := &review.Review{About: review.AboutAnomaly, Why: f.String()}
		if got := ConditionOf(old); got != c.Name {
			t.Errorf("%q is of %q", old.Why, got)
		}
		reworded := &review.Review{About: review.AboutAnomaly, Why: "error_rate: " + old.Why, Cause: string(c.Name)}
		if got := ConditionOf(reworded); got != c.Name {
			t.Errorf("%q with the code %q is of %q", reworded.Why, c.Name, got)
		}
	}
}
