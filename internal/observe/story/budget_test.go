package story

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func TestOverspent(t *testing.T) {
	const preview = `{"agent":"ada/explore","approving_adds":"$10.000000","asked":"$2.000000","boundary":"agent/step","budget":"money_micro per session (built in)","limit":"$10.000000","session":"s1","used":"$9.000000"}`
	of := func(about, preview string) *review.Review {
		return &review.Review{About: about, Preview: preview, Binding: review.Binding{Agent: "ada"}, Risk: holdfast.High}
	}
	const want = "ada/explore in session s1 has spent $9.000000 of $10.000000, and asked for $2.000000 more at agent/step.\n" +
		"The budget: money_micro per session (built in).\n" +
		"Approving adds $10.000000 to it and lets ada go on; rejecting leaves ada stopped."
	if got := Overspent(of(review.AboutBudget, preview)); got != want {
		t.Errorf("%s", got)
	}
	if got := Overspent(of(review.AboutBudget, strings.Replace(preview, `"session":"s1",`, "", 1))); !strings.HasPrefix(got, "ada/explore has spent ") {
		t.Errorf("%s", got)
	}
	for _, r := range []*review.Review{of("", preview), of(review.AboutEscape, preview), of(review.AboutBudget, preview[:40]), of(review.AboutBudget, "{}"), of(review.AboutBudget, "[]")} {
		if got := Overspent(r); got != "" {
			t.Errorf("%s %s: %s", r.About, r.Preview, got)
		}
	}
}
