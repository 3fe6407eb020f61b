package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// breakOut lets n runs of alice try to get out at once, and returns their
// questions, the one that paused alice first.
func (w *world) breakOut(n int) []review.Review {
	w.t.Helper()
	tries := func(ctx context.Context) error { _, err := breaksOut(ctx); return err }
	var came []<-chan error
	var first chan<- struct{}
	for i := range n {
		leave, c := w.inside(w.req("test/low", fmt.Sprintf(`{"i":%d}`, i)), tries)
		if came = append(came, c); first == nil {
			first = leave
		}
	}
	close(first)
	for _, c := range came {
		wants(w.t, <-c, holdfast.KindEscape)
	}
	rs, err := w.k.Reviews(w.t.Context(), holdfast.Local, review.Pending)
	if err != nil || len(rs) != n {
		w.t.Fatalf("%d questions, %v", len(rs), err)
	}
	why := w.agent("alice").Why
	for i := range rs {
		if strings.Contains(why, rs[i].Crossing) {
			rs[0], rs[i] = rs[i], rs[0]
			return rs
		}
	}
	w.t.Fatalf("no attempt paused it: %q", why)
	return nil
}

func (w *world) decide(act, id string) {
	w.t.Helper()
	if _, err := w.k.Decide(w.say(act, id, "seen")); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) unpause() (out []string) {
	w.t.Helper()
	got, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice"}))
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Settled
}

// TestD21_oneAnswerIsEnough: to unpause an agent answers the reviews of its
// attempts, and nobody else's question; to approve the last of them lets it go
// on; to reject one keeps it stopped, whatever is approved beside it. The verifier
// that shares no code with the kernel finds each of them right.
func TestD21_oneAnswerIsEnough(t *testing.T) {
	running := func(w *world, want bool, after string) {
		t.Helper()
		if a := w.agent("alice"); (a.State == holdfast.AgentRunning) != want {
			t.Errorf("after %s: %+v", after, a)
		}
	}
	for name, do := range map[string]func(t *testing.T, w *world){
		"unpaused": func(t *testing.T, w *world) {
			rs := w.breakOut(2)
			held, err := w.k.Cross(t.Context(), holdfast.Request{Boundary: "test/high", Payload: []byte(`{}`), Token: w.who("carol")}, ok)
			wants(t, err, holdfast.KindHeld)
			if got := w.unpause(); len(got) != 2 {
				t.Errorf("settled %q", got)
			}
			for _, r := range rs {
				r, err := w.k.Review(t.Context(), r.ID)
				if err != nil || r.State != review.Approved || r.Reviewer != "bob" || !w.byUnpause(r.ID) {
					t.Errorf("%+v, %v", r, err)
				}
			}
			if r, err := w.k.Review(t.Context(), held.Review); err != nil || r.State != review.Pending {
				t.Errorf("another question was answered, too: %+v, %v", r, err)
			}
			running(w, true, "the unpause")
		},
		"approved": func(t *testing.T, w *world) {
			rs := w.breakOut(3)
			w.decide(operator.Approve, rs[1].ID)
			running(w, false, "one of three")
			w.decide(operator.Approve, rs[0].ID)
			running(w, false, "two of three")
			w.decide(operator.Approve, rs[2].ID)
			running(w, true, "all of them")
			if e := w.events(holdfast.Local, "agent_unpaused"); len(e) != 1 || e[0].Who != "bob" || e[0].Subject != "alice" || !strings.Contains(string(e[0].Data), rs[2].ID) {
				t.Errorf("%+v", e)
			}
		},
		"rejected": func(t *testing.T, w *world) {
			rs := w.breakOut(2)
			w.decide(operator.Reject, rs[1].ID)
			w.decide(operator.Approve, rs[0].ID)
			running(w, false, "one yes and one no")
			if a := w.agent("alice"); !strings.Contains(a.Why, "stopped by bob") || !strings.Contains(a.Why, rs[1].ID) {
				t.Errorf("%q", a.Why)
			}
			if got := w.unpause(); len(got) != 0 {
				t.Errorf("settled again: %q", got)
			}
			running(w, true, "the unpause")
		},
		"paused by a person since": func(t *testing.T, w *world) {
			rs := w.breakOut(1)
			if _, err := w.k.Pause(holdfast.Local, "alice", "user:carol", "it loops"); err != nil {
				t.Fatal(err)
			}
			w.decide(operator.Approve, rs[0].ID)
			running(w, false, "an approval of something else")
		},
		"by who asked": func(t *testing.T, w *world) {
			rs := w.breakOut(1)
			got, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice", Reviewer: "alice"}))
			if err != nil || len(got.Settled) != 0 || len(got.Left) != 1 || got.Left[0] != rs[0].ID {
				t.Errorf("%+v, %v", got, err)
			}
			w.decide(operator.Reject, rs[0].ID) // by then it goes on
			running(w, true, "an answer that came after it")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			do(t, w)
			nothingWrong(t, w)
		})
	}
}

// TestD21_aPersonsPauseStands: an attempt of an agent that a person had paused
// leaves the person's reason, so that no answer to it lifts that pause.
func TestD21_aPersonsPauseStands(t *testing.T) {
	w := newWorld(t, "")
	_, came := w.inside(w.req("test/low", `{}`), func(ctx context.Context) error { _, err := breaksOut(ctx); return err })
	if _, err := w.k.Pause(holdfast.Local, "alice", "user:carol", "it loops"); err != nil {
		t.Fatal(err)
	}
	wants(t, <-came, holdfast.KindEscape)
	rs, err := w.k.Reviews(t.Context(), holdfast.Local, review.Pending)
	if err != nil || len(rs) != 1 {
		t.Fatalf("%+v, %v", rs, err)
	}
	w.decide(operator.Approve, rs[0].ID)
	if a := w.agent("alice"); a.State != holdfast.AgentPaused || a.Why != "it loops" {
		t.Errorf("%+v", a)
	}
	nothingWrong(t, w)
}

// byUnpause says whether a review was answered by an unpause, as its event has it.
func (w *world) byUnpause(id string) bool {
	return slices.ContainsFunc(w.events(holdfast.Local, "review_decided"), func(e *ledger.Event) bool {
		return e.Subject == id && strings.Contains(string(e.Data), `"by":"agent_unpaused"`)
	})
}
