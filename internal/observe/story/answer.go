package story

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Answered tells what the answer to a review about an attempt, a spent
// budget or what is out of the ordinary has done to its agent, who is as given now; "" of any other review and of one that waits.
func Answered(r *review.Review, a *holdfast.Agent) string {
	if r.About == "" {
		return ""
	}
	paused := a.State != holdfast.AgentRunning
	switch {
	case r.State == review.Approved && paused:
		return r.Agent + " stays paused: " + a.Why
	case r.State == review.Approved && r.About == review.AboutBudget:
		return r.Agent + " goes on, with as much again"
	case r.State == review.Approved:
		return r.Agent + " goes on"
	case r.State == review.Rejected && paused:
		return r.Agent + " stays stopped"
	case r.State == review.Rejected:
		return r.Agent + " had been let go on before, and was not stopped"
	}
	return ""
}
