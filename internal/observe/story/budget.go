package story

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Overspent tells what a review of a spent budget asks: whose it is, what is spent
// of what, what was asked for, and what an answer does. It is "" of any other review,
// and of one whose preview cannot be read.
func Overspent(r *review.Review) string {
	var p struct {
		Agent, Boundary, Budget, Session, Used, Limit, Asked string
		Adds                                                 string `json:"approving_adds"`
	}
	if r.About != review.AboutBudget || json.Unmarshal([]byte(r.Preview), &p) != nil || p.Agent == "" || p.Adds == "" {
		return ""
	}
	session := ""
	if p.Session != "" {
		session = " in session " + p.Session
	}
	return fmt.Sprintf("%s%s has spent %s of %s, and asked for %s more at %s.\nThe budget: %s.\nApproving adds %s to it and lets %s go on; rejecting leaves %s stopped.",
		p.Agent, session, p.Used, p.Limit, p.Asked, p.Boundary, p.Budget, p.Adds, r.Agent, r.Agent)
}
