// Package pause decides what an agent is paused for, how its requests are refused meanwhile, and
// what a person's answer to a review does to the pause (D21, D41).
package pause

import (
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// Quoter returns at most n bytes of a text, redacted.
type Quoter func(text string, n int) string

// PauseFor pauses an agent for what a review asks about, so that each refusal names it and
// where it is answered.
func PauseFor(a *holdfast.Agent, r *review.Review, quote Quoter) {
	a.State, a.Why = holdfast.AgentPaused, reasonFor(r, quote)
	a.Condition, a.Review = string(ConditionOf(r)), r.ID
}

// PauseAgent pauses an agent on a person's word.
func PauseAgent(a *holdfast.Agent, why string) {
	a.State, a.Why, a.Condition, a.Review = holdfast.AgentPaused, why, "", ""
}

// ReleaseAgent ends a pause.
func ReleaseAgent(a *holdfast.Agent) {
	a.State, a.Why, a.Condition, a.Review = holdfast.AgentRunning, "", "", ""
}

// reasonFor returns why an agent is paused for what a review asks about.
func reasonFor(r *review.Review, quote Quoter) string {
	if r.Crossing == "" {
		return quote(r.Why, 256)
	}
	return quote(r.Why+" (crossing "+r.Crossing+")", 256)
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
func isPausedFor(a *holdfast.Agent, r *review.Review, quote Quoter) bool {
	if a.State != holdfast.AgentPaused {
		return false
	}
	if a.Review != "" {
		return a.Review == r.ID
	}
	return review.ReadSentence(a.Why, map[string]string{reasonFor(r, quote): r.ID}) == r.ID
}

// AsksOnly reports whether a review asks about an agent that was not paused for it.
func AsksOnly(r review.Review) bool {
	return r.About == review.AboutAnomaly && r.Boundary != watch.BoundaryPrefix+watch.Pause.String()
}

// Effect is what an answer does to an agent's pause.
type Effect int

const (
	// None changes nothing.
	None Effect = iota
	// Stops pauses the agent on the reviewer's word, which no other answer lifts.
	Stops
	// Moves lets the pause be for another review that waits.
	Moves
	// Releases ends the pause.
	Releases
)

// ApplyAnswer changes an agent by the answer to a review about it, and returns what that did.
// waiting are the other reviews about the agent's pause that wait.
//
// To approve the review that the agent is paused for ends the pause, unless another one waits.
// To reject one that paused it, or one next to it, keeps the agent stopped. To reject what is
// anomalous stops an agent that was not paused for it. The pause of a person is not changed.
func ApplyAnswer(a *holdfast.Agent, r *review.Review, waiting []review.Review, quote Quoter) Effect {
	others := slices.DeleteFunc(waiting, AsksOnly)
	own := isPausedFor(a, r, quote)
	paused := own || slices.ContainsFunc(others, func(o review.Review) bool { return isPausedFor(a, &o, quote) })
	switch {
	case r.State == review.Rejected &&
		(paused || a.State != holdfast.AgentPaused && r.About == review.AboutAnomaly):
		PauseAgent(a, quote("stopped by "+r.Reviewer+", who rejected review "+r.ID+review.SuffixReason(r.Reason), 256))
		return Stops
	case r.State != review.Approved || !own:
		return None
	case len(others) > 0:
		PauseFor(a, &others[0], quote)
		return Moves
	}
	ReleaseAgent(a)
	return Releases
}

// maxAgent bounds an agent's name in a message, with the ID of one within it, in bytes.
const maxAgent = 64 + 1 + 96

// ShowAgent returns an agent's name for a message.
func ShowAgent(name string) string { return excerpt.Of(name, maxAgent) }

// Refuse returns the refusal of a paused agent's requests.
func Refuse(a *holdfast.Agent) *holdfast.Opinion {
	return &holdfast.Opinion{Gate: holdfast.GateHalt, Verdict: holdfast.Deny, Kind: holdfast.KindPaused,
		State: "PAUSED", Why: "the agent " + ShowAgent(a.Name) + " is paused" + review.SuffixReason(a.Why),
		Hint: Hint(a)}
}

// Hint names what a paused agent is paused for, as far as that is known, and how the pause
// is lifted.
func Hint(a *holdfast.Agent) string {
	unpause, show := "`holdfast agent unpause "+ShowAgent(a.Name)+"`", "`holdfast review show "+a.Review+"`"
	switch watch.Name(a.Condition) {
	case "":
		return "a person can lift it with " + unpause +
			"; where it is a spent budget's or an attempt's, by answering its review: `holdfast review ls`"
	case watch.SessionBudget:
		return "it was paused for " + a.Condition + "; a person gives it more by approving its review: " + show
	}
	return "it was paused for " + a.Condition + "; a person lifts it by approving its review, " + show + ", or with " +
		unpause
}

// HintAtEscape is the hint of an agent that tried to leave a sandbox.
func HintAtEscape(agent string) string {
	return "a person looks at it and lets the agent go on with `holdfast agent unpause " + excerpt.Of(agent, 128) +
		"`, or by approving its review, which takes the operator key that `holdfast init` makes"
}
