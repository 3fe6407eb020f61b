package kernel_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// hinted fails unless a paused agent's refusal hints at all of that, and at nothing
// else that is told of a pause.
func (w *world) hinted(req holdfast.Request, wants ...string) {
	w.t.Helper()
	e := w.refusedAs(req, holdfast.GateHalt, holdfast.KindPaused)
	for _, s := range []string{"paused for session_budget", "paused for escape", "paused for loop"} {
		if strings.Contains(e.Hint, s) && wants[0] != s {
			w.t.Errorf("the hint says %q: %s", s, e.Hint)
		}
	}
	for _, s := range wants {
		if !strings.Contains(e.Hint, s) {
			w.t.Errorf("the hint does not say %q: %s", s, e.Hint)
		}
	}
}

// The refusal of an agent that Holdfast has paused names what it was paused for and
// the review that lets it go on; a person's pause is called nothing but that, however
// it is worded.
func TestPausedForIsNamed(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	w.passes(w.pays("ada", 10_000_000))
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	r := w.spentReview(1)
	w.hinted(w.pays("ada", 0), "paused for session_budget", "`holdfast review show "+r.ID+"`")
	w.reject(r.ID)
	w.hinted(w.pays("ada", 0), "`holdfast agent unpause ada`")
	if a := w.agent("ada"); a.Condition != "" || a.Review != "" {
		t.Errorf("stopped by a person: %+v", a)
	}

	w = newWorld(t, "")
	_, err := w.k.Cross(t.Context(), w.req("test/low", `{"n":1}`), breaksOut)
	wants(t, err, holdfast.KindEscape)
	a := w.agent("alice")
	w.hinted(w.req("test/low", `{"n":2}`), "paused for escape", "`holdfast review show "+a.Review+"`", "`holdfast agent unpause alice`")
	if a.Review == "" {
		t.Errorf("%+v", a)
	}
	if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice"})); err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("test/low", `{"n":3}`))
	if a := w.agent("alice"); a.Condition != "" || a.Review != "" {
		t.Errorf("it runs: %+v", a)
	}
	if _, err := w.k.Pause(holdfast.Local, "alice", "carol", "loop: the same action 5 times"); err != nil {
		t.Fatal(err)
	}
	w.hinted(w.req("test/low", `{"n":4}`), "a person can lift it with `holdfast agent unpause alice`")
}

// TestOldPauseIsAnsweredByItsReview: an agent's row before 2026-11-27 names the review that it was
// paused for only in the sentence; that review alone ends the pause.
func TestOldPauseIsAnsweredByItsReview(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*holdfast.Agent)
		want   holdfast.AgentState
	}{
		"its sentence": {func(a *holdfast.Agent) { a.Condition, a.Review = "", "" }, holdfast.AgentRunning},
		"its code":     {func(a *holdfast.Agent) { a.Why = "reworded" }, holdfast.AgentRunning},
		"another's sentence": {
			func(a *holdfast.Agent) { a.Condition, a.Review, a.Why = "", "", "it loops" },
			holdfast.AgentPaused,
		},
		"another's code": {func(a *holdfast.Agent) { a.Review = "another" }, holdfast.AgentPaused},
	} {
		w := newWorld(t, "")
		_, err := w.k.Cross(t.Context(), w.req("test/low", `{"n":1}`), breaksOut)
		wants(t, err, holdfast.KindEscape)
		a := w.agent("alice")
		id := a.Review
		c.change(&a)
		if err := w.store.Update(t.Context(), func(tx kernel.Tx) error { return tx.PutAgent(a) }); err != nil {
			t.Fatal(err)
		}
		w.decide(operator.Approve, id)
		if got := w.agent("alice"); got.State != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
