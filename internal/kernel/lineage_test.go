package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// sub is alice's request, of which her host says that id asks, whom parent started.
func (w *world) sub(boundary, id, parent string) holdfast.Request {
	w.t.Helper()
	r := w.req(boundary, `{}`)
	r.Sub = &holdfast.SubAgent{ID: id, Parent: parent, Session: "host-1"}
	return r
}

// asSeen makes a request pass and says who asked it, as its record says.
func (w *world) asSeen(r holdfast.Request) string {
	w.t.Helper()
	w.passes(r)
	e := w.last()
	if owner, _ := e.Who(); owner != "alice" || (e.Owner == "") != (e.Agent == "alice") {
		w.t.Fatalf("agent %q, owner %q", e.Agent, e.Owner)
	}
	return e.Agent
}

// known is an agent's record, zero where there is none.
func (w *world) known(name string) (a holdfast.Agent) {
	w.t.Helper()
	_ = w.store.View(context.Background(), func(tx kernel.Tx) (err error) { a, err = tx.Agent(holdfast.Local, name); return err })
	return a
}

// What a host says of the agents within an agent becomes the crossing's agent and
// its parent, as it was said at first sight; what it cannot be is the agent's own.
func TestTree_isSeen(t *testing.T) {
	w := newWorld(t, "")
	for _, c := range []struct{ id, parent, agent, under string }{
		{"plan", "", "alice/plan", "alice"},
		{"explore", "plan", "alice/explore", "alice/plan"},
		{"explore", "", "alice/explore", "alice/plan"}, // the first word counts
		{"explore", "review", "alice/explore", "alice/plan"},
		{"review", "0b7cf9a4-77c2-4a52-9d6e-6b7a3a1f7a10", "alice/review", "alice"}, // a thread that nobody has seen
		{"narcissus", "narcissus", "alice/narcissus", "alice"},
		{"plan", "explore", "alice/plan", "alice"}, // a cycle
		{"child", "alice", "alice/child", "alice"},
		{"researcher@team", "plan", "alice/researcher@team", "alice/plan"},
		{"", "plan", "alice", ""},
		{"alice", "plan", "alice", ""},
		{"bob", "", "alice/bob", "alice"}, // nobody else's
		{"a/b", "", "alice", ""},
		{"a b", "plan", "alice/plan", "alice"}, // whoever started it
		{"x, y", "", "alice", ""},
		{"../bob", "", "alice", ""},
		{strings.Repeat("x", 97), "", "alice", ""},
		{"\x00", "", "alice", ""},
		{"ghp_" + strings.Repeat("a1B2", 9), "", "alice", ""}, // a secret is no name
	} {
		if got := w.asSeen(w.sub("test/low", c.id, c.parent)); got != c.agent || w.known(got).Parent != c.under {
			t.Errorf("%q of %q is %q beneath %q, not %q beneath %q", c.id, c.parent, got, w.known(got).Parent, c.agent, c.under)
		}
		if s := w.last().Sub; s == nil || s.Session != "host-1" || strings.Contains(s.ID, "ghp_") {
			t.Errorf("%q: the record says %+v", c.id, s)
		}
	}
	if a := w.known("alice/explore"); a.Owner != "alice" || a.State != holdfast.AgentRunning || a.Principal != "user:alice" || a.Level != holdfast.Baseline {
		t.Errorf("%+v", a)
	}
	if a := w.known("bob"); a.Name != "" {
		t.Errorf("a header made %+v", a)
	}
	var met []string
	for _, e := range w.events(holdfast.Local, "subagent_first_seen") {
		met = append(met, e.Subject)
	}
	if want := []string{"alice/plan", "alice/explore", "alice/review", "alice/narcissus", "alice/child", "alice/researcher@team", "alice/bob"}; !slices.Equal(met, want) {
		t.Errorf("%q", met)
	}
}

// The tree has at most eight beneath each other: what is deeper is its parent's.
func TestTree_depth(t *testing.T) {
	w := newWorld(t, "")
	for i := 1; i <= 10; i++ {
		want := fmt.Sprintf("alice/d%d", min(i, 8))
		if got := w.asSeen(w.sub("test/low", fmt.Sprintf("d%d", i), fmt.Sprintf("d%d", min(i-1, 8)))); got != want {
			t.Errorf("the %dth is %s", i, got)
		}
	}
	if _, err := w.k.Pause(holdfast.Local, "alice/d1", "bob", "enough"); err != nil {
		t.Fatal(err)
	}
	w.refusedAs(w.sub("test/low", "d8", ""), holdfast.GateHalt, holdfast.KindPaused)
	w.refusedAs(w.sub("test/low", "d9", "d8"), holdfast.GateHalt, holdfast.KindPaused)
}

