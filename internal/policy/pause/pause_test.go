package pause

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
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

// TestApplyAnswer: what each answer does to the pause of an agent.
func TestApplyAnswer(t *testing.T) {
	quote := func(text string, _ int) string { return text }
	escape := review.Review{ID: "r1", About: review.AboutEscape, Why: "it tried"}
	second := review.Review{ID: "r2", About: review.AboutEscape, Why: "it tried again"}
	asks := review.Review{ID: "r3", About: review.AboutAnomaly}
	asks.Boundary = watch.BoundaryPrefix + watch.Record.String()
	const approved, rejected = review.Approved, review.Rejected
	for name, c := range map[string]struct {
		pausedFor *review.Review // nil is on a person's word
		running   bool
		answer    review.Review
		state     review.State
		waits     *review.Review
		want      Effect
		left      string // Agent.Review
	}{
		"the last is approved":                {&escape, false, escape, approved, nil, Releases, ""},
		"another one waits":                   {&escape, false, escape, approved, &second, Moves, "r2"},
		"one that only asks waits":            {&escape, false, escape, approved, &asks, Releases, ""},
		"one next to the pause's is approved": {&escape, false, second, approved, &escape, None, "r1"},
		"one next to the pause's is rejected": {&escape, false, second, rejected, &escape, Stops, ""},
		"it is rejected":                      {&escape, false, escape, rejected, nil, Stops, ""},
		"it is deferred":                      {&escape, false, escape, review.Deferred, nil, None, "r1"},
		"a person's pause, approved":          {nil, false, escape, approved, nil, None, ""},
		"a person's pause, rejected":          {nil, false, escape, rejected, nil, None, ""},
		"a person's pause, anomaly rejected":  {nil, false, asks, rejected, nil, None, ""},
		"it runs, anomaly rejected":           {nil, true, asks, rejected, nil, Stops, ""},
		"it runs, anomaly approved":           {nil, true, asks, approved, nil, None, ""},
		"it runs, escape rejected":            {nil, true, escape, rejected, nil, None, ""},
	} {
		a := holdfast.Agent{State: holdfast.AgentRunning}
		switch {
		case c.pausedFor != nil:
			PauseFor(&a, c.pausedFor, quote)
		case !c.running:
			PauseAgent(&a, "stopped by ann")
		}
		was := a
		c.answer.State, c.answer.Reviewer = c.state, "ann"
		var waiting []review.Review
		if c.waits != nil {
			waiting = append(waiting, *c.waits)
		}
		got := ApplyAnswer(&a, &c.answer, waiting, quote)
		if got != c.want || a.Review != c.left || got == None && a != was ||
			(a.State == holdfast.AgentRunning) != (got == Releases || got == None && c.running) {
			t.Errorf("%s: %v, %+v", name, got, a)
		}
	}
}
