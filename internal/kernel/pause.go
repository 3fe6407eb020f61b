package kernel

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// pauseFor stops an agent for what a review asks about, so that whoever is refused
// for it is told what that is and where it is answered.
func (k *Kernel) pauseFor(a *holdfast.Agent, r *review.Review) {
	a.State, a.Why = holdfast.AgentPaused, k.pausedFor(r)
	a.Condition, a.Review = string(ConditionOf(r)), r.ID
}

// pauseBy stops an agent on somebody's word.
func pauseBy(a *holdfast.Agent, why string) {
	a.State, a.Why, a.Condition, a.Review = holdfast.AgentPaused, why, "", ""
}

// letGo ends a pause.
func letGo(a *holdfast.Agent) {
	a.State, a.Why, a.Condition, a.Review = holdfast.AgentRunning, "", "", ""
}

// ConditionOf returns what a review that paused an agent asks about, in watch's words.
func ConditionOf(r *review.Review) watch.Name {
	switch r.About {
	case review.AboutEscape:
		return watch.Escape
	case review.AboutBudget:
		return watch.SessionBudget
	}
	if r.Cause != "" {
		return watch.Name(r.Cause)
	}
	return watch.Name(review.ReadSentence(r.Why, conditionSentences()))
}

// conditionSentences returns each condition by how the reason of its review begins.
func conditionSentences() map[string]string {
	out := map[string]string{}
	for _, c := range watch.Conditions() {
		f := watch.Finding{Condition: c.Name}
		out[f.String()] = string(c.Name)
	}
	return out
}

// isPausedFor reports whether a was paused for what r asks about.
func (k *Kernel) isPausedFor(a *holdfast.Agent, r *review.Review) bool {
	if a.State != holdfast.AgentPaused {
		return false
	}
	if a.Review != "" {
		return a.Review == r.ID
	}
	return review.ReadSentence(a.Why, map[string]string{k.pausedFor(r): r.ID}) == r.ID
}

// pausedAgent is the refusal of what a paused agent asks for.
func pausedAgent(a *holdfast.Agent) *holdfast.Opinion {
	op := deny(holdfast.GateHalt, holdfast.KindPaused,
		"the agent "+shownAgent(a.Name)+" is paused"+review.SuffixReason(a.Why), goesOnBy(a))
	op.State = "PAUSED"
	return &op
}

// goesOnBy is the hint what a paused agent is paused for, as far as that is known,
// and how it goes on.
func goesOnBy(a *holdfast.Agent) string {
	unpause, show := "`holdfast agent unpause "+shownAgent(a.Name)+"`", "`holdfast review show "+a.Review+"`"
	switch watch.Name(a.Condition) {
	case "":
		return "a person can lift it with " + unpause + "; where it is a spent budget's or an attempt's, by answering its review: `holdfast review ls`"
	case watch.SessionBudget:
		return "it was paused for " + a.Condition + "; a person gives it more by approving its review: " + show
	}
	return "it was paused for " + a.Condition + "; a person lifts it by approving its review, " + show + ", or with " + unpause
}