// A pause of an agent is one of all within it, a pause of one within it is one of
// that and of those beneath; who flies is cut.
func TestTree_pause(t *testing.T) {
	w := newWorld(t, "")
	for _, r := range []holdfast.Request{w.sub("test/low", "plan", ""), w.sub("test/low", "deep", "plan"), w.sub("test/low", "other", "")} {
		w.passes(r)
	}
	cut := make(chan error, 4)
	var began sync.WaitGroup
	for _, id := range []string{"deep", "other", "new"} {
		began.Add(1)
		r := w.sub("test/low", id, "plan")
		go func() {
			_, err := w.k.Cross(context.Background(), r, func(ctx context.Context) (holdfast.Output, error) {
				began.Done()
				<-ctx.Done()
				return holdfast.Output{}, ctx.Err()
			})
			cut <- err
		}()
	}
	began.Wait()
	if n, err := w.k.Pause(holdfast.Local, "alice/plan", "bob", "it loops"); err != nil || n != 2 {
		t.Fatalf("%d were cut, %v", n, err)
	}
	wants(t, <-cut, holdfast.KindPaused)
	wants(t, <-cut, holdfast.KindPaused)
	for _, r := range []holdfast.Request{w.sub("test/low", "plan", ""), w.sub("test/low", "deep", ""), w.sub("test/low", "newer", "plan"), w.sub("test/low", "not/taken", "plan"), w.sub("test/high", "deep", "")} {
		e := w.refusedAs(r, holdfast.GateHalt, holdfast.KindPaused)
		if !strings.Contains(e.Why, "the agent alice/plan is paused: it loops") || !strings.Contains(e.Hint, "unpause alice/plan`") {
			t.Errorf("%s (%s)", e.Why, e.Hint)
		}
	}
	w.passes(w.sub("test/low", "other", "plan")) // it was there before, and of alice
	w.passes(w.req("test/low", `{}`))
	if got := w.k.Flights(); len(got) != 1 || got[0].Agent != "alice/other" {
		t.Errorf("%+v", got)
	}
	if n, err := w.k.Pause(holdfast.Local, "alice", "bob", "all of it"); err != nil || n != 1 {
		t.Fatalf("%d were cut, %v", n, err)
	}
	wants(t, <-cut, holdfast.KindPaused)
	if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice/plan"})); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"plan", "other", "a/b", "", "newest"} {
		w.refusedAs(w.sub("test/low", id, ""), holdfast.GateHalt, holdfast.KindPaused)
	}
	if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice"})); err != nil {
		t.Fatal(err)
	}
	w.passes(w.sub("test/low", "deep", ""))
}

// Nothing is granted by a header: trust, rates, sessions with their iterations,
// replays and rules are those of the agent, whoever asks within it.
func TestTree_grantsNothing(t *testing.T) {
	w := newWorld(t, `
rules:
  - {id: alice-not, on: request, boundary: test/medium, when: "agent == 'alice' && subagent != 'trusted'", message: no}
  - {id: none-within, on: request, boundary: test/cost, when: "subagent != ''", message: no}
`)
	for i := range 4 {
		r := w.sub("test/rate", fmt.Sprintf("r%d", i), "")
		if i < 3 {
			w.passes(r)
		} else {
			w.refusedAs(r, holdfast.K3, holdfast.KindBounds)
		}
	}
	r := w.req("agent/step", `{}`)
	for i := range 6 {
		r.Token = w.who("alice", func(id *holdfast.Identity) { id.Kind = "builder" })
		r.Sub = &holdfast.SubAgent{ID: fmt.Sprint("s", i), Session: fmt.Sprint("session", i)}
		if i < 5 {
			w.passes(r)
		} else {
			w.refusedAs(r, holdfast.K3, holdfast.KindBounds)
		}
	}
	w.refusedAs(w.sub("test/medium", "plan", ""), holdfast.K8, holdfast.KindRule)
	w.passes(w.sub("test/medium", "trusted", ""))
	w.refusedAs(w.sub("test/cost", "plan", ""), holdfast.K8, holdfast.KindRule)
	w.passes(w.req("test/cost", `{}`))
	w.refusedAs(w.sub("test/spawn", "plan", ""), holdfast.K2, holdfast.KindPermission)
	err := w.k.Trust(holdfast.Local, w.sign(operator.Statement{Act: operator.Trust, Subject: "alice/trusted", Value: "highest"}))
	wants(t, err, holdfast.KindUsage)
	if err := w.k.Trust(holdfast.Local, w.sign(operator.Statement{Act: operator.Trust, Subject: "alice", Value: "medium"})); err != nil {
		t.Fatal(err)
	}
	w.passes(w.sub("test/spawn", "plan", ""))
	// A person's answer to one is the agent's: who asks has no other name to be known by.
	r = w.sub("test/high", "plan", "")
	o, err := w.cross(r)
	wants(t, err, holdfast.KindHeld)
	if got, _ := w.k.Review(t.Context(), o.Review); got.Agent != "alice" || got.Asker != "alice/plan" || got.Asks() != "alice/plan" {
		t.Errorf("%+v", got)
	}
	w.approve(o.Review)
	r.Sub.ID = "another"
	w.passes(r)
}

