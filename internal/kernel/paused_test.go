package kernel_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
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
