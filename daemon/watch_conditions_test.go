package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestD41a_LateEscapeIsRecorded: an attempt that comes to light after its crossing has
// ended is recorded by the watch too, and names that crossing.
func TestD41a_LateEscapeIsRecorded(t *testing.T) {
	d, c, down := up(t, watched)
	defer down()
	token, err := d.Mint(holdfast.Identity{Agent: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	x, _, err := d.Kernel.Enter(t.Context(), holdfast.Request{Boundary: "test/act", Payload: []byte(`{}`), Token: token}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	<-x.Context().Done()
	until(t, "the entry of the lease's end", func() (ended bool) {
		err := d.store.View(t.Context(), func(tx kernel.Tx) error {
			leaves, err := tx.Crossing(holdfast.Local, x.ID())
			ended = slices.ContainsFunc(leaves, func(l ledger.Stored) bool { return l.Kind == ledger.KindEntry })
			return err
		})
		return err == nil && ended
	})
	if _, err := x.Exit(holdfast.Output{}, &posture.Escape{Run: "run-1", Call: posture.Call{Nr: 101, Name: "ptrace", Arch: "x86_64"}}); holdfast.KindOf(err) != holdfast.KindAbandoned {
		t.Fatal(err)
	}
	if g := answerTo(t, d, "ada", watch.Escape); g.Response != "record" || g.Severity != "HIGH" || g.Crossing != x.ID() || g.Review != "" {
		t.Errorf("%+v", g)
	}
	if w := waitingAbout(t, c, "ada"); len(w) != 1 || w[0].About != review.AboutEscape || stateOf(t, d, "ada").State != holdfast.AgentPaused {
		t.Errorf("%+v", w)
	}
}

// spends makes one crossing of an agent whose hand used so many micro-dollars.
func spends(t *testing.T, d *Daemon, agent, payload string, micro int64) {
	t.Helper()
	token, err := d.Mint(holdfast.Identity{Agent: agent})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Kernel.Cross(context.Background(), holdfast.Request{Boundary: "test/paid", Payload: []byte(payload), Token: token}, func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{}`), Used: map[holdfast.Resource]int64{holdfast.MoneyMicro: micro}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Test001_Layer5_EscalatingCost: five actions, each dearer than the one before, are
// told, and stop nobody (spec 001 "Drift Detection"); costs that go up and down are
// nothing.
func Test001_Layer5_EscalatingCost(t *testing.T) {
	d, _, down := up(t, watched)
	defer down()
	for i := range 5 {
		spends(t, d, "bea", fmt.Sprintf(`{"n":%d}`, i), int64(100_000+i%2*50_000))
		spends(t, d, "ada", fmt.Sprintf(`{"n":%d}`, i), int64(100_000+i*50_000))
	}
	if g := answerTo(t, d, "ada", watch.Escalating); g.Response != "alert" || g.Severity != "MEDIUM" || g.Crossing == "" || !strings.Contains(g.Why, "dearer") || stateOf(t, d, "ada").State != holdfast.AgentRunning {
		t.Errorf("%+v", g)
	}
	d.watching.Settle(t.Context())
	all, _ := answersIn(t, d)
	if slices.ContainsFunc(all, func(g given) bool { return g.Agent == "bea" && g.Condition == watch.Escalating }) {
		t.Errorf("%+v", all)
	}
}

// Test001_Layer5_Velocity: above 20 iterations an hour people are told (spec 001
// "Metrics to Track"), and the agent goes on.
func Test001_Layer5_Velocity(t *testing.T) {
	d, _, down := up(t, strings.Replace(watched, "boundaries:\n", "boundaries:\n  - {boundary: agent/step, risk: LOW}\n", 1))
	defer down()
	for i := range 21 {
		if n := d.watching.Watch.Hold(); slices.ContainsFunc(n,
			func(s watch.State) bool { return s.Condition == watch.StepsPerHour }) {
			t.Fatalf("after %d steps: %+v", i, n)
		}
		if err := acts(t, d, "ada", "agent/step", fmt.Sprintf(`{"n":%d}`, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if g := answerTo(t, d, "ada", watch.StepsPerHour); g.Response != "alert" || g.Severity != "MEDIUM" || !strings.Contains(g.Why, "21 iterations within an hour") || stateOf(t, d, "ada").State != holdfast.AgentRunning {
		t.Errorf("%+v", g)
	}
}

// Test001_Layer5_SessionBudget: an agent whose session has spent what it has is paused
// and a person asked, once, by the crossing itself (spec 001 "API Budget Limits"); the
// watch records it as what is out of the ordinary, and asks nobody again.
func Test001_Layer5_SessionBudget(t *testing.T) {
	d, c, down := up(t, strings.Replace(watched, "{scope: session, resource: money_micro, amount: 100000000}", "{scope: session, resource: money_micro, amount: 2000000}", 1))
	defer down()
	for i := range 2 {
		if err := acts(t, d, "ada", "test/paid", fmt.Sprintf(`{"n":%d}`, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := acts(t, d, "ada", "test/paid", `{"n":3}`, nil); holdfast.KindOf(err) != holdfast.KindBounds {
		t.Fatal(err)
	}
	if g := answerTo(t, d, "ada", watch.SessionBudget); g.Response != "record" || g.Severity != "HIGH" || g.Crossing == "" || g.Review != "" {
		t.Errorf("%+v", g)
	}
	if w := waitingAbout(t, c, "ada"); len(w) != 1 || w[0].About != review.AboutBudget || stateOf(t, d, "ada").State != holdfast.AgentPaused {
		t.Errorf("%+v", w)
	}
}

// Test001_Layer5_Outlier: an hour that is unlike those before it is recorded once it
// has ended, and nothing more (spec 001 "Statistical Outliers").
func Test001_Layer5_Outlier(t *testing.T) {
	d, _, down := up(t, watched)
	defer down()
	learned(t, d)
	w := d.watching.Watch
	for h := range 12 {
		for range 2 {
			w.Load(watch.Seen{Tenant: holdfast.Local, Agent: "ada", At: time.Now().Add(time.Duration(-h-1) * time.Hour)})
		}
	}
	w.Learned()
	for i := range 60 {
		if err := acts(t, d, "ada", "test/act", fmt.Sprintf(`{"n":%d}`, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	d.watching.Take(w.Tick(time.Now().Add(time.Hour)))
	if g := answerTo(t, d, "ada", watch.Outlier); g.Response != "record" || g.Severity != "LOW" || g.Review != "" || !strings.Contains(g.Why, "unlike those before it") || stateOf(t, d, "ada").State != holdfast.AgentRunning {
		t.Errorf("%+v", g)
	}
}