// A limit that names one within an agent counts what that one and those beneath take,
// beside the agent's own limits, which count everything; it covers nothing.
func TestTree_budgets(t *testing.T) {
	w := newWorld(t, "", policy(func(p *kernel.Policy) {
		p.Limits = append(p.Limits, budget.Limit{Scope: budget.Agent, Match: "alice/plan", Resource: holdfast.LLMTokens, Amount: 20, Exceed: budget.PauseAgent, Source: "test:plan"},
			budget.Limit{Scope: budget.Agent, Match: "alice/plan", Resource: "widgets", Amount: 20, Source: "test:widgets"})
		p.Rates = append(p.Rates, budget.RateLimit{Scope: budget.Agent, Match: "alice/slow", PerMinute: 1, Source: "test:slow"})
	}))
	w.passes(w.sub("test/low", "plan", ""))
	w.refusedAs(w.sub("test/unfunded", "plan", ""), holdfast.K3, holdfast.KindBudgetNotFound)
	w.passes(w.sub("test/cost", "plan", ""))
	w.passes(w.sub("test/cost", "deep", "plan"))
	w.passes(w.sub("test/cost", "other", ""))
	w.passes(w.sub("test/low", "slow", ""))
	w.refusedAs(w.sub("test/low", "slow", ""), holdfast.K3, holdfast.KindBounds)
	if got := w.used(w.plan(holdfast.LLMTokens, 1)[1]); got != 30 {
		t.Errorf("%d are counted as alice's", got)
	}
	w.refusedAs(w.sub("test/cost", "deep", ""), holdfast.K3, holdfast.KindBounds)
	if a := w.known("alice/plan"); a.State != holdfast.AgentPaused {
		t.Errorf("%+v", a)
	}
	if a := w.known("alice/deep"); a.State != holdfast.AgentRunning || w.known("alice").State != holdfast.AgentRunning {
		t.Errorf("%+v", a)
	}
	w.refusedAs(w.sub("test/low", "deep", ""), holdfast.GateHalt, holdfast.KindPaused)
	w.passes(w.sub("test/cost", "other", ""))
	rs, err := w.k.Reviews(t.Context(), holdfast.Local, "")
	if err != nil || len(rs) != 1 || rs[0].Agent != "alice/plan" || rs[0].Owner != "alice" {
		t.Fatalf("%+v, %v", rs, err)
	}
	w.approve(rs[0].ID)
	w.passes(w.sub("test/cost", "deep", ""))
	w.passes(w.sub("test/cost", "fresh", ""))
	w.refusedAs(w.sub("test/cost", "fresher", ""), holdfast.K3, holdfast.KindBounds) // alice has had 60
}

// Whoever asks within an agent, however many at a time: its budget is never passed by
// one unit, and that of one within it neither.
func TestTree_budgetsUnderRace(t *testing.T) {
	w := newWorld(t, "", policy(func(p *kernel.Policy) {
		p.Limits = append(p.Limits, budget.Limit{Scope: budget.Agent, Match: "alice/plan", Resource: holdfast.LLMTokens, Amount: 20, Source: "test:plan"})
	}))
	var all sync.WaitGroup
	for i := range 24 {
		r := w.sub("test/cost", fmt.Sprint("w", i), "plan")
		if i%3 == 0 {
			r.Sub.ID = "plan"
		}
		all.Go(func() { _, _ = w.cross(r) })
	}
	all.Wait()
	sums := map[string]int64{}
	for _, e := range w.entries(holdfast.Local) {
		for _, u := range e.Uses {
			if u.Used != nil {
				sums[u.Draw.Key] += *u.Used
			}
		}
	}
	if len(sums) != 3 {
		t.Errorf("%v", sums)
	}
	for key, n := range sums {
		if most := map[bool]int64{true: 20, false: 60}[strings.Contains(key, "plan")]; n > most && !strings.Contains(key, "tenant") {
			t.Errorf("%s has %d", key, n)
		}
	}
}

