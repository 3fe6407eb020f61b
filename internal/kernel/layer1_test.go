package kernel_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

func (w *world) step(agent, kind, session string) holdfast.Request {
	w.t.Helper()
	return holdfast.Request{Boundary: "agent/step", Payload: []byte(`{"action":"go"}`), Token: w.who(agent, func(id *holdfast.Identity) { id.Kind, id.Session = kind, session })}
}

func theKinds(p *kernel.Policy) {
	p.Kinds = map[string]kernel.AgentKind{}
	for kind, n := range iterationTable() {
		p.Kinds[kind] = kernel.AgentKind{Iterations: n}
	}
	p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Resource: holdfast.Iterations, Amount: 10_000, Window: 24 * time.Hour, Source: "built in"})
}

func iterationTable() map[string]int64 {
	return map[string]int64{"discovery": 3, "support": 5, "ops": 10, "code": 3, "growth": 5, "meta": 2, "finance": 3, "loop": 5}
}

// Spec 001, layer 1, Iteration Limits, row by row; a kind that nobody listed has
// two, and another spelling is another kind (D41). Fault 2 of findings 5.2 is one
// limit for all, and a counter that never moves.
func Test001_Layer1_Iterations_of_each_kind(t *testing.T) {
	w := newWorld(t, "", policy(theKinds))
	rows := iterationTable()
	rows["stranger"], rows["Ops"], rows[""] = 2, 2, 2
	for kind, n := range rows {
		agent := "a-" + kind
		for range n {
			w.passes(w.step(agent, kind, agent+"-1"))
		}
		e := w.refusedAs(w.step(agent, kind, agent+"-1"), holdfast.K3, holdfast.KindBounds)
		if !strings.Contains(e.Why, "iterations per session") {
			t.Errorf("%s: %q", kind, e.Why)
		}
		w.passes(w.step(agent, kind, agent+"-2")) // counted per session
	}
}

// Spec 001, layer 1, "per agent session": who bears the name of another's session
// spends nothing of it and finds nothing in it, and of one session an agent has
// one budget, whatever kind it says it is.
func Test001_Layer1_a_session_is_one_agents(t *testing.T) {
	money := budget.Limit{Scope: budget.Session, Resource: holdfast.MoneyMicro, Amount: 100, Exceed: budget.PauseAgent, Source: "test"}
	w := newWorld(t, "", policy(theKinds), func(c *kernel.Config, _ *world) { c.Policy.Limits = append(c.Policy.Limits, money) })
	in := func(agent, name string, amount int64) holdfast.Request { return w.pays(agent, amount, session(name)) }
	for range 3 { // mallory starves ada's session
		w.passes(w.step("mallory", "code", "ada-1"))
	}
	w.refusedAs(w.step("mallory", "code", "ada-1"), holdfast.K3, holdfast.KindBounds)
	w.passes(in("mallory", "ada-1", 100))
	for range 3 {
		w.passes(w.step("ada", "code", "ada-1"))
	}
	w.passes(in("ada", "ada-1", 100))
	w.refusedAs(in("ada", "ada-1", 1), holdfast.K3, holdfast.KindBounds) // and ada is paused, alone
	w.refusedAs(in("ada", "mallory-1", 1), holdfast.GateHalt, holdfast.KindPaused)
	w.passes(w.step("mallory", "code", "mallory-1"))

	for range 3 { // another kind is no second budget
		w.passes(w.step("eve", "code", "s1"))
	}
	for range 2 {
		w.passes(w.step("eve", "support", "s1"))
	}
	w.refusedAs(w.step("eve", "support", "s1"), holdfast.K3, holdfast.KindBounds)
	w.refusedAs(w.step("eve", "code", "s1"), holdfast.K3, holdfast.KindBounds)
}

// Spec 001, layer 1, Self-Dispatch Cooldown: 60 s, and at 60 s it is over. Fault 6
// of findings 5.2 is a cooldown on every action and one for all: here it is the
// step's, and each agent's own.
func Test001_Layer1_Cooldown_at_its_edge(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	w := newWorld(t, "", listed(holdfast.Contract{Boundary: "test/step", Risk: holdfast.Low, Cooldown: time.Minute, Source: "test:60"}),
		func(c *kernel.Config, _ *world) { c.Now = func() time.Time { return at } })
	real := w.now()
	w.advance(at.Sub(real) + time.Second) // tokens are made by the world's clock
	ask := func(agent string) holdfast.Request {
		return holdfast.Request{Boundary: "test/step", Payload: []byte(`{}`), Token: w.who(agent)}
	}
	first, second := ask("ada"), ask("bea")
	other := holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`), Token: first.Token}
	at = at.Add(2 * time.Second)
	w.passes(first)
	at = at.Add(time.Minute - time.Microsecond)
	if e := w.refusedAs(first, holdfast.K3, holdfast.KindBounds); !strings.Contains(e.Why, "cooldown of 1m0s per agent") {
		t.Errorf("%q", e.Why)
	}
	w.passes(second)
	w.passes(other)
	at = at.Add(time.Microsecond)
	w.passes(first)
}

// Fault 1 of findings 5.2: with no state of the agent's the document's script says
// "PASSED" and fails. Here the first step of an agent that nobody has seen passes,
// and says so once.
func Test001_Fault1_an_agent_without_state(t *testing.T) {
	w := newWorld(t, "", policy(theKinds))
	out, err := w.cross(w.step("brand-new", "code", "s1"))
	if err != nil || out.Verdict != holdfast.Allow {
		t.Fatalf("%v, %v", out.Verdict, err)
	}
	if n := w.events(holdfast.Local, "agent_first_seen"); len(n) != 1 {
		t.Errorf("%d first sights", len(n))
	}
}

// Fault 4 of findings 5.2: "False", "0" and "no" count as enabled. Here they halt.
func Test001_Fault4_every_other_word_halts(t *testing.T) {
	for _, word := range []string{"false", "False", "FALSE", "0", "no", "off", "", "enabled?"} {
		if latch.Enabled(word, true) {
			t.Errorf("HOLDFAST_ENABLED=%q goes on", word)
		}
	}
	for _, word := range []string{"true", "1", "yes", "on"} {
		if !latch.Enabled(word, true) {
			t.Errorf("HOLDFAST_ENABLED=%q halts", word)
		}
	}
	if !latch.Enabled("", false) {
		t.Error("unset halts")
	}
}

// Fault 5 of findings 5.2: from another directory the stop file is not seen. Here a
// latch is named by its absolute path, and one that is not is refused.
func Test001_Fault5_from_any_directory(t *testing.T) {
	w := newWorld(t, "")
	if _, err := w.k.Halt("bob", "stop"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	w.refusedAs(w.step("ada", "code", "s1"), holdfast.GateHalt, holdfast.KindHalted)
	again, err := latch.New(filepath.Join(w.dir, "HALT"))
	if err != nil || !again.Halted() {
		t.Fatalf("the latch is not seen from elsewhere: %v", err)
	}
}

// A clock that jumps: the window of a day is never filled twice, and what was used
// before the jump is found after it.
func Test001_Layer1_a_clock_that_jumps(t *testing.T) {
	w := newWorld(t, "", limits(budget.Limit{Scope: budget.Tenant, Resource: holdfast.MoneyMicro, Amount: 100, Window: 24 * time.Hour, Source: "test"}))
	w.passes(w.pays("ada", 100))
	w.advance(-24 * time.Hour)
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	w.advance(48 * time.Hour)
	w.passes(w.pays("ada", 100))
	w.advance(-24 * time.Hour)
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
}
