package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/anomaly"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

const watched = quiet + `
boundaries:
  - {boundary: test/act, risk: LOW}
  - {boundary: test/never, risk: PROHIBITED}
  - {boundary: test/paid, risk: LOW, consumes: {money_micro: 1000000}}
budgets:
  - {scope: chain, resource: money_micro, amount: 100000000}
  - {scope: session, resource: money_micro, amount: 100000000}
  - {scope: tenant, resource: money_micro, amount: 1000000000, window: 24h}
`

var errBroken = errors.New("it broke")

// acts makes one crossing of an agent, whose hand uses what it reserved and ends
// with err.
func acts(t *testing.T, d *Daemon, agent, boundary, payload string, err error) error {
	t.Helper()
	token, bad := d.Mint(holdfast.Identity{Agent: agent})
	if bad != nil {
		t.Fatal(bad)
	}
	_, got := d.Kernel.Cross(context.Background(), holdfast.Request{Boundary: boundary, Payload: []byte(payload), Token: token},
		func(context.Context) (holdfast.Output, error) { return holdfast.Output{Body: []byte(`{}`)}, err })
	return got
}

// loops does the same five times.
func loops(t *testing.T, d *Daemon, agent string) {
	t.Helper()
	for range 5 {
		_ = acts(t, d, agent, "test/act", `{"same":1}`, nil)
	}
}

// repeats lets agents of this daemon do the same again and again, and fail, for
// tests of something else.
func (d *Daemon) repeats() {
	mild := map[watch.Name]watch.Response{}
	for _, c := range watch.Conditions() {
		if c.OfAgent {
			mild[c.Name] = watch.Record
		}
	}
	d.watching.Watch.Use(watch.Limits{Responses: mild})
}

// until waits for what must come.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never came: " + what)
		}
	}
}

// answers are the answers in the ledger of a daemon, in their order.
type given struct {
	respond.Found
	name    string // of the event
	within  string // the answer's crossing
	who     string
	subject string
}