// A header names no agent that has a token, and takes no token's agent its name.
func TestTree_namesOfOthers(t *testing.T) {
	w := newWorld(t, "")
	other := w.req("test/low", `{}`)
	other.Token = w.who("alice/plan")
	w.passes(other)
	if got := w.asSeen(w.sub("test/low", "plan", "")); got != "alice" {
		t.Errorf("it is %s", got)
	}
	if got := w.asSeen(w.sub("test/low", "ops", "")); got != "alice/ops" {
		t.Errorf("it is %s", got)
	}
	if _, err := w.k.Pause(holdfast.Local, "alice/ops", "bob", "enough"); err != nil {
		t.Fatal(err)
	}
	other.Token = w.who("alice/ops", func(id *holdfast.Identity) { id.Kind = "builder" })
	w.refusedAs(other, holdfast.GateHalt, holdfast.KindPaused)
	if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice/ops"})); err != nil {
		t.Fatal(err)
	}
	other.Boundary = "test/spawn" // which its kind may at first sight
	w.passes(other)
	if a := w.known("alice/ops"); a.Owner != "" || a.Level != holdfast.MediumTrust {
		t.Errorf("%+v", a)
	}
	if got := w.asSeen(w.sub("test/low", "ops", "")); got != "alice" {
		t.Errorf("it is %s", got)
	}
}

// Of one agent so many are taken in a day; others are the agent's own, which is told
// once. Those that were seen longest ago are forgotten, but for who is paused.
func TestTree_bounds(t *testing.T) {
	const most = 512
	w := newWorld(t, "")
	w.passes(w.sub("test/low", "first", ""))
	w.passes(w.sub("test/low", "second", ""))
	w.fill("alice", most)
	for _, id := range []string{"more", "more", "yet-more"} {
		if got := w.asSeen(w.sub("test/low", id, "second")); got != "alice/second" || w.last().Sub.ID != id {
			t.Errorf("it is %s, said to be %+v", got, w.last().Sub)
		}
	}
	if got := w.asSeen(w.sub("test/low", "first", "")); got != "alice/first" {
		t.Errorf("it is %s", got)
	}
	if es := w.events(holdfast.Local, "subagents_not_taken"); len(es) != 1 || es[0].Subject != "alice" {
		t.Errorf("%+v", es)
	}
	if _, err := w.k.Pause(holdfast.Local, "alice/first", "bob", "enough"); err != nil {
		t.Fatal(err)
	}
	w.advance(25 * time.Hour)
	if got := w.asSeen(w.sub("test/low", "more", "second")); got != "alice/more" {
		t.Errorf("it is %s", got)
	}
	if w.known("alice/first").Name == "" || w.known("alice/second").Name != "" {
		t.Errorf("%+v, %+v", w.known("alice/first"), w.known("alice/second"))
	}
	w.refusedAs(w.sub("test/low", "first", ""), holdfast.GateHalt, holdfast.KindPaused)
	if got := w.asSeen(w.sub("test/low", "second", "more")); got != "alice/second" || w.known(got).Parent != "alice" {
		t.Errorf("it is %s beneath %s, whom it started", got, w.known(got).Parent) // alice/more is beneath it
	}
}

// fill lets an agent have so many within it, as far as is remembered.
func (w *world) fill(agent string, n int) {
	w.t.Helper()
	var known struct {
		Told   int64  `json:"told"`
		Within string `json:"within"`
	}
	if err := json.Unmarshal(w.mustRow("subagent_tree", holdfast.Local, agent), &known); err != nil {
		w.t.Fatal(err)
	}
	for i := strings.Count(known.Within, "\n"); i < n; i++ {
		known.Within += fmt.Sprintf("%d filler%d\n", w.now().UnixMicro(), i)
	}
	b, err := json.Marshal(known)
	if err != nil {
		w.t.Fatal(err)
	}
	w.putRow(b, "subagent_tree", holdfast.Local, agent)
}