func answersIn(t *testing.T, d *Daemon) (events []given, crossings []*ledger.Entry) {
	t.Helper()
	err := d.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			if err := tx.Leaves(h.Tenant, 0, h.Size, func(s ledger.Stored) error {
				switch s.Kind {
				case ledger.KindEvent:
					if g, ok := answerOf(s.Record); ok {
						events = append(events, g)
					}
				case ledger.KindEntry:
					if e, err := ledger.ParseEntry(s.Record); err != nil {
						return err
					} else if strings.HasPrefix(e.Boundary, "watch/") {
						crossings = append(crossings, e)
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events, crossings
}

func answerOf(record []byte) (given, bool) {
	e, err := ledger.ParseEvent(record)
	if err != nil {
		return given{}, false
	}
	f, ok := respond.FoundIn(e)
	return given{Found: f, name: e.Name, within: e.Crossing, who: e.Who, subject: e.Subject}, ok
}

// answerTo waits for the answer to a condition of an agent.
func answerTo(t *testing.T, d *Daemon, agent string, name watch.Name) given {
	t.Helper()
	var got given
	until(t, string(name)+" of "+agent, func() bool {
		all, _ := answersIn(t, d)
		i := slices.IndexFunc(all, func(g given) bool {
			return g.Condition == name && g.Agent == agent && g.name == respond.EventAnomaly
		})
		if i >= 0 {
			got = all[i]
		}
		return i >= 0
	})
	return got
}

func stateOf(t *testing.T, d *Daemon, agent string) holdfast.Agent {
	t.Helper()
	all, err := d.Kernel.Agents(t.Context(), holdfast.Local)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a holdfast.Agent) bool { return a.Name == agent })
	if i < 0 {
		t.Fatalf("there is no agent %s", agent)
	}
	return all[i]
}

func waitingAbout(t *testing.T, c *api.Client, agent string) (out []review.Review) {
	t.Helper()
	all, err := c.Reviews(t.Context(), holdfast.Local, review.Pending)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Agent == agent {
			out = append(out, r)
		}
	}
	return out
}

// Test001_Layer5_LoopIsPausedAskedAndTold is what is done about HIGH (spec 001
// "Anomaly Response", D41a), on the real daemon: the agent that loops is paused - the
// agent, not something of the anomaly's name (findings.md 5.2, 12) -, a review is
// opened and people are told, once; what the daemon does is a crossing of its own,
// beneath the one that made it; and a person lets the agent go on.
func Test001_Layer5_LoopIsPausedAskedAndTold(t *testing.T) {
	r := newReceiver(t)
	d, c, down := hookedAt(t, r, "LOW")
	defer down()
	says := personOf(t, d, c)
	for range 5 {
		_ = acts(t, d, "ada", "agent/step", `{"same":1}`, nil)
	}
	g := answerTo(t, d, "ada", watch.Loop)
	if g.Response != "pause" || g.Severity != "HIGH" || g.subject != "ada" || g.who != respond.Watcher || !strings.Contains(g.Why, "the same action 5 times in a row") || g.Review == "" {
		t.Errorf("%+v", g)
	}
	var crossings []*ledger.Entry
	i := -1
	until(t, "the answer's own entry", func() bool {
		_, crossings = answersIn(t, d)
		i = slices.IndexFunc(crossings, func(e *ledger.Entry) bool { return e.ID == g.within })
		return i >= 0
	})
	if e := crossings[i]; e.Boundary != "watch/pause" || e.Agent != anomaly.Agent || e.Outcome != ledger.Done ||
		e.Parent != g.Crossing || e.Parent == "" {
		t.Errorf("%+v", e)
	}
	if a := stateOf(t, d, "ada"); a.State != holdfast.AgentPaused || !strings.Contains(a.Why, "loop") {
		t.Errorf("%+v", a)
	}
	var e *holdfast.Error
	if err := acts(t, d, "ada", "agent/step", `{"other":1}`, nil); !errors.As(err, &e) || e.Kind != holdfast.KindPaused {
		t.Fatalf("it acts on: %v", err)
	}
	if !strings.Contains(e.Why, "is paused: loop: ") || !strings.Contains(e.Hint, "paused for loop; ") || !strings.Contains(e.Hint, "`holdfast review show "+g.Review+"`") {
		t.Errorf("its owner is told %q, %q", e.Why, e.Hint)
	}
	waiting := waitingAbout(t, c, "ada")
	if len(waiting) != 1 || waiting[0].About != review.AboutAnomaly || waiting[0].ID != g.Review || !waiting[0].Expires.IsZero() || waiting[0].InPart() {
		t.Fatalf("%+v", waiting)
	}
	got := r.wait(0)
	if got["event"] != "review_opened" || got["level"] != "error" || got["agent"] != "ada" || !strings.Contains(fmt.Sprint(got["why"]), "loop") {
		t.Errorf("people are told %v", got)
	}
	if err := says(operator.Approve, waiting[0].ID); err != nil {
		t.Fatal(err)
	}
	if a := stateOf(t, d, "ada"); a.State != holdfast.AgentRunning {
		t.Errorf("the approval lifts nothing: %+v", a)
	}
	// What it did before counts no more: one more of the same is no loop.
	_ = acts(t, d, "ada", "agent/step", `{"same":1}`, nil)
	until(t, "that it holds no more", func() bool {
		all, _ := answersIn(t, d)
		return slices.ContainsFunc(all, func(g given) bool { return g.Condition == watch.Loop && g.name == respond.EventAnomalyCleared })
	})
	d.watching.Settle(t.Context())
	if a := stateOf(t, d, "ada"); a.State != holdfast.AgentRunning {
		t.Errorf("it is paused again: %+v", a)
	}
}

// TestD41a_RejectedStaysPaused: a person who rejects the review keeps the agent
// stopped.
func TestD41a_RejectedStaysPaused(t *testing.T) {
	d, c, down := up(t, watched)
	defer down()
	says := personOf(t, d, c)
	loops(t, d, "ada")
	g := answerTo(t, d, "ada", watch.Loop)
	if err := says(operator.Reject, g.Review); err != nil {
		t.Fatal(err)
	}
	if a := stateOf(t, d, "ada"); a.State != holdfast.AgentPaused || !strings.Contains(a.Why, "ann") {
		t.Errorf("%+v", a)
	}
	if len(waitingAbout(t, c, "ada")) != 0 {
		t.Error("it is asked on")
	}
}

// TestD41a_OnlyHoldfastAnswers: no agent crosses the boundaries of answers, under
// whatever name and spelling, nor does a configuration list them; and to ask is no
// way to pause anybody.
func TestD41a_OnlyHoldfastAnswers(t *testing.T) {
	d, c, down := up(t, watched)
	defer down()
	loops(t, d, "bob") // so that there is one to pause
	answerTo(t, d, "bob", watch.Loop)
	for _, agent := range []string{"eve", anomaly.Agent} {
		for _, boundary := range []string{"watch/pause", "watch/record", "watch/alert", "watch/halt", "WATCH/halt", "watch/anything"} {
			acted := false
			token, err := d.Mint(holdfast.Identity{Agent: agent, Kind: "watch", Principal: "holdfast"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = d.Kernel.Cross(t.Context(), holdfast.Request{Boundary: boundary, Payload: []byte(`{"condition":"loop","agent":"ada"}`), Token: token},
				func(context.Context) (holdfast.Output, error) { acted = true; return holdfast.Output{}, nil })
			if err == nil || acted {
				t.Errorf("%s asked %s: %v", agent, boundary, err)
			}
		}
		// It has asked too often to be what it says, but of nothing it was let do.
		if _, err := c.Cross(t.Context(), api.Ask{Boundary: "watch/pause", Payload: []byte(`{}`), Agent: agent}); err == nil {
			if ans, _ := c.Check(t.Context(), api.Ask{Boundary: "watch/pause", Payload: []byte(`{}`), Agent: agent}); ans.Outcome.Verdict != holdfast.Deny {
				t.Errorf("%s is let through: %+v", agent, ans)
			}
		}
	}
	if st, err := c.Status(t.Context()); err != nil || st.Halted {
		t.Errorf("%+v, %v", st, err)
	}
	// What stops all agents does not stop the answer: neither a rule nor a pause.
	if _, err := d.Kernel.Pause(holdfast.Local, anomaly.Agent, "eve", "so that nobody is watched"); err != nil {
		t.Fatal(err)
	}
	loops(t, d, "carl")
	if g := answerTo(t, d, "carl", watch.Loop); g.within == "" || stateOf(t, d, "carl").State != holdfast.AgentPaused {
		t.Errorf("%+v", g)
	}
}

// Test001_Layer5_OnError: three errors in a row are put to a person, and pause
// nobody (spec 001, "On error: escalate if repeated errors").
func Test001_Layer5_OnError(t *testing.T) {
	t.Parallel()
	d, c, down := up(t, watched)
	defer down()
	says := personOf(t, d, c)
	for i := range 3 {
		_ = acts(t, d, "ada", "test/act", fmt.Sprintf(`{"n":%d}`, i), errBroken)
	}
	g := answerTo(t, d, "ada", watch.Errors)
	if g.Response != "alert" || g.Review == "" || stateOf(t, d, "ada").State != holdfast.AgentRunning {
		t.Errorf("%+v", g)
	}
	// No to that question stops it.
	if err := says(operator.Reject, g.Review); err != nil {
		t.Fatal(err)
	}
	if a := stateOf(t, d, "ada"); a.State != holdfast.AgentPaused {
		t.Errorf("%+v", a)
	}
}

// Test001_Layer5_ErrorRate: above 5 % of the last 100 actions the agent is paused.
func Test001_Layer5_ErrorRate(t *testing.T) {
	t.Parallel()
	d, _, down := up(t, watched)
	defer down()
	for i := range 24 {
		var err error
		if i%8 == 3 {
			err = errBroken
		}
		_ = acts(t, d, "ada", "test/act", fmt.Sprintf(`{"n":%d}`, i), err)
	}
	if g := answerTo(t, d, "ada", watch.ErrorRate); g.Response != "pause" || stateOf(t, d, "ada").State != holdfast.AgentPaused {
		t.Errorf("%+v", g)
	}
}

// Test001_Layer5_CostPerHour: above $5 within an hour the agent is paused, whatever
// its budgets let it do.
func Test001_Layer5_CostPerHour(t *testing.T) {
	d, _, down := up(t, watched)
	defer down()
	for i := range 6 {
		if err := acts(t, d, "ada", "test/paid", fmt.Sprintf(`{"n":%d}`, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if g := answerTo(t, d, "ada", watch.CostPerHour); g.Response != "pause" || !strings.Contains(g.Why, "$6.00") || stateOf(t, d, "ada").State != holdfast.AgentPaused {
		t.Errorf("%+v", g)
	}
}

// Test001_Layer5_Prohibited: what nobody may do is refused, and who tried it is
// paused and put to a person.
func Test001_Layer5_Prohibited(t *testing.T) {
	d, c, down := up(t, watched)
	defer down()
	if err := acts(t, d, "ada", "test/never", `{}`, nil); holdfast.KindOf(err) != holdfast.KindProhibited {
		t.Fatal(err)
	}
	if g := answerTo(t, d, "ada", watch.Prohibited); g.Response != "pause" || stateOf(t, d, "ada").State != holdfast.AgentPaused || len(waitingAbout(t, c, "ada")) != 1 {
		t.Errorf("%+v", g)
	}
}

// TestD41a_EscapeIsAnsweredOnce: what the kernel answers in the crossing itself is
// recorded by the watch, and nothing more: one alarm, one review.
func TestD41a_EscapeIsAnsweredOnce(t *testing.T) {
	d, c, down := up(t, watched)
	defer down()
	if err := acts(t, d, "ada", "test/act", `{}`, &posture.Escape{Run: "run-1", Call: posture.Call{Nr: 101, Name: "ptrace", Arch: "x86_64"}}); holdfast.KindOf(err) != holdfast.KindEscape {
		t.Fatal(err)
	}
	if g := answerTo(t, d, "ada", watch.Escape); g.Response != "record" || g.Review != "" {
		t.Errorf("%+v", g)
	}
	if w := waitingAbout(t, c, "ada"); len(w) != 1 || w[0].About != review.AboutEscape {
		t.Errorf("%+v", w)
	}
}

// TestD41a_Critical: what is told of the ledger halts everything, as holdfast
// itself, and is a crossing of watch/halt; while everything is halted what is found
// is an event.
func TestD41a_Critical(t *testing.T) {
	d, c, down := up(t, watched)
	defer down()
	if err := acts(t, d, "ada", "test/act", `{}`, nil); err != nil {
		t.Fatal(err)
	}
	d.condition("", "", watch.VerificationFailed, true, "the ledger is not what was written")
	until(t, "the halt", func() bool { return d.latch.Halted() })
	st, err := c.Status(t.Context())
	if err != nil || !st.Halted || st.HaltWho != respond.Watcher || !strings.Contains(st.HaltWhy, "not what was written") {
		t.Errorf("%+v, %v", st, err)
	}
	until(t, "the crossing of the halt", func() bool {
		_, crossings := answersIn(t, d)
		return slices.ContainsFunc(crossings, func(e *ledger.Entry) bool { return e.Boundary == "watch/halt" && e.Outcome == ledger.Done })
	})
	d.condition(holdfast.Local, "ada", watch.Loop, true, "told meanwhile")
	if g := answerTo(t, d, "ada", watch.Loop); g.within != "" || stateOf(t, d, "ada").State != holdfast.AgentPaused {
		t.Errorf("%+v", g)
	}
	until(t, "one event of the halt", func() bool { return countEvents(t, d, "halted") == 1 })
}

// TestD41a_WhatIsHoldfastsOwnIsWatchedOfOthers: who asks again and again what only
// Holdfast may do is a loop as anywhere; Holdfast's own crossings are no action.
func TestD41a_WhatIsHoldfastsOwnIsWatchedOfOthers(t *testing.T) {
	d, _, down := up(t, watched)
	defer down()
	for range 5 {
		_ = acts(t, d, "eve", snapshot.BoundaryPrefix+"take", `{"same":1}`, nil)
	}
	answerTo(t, d, "eve", watch.Loop)
}
