package kernel_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/exceed"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// theTable is spec 001's budget table as configuration has it.
func theTable() []budget.Limit {
	return []budget.Limit{
		{Scope: budget.Tenant, Resource: holdfast.MoneyMicro, Amount: 50_000_000, Window: 24 * time.Hour, Exceed: budget.BlockTenant, Source: "built in"},
		{Scope: budget.Session, Resource: holdfast.MoneyMicro, Amount: 10_000_000, Exceed: budget.PauseAgent, Source: "built in"},
		{Scope: budget.Chain, Resource: holdfast.MoneyMicro, Amount: 5_000_000, Exceed: budget.EndChain, Source: "built in"},
	}
}

// pays is a request of an agent's for so many micro-dollars.
func (w *world) pays(agent string, micro int64, change ...func(*holdfast.Identity)) holdfast.Request {
	w.t.Helper()
	return holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`), Token: w.who(agent, change...), Consumes: map[holdfast.Resource]int64{holdfast.MoneyMicro: micro}}
}

func chained(name string) func(*holdfast.Identity) {
	return func(id *holdfast.Identity) { id.Chain = name }
}

func session(name string) func(*holdfast.Identity) {
	return func(id *holdfast.Identity) { id.Session = name }
}

// refusedAs fails unless the request is refused by that gate and kind.
func (w *world) refusedAs(req holdfast.Request, g holdfast.Gate, kind holdfast.Kind) *holdfast.Error {
	w.t.Helper()
	_, err := w.cross(req)
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Gate != g || e.Kind != kind {
		w.t.Fatalf("got %v, want %s of %s", err, kind, g)
	}
	return e
}

// Spec 001, layer 1, API Budget Limits, "Per dispatch chain, $5: halt chain, log".
func Test001_Layer1_BudgetChain_ended(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	w.passes(w.pays("ada", 5_000_000, chained("c1"))) // to the edge: nothing is exceeded
	if len(w.events(holdfast.Local, "chain_halted")) != 0 {
		t.Fatal("ended at its limit, not beyond")
	}
	w.refusedAs(w.pays("ada", 1, chained("c1")), holdfast.K3, holdfast.KindBounds)
	// Everything of that chain, though it costs nothing and whoever asks.
	e := w.refusedAs(w.pays("bea", 0, chained("c1")), holdfast.GateHalt, holdfast.KindChainEnded)
	if !strings.Contains(e.Why, "c1") || !strings.Contains(e.Why, "money_micro per chain") {
		t.Errorf("%q does not say which chain and which budget", e.Why)
	}
	w.passes(w.pays("ada", 1, chained("c2")))
	w.passes(w.pays("ada", 1))
	ev := w.events(holdfast.Local, "chain_halted")
	if len(ev) != 1 || ev[0].Subject != "c1" || !strings.Contains(string(ev[0].Data), `"used":5000000`) {
		t.Fatalf("%+v", ev)
	}
	// For ever: after days, and a restart.
	w.advance(72 * time.Hour)
	w.refusedAs(w.pays("ada", 0, chained("c1")), holdfast.GateHalt, holdfast.KindChainEnded)
	dir := w.dir
	w.store.Close()
	w = reopen(t, dir, "", limits(theTable()...))
	w.refusedAs(w.pays("ada", 0, chained("c1")), holdfast.GateHalt, holdfast.KindChainEnded)
	w.view(func(tx kernel.Tx) error {
		if n, err := exceed.ChainsEnded(tx, holdfast.Local); n != 1 || err != nil {
			t.Errorf("%d chains ended, %v", n, err)
		}
		return nil
	})
}

func (w *world) view(fn func(kernel.Tx) error) {
	w.t.Helper()
	if err := w.store.View(context.Background(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// Spec 001, layer 1, API Budget Limits, "Daily total, $50: block all agents, alert".
func Test001_Layer1_BudgetDay_blocks(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	for i, s := range []string{"s1", "s2", "s3", "s4", "s5"} {
		w.passes(w.pays("ada", 10_000_000, session(s)))
		if i < 4 {
			continue
		}
		w.refusedAs(w.pays("ada", 1, session("s6")), holdfast.K3, holdfast.KindBounds)
	}
	e := w.refusedAs(w.pays("bea", 0), holdfast.GateHalt, holdfast.KindTenantBlocked)
	if !strings.Contains(e.Why, "T00:00:00Z") || !strings.Contains(e.Why, "money_micro per tenant in 24h") || !strings.Contains(e.Hint, "budget unblock") {
		t.Errorf("%q, %q", e.Why, e.Hint)
	}
	other := w.pays("eve", 0, func(id *holdfast.Identity) { id.Tenant = holdfast.Local })
	w.refusedAs(other, holdfast.GateHalt, holdfast.KindTenantBlocked)
	if n := w.told("tenant_blocked"); len(n) != 1 || n[0].Level != "critical" {
		t.Errorf("people were told %+v", n)
	}
	// A restart changes nothing, and neither does a clock that goes back.
	dir := w.dir
	w.store.Close()
	w = reopen(t, dir, "", limits(theTable()...))
	w.refusedAs(w.pays("bea", 0), holdfast.GateHalt, holdfast.KindTenantBlocked)
	w.advance(-20 * time.Hour)
	w.refusedAs(w.pays("bea", 0), holdfast.GateHalt, holdfast.KindTenantBlocked)
	w.advance(20 * time.Hour)
	// The window's end does.
	w.advance(24 * time.Hour)
	w.passes(w.pays("bea", 10_000_000, session("s7")))
	// A clock that went a day ahead, and comes back, finds the block.
	w.advance(-24 * time.Hour)
	w.refusedAs(w.pays("bea", 0), holdfast.GateHalt, holdfast.KindTenantBlocked)
}

// A person lifts the block; the budget itself stays, and does not block again in
// that window.
func Test001_Layer1_BudgetDay_unblocked_by_a_person(t *testing.T) {
	w := newWorld(t, "", limits(theTable()[0]))
	w.passes(w.pays("ada", 50_000_000))
	unblock := func() error {
		_, err := exceed.FromKernel(w.k).UnblockTenant(holdfast.Local, w.sign(operator.Statement{Act: operator.Unblock, Subject: "budget", Reason: "go on"}))
		return err
	}
	wants(t, unblock(), holdfast.KindConflict)
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	w.refusedAs(w.pays("bea", 0), holdfast.GateHalt, holdfast.KindTenantBlocked)
	if err := unblock(); err != nil {
		t.Fatal(err)
	}
	w.passes(w.pays("bea", 0))
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	w.passes(w.pays("bea", 0))
	if n := w.events(holdfast.Local, "tenant_unblocked"); len(n) != 1 || n[0].Who != "bob" {
		t.Errorf("%+v", n)
	}
	// The next day's window blocks anew.
	w.advance(24 * time.Hour)
	w.passes(w.pays("ada", 50_000_000))
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	w.refusedAs(w.pays("bea", 0), holdfast.GateHalt, holdfast.KindTenantBlocked)
}

// Spec 001, layer 1, API Budget Limits, "Per agent session, $10: pause agent,
// require approval".
func Test001_Layer1_BudgetSession_pauses_and_asks(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	w.passes(w.pays("ada", 10_000_000))
	w.refusedAs(w.pays("ada", 1_000_000), holdfast.K3, holdfast.KindBounds)
	w.refusedAs(w.pays("ada", 0), holdfast.GateHalt, holdfast.KindPaused)
	w.refusedAs(w.pays("ada", 0, session("another")), holdfast.GateHalt, holdfast.KindPaused)
	w.passes(w.pays("bea", 1))
	r := w.spentReview(1)
	if r.About != review.AboutBudget || r.Agent != "ada" || r.InPart() || !r.Expires.IsZero() || !strings.Contains(r.Preview, `"approving_adds":"$10.000000"`) {
		t.Fatalf("%+v", r)
	}
	if a := w.agent("ada"); a.State != holdfast.AgentPaused || !strings.Contains(a.Why, "budget is spent") {
		t.Errorf("%+v", a)
	}
	// Who asked cannot answer; nothing can be changed of it.
	self := w.sign(operator.Statement{Act: operator.Approve, Subject: r.ID, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce, Reviewer: "ada"})
	if _, err := w.k.Decide(self); holdfast.KindOf(err) != holdfast.KindSelfApproval {
		t.Errorf("ada answered its own question: %v", err)
	}
	w.approve(r.ID)
	if a := w.agent("ada"); a.State != holdfast.AgentRunning {
		t.Fatalf("%+v", a)
	}
	if ev := w.events(holdfast.Local, "budget_extended"); len(ev) != 1 || ev[0].Who != "bob" || !strings.Contains(string(ev[0].Data), `"amount":10000000`) {
		t.Errorf("%+v", ev)
	}
	// One more such amount, for that session, and no more.
	w.passes(w.pays("ada", 10_000_000))
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	second := w.spentReview(1)
	w.reject(second.ID)
	w.refusedAs(w.pays("ada", 0), holdfast.GateHalt, holdfast.KindPaused)
	if a := w.agent("ada"); !strings.Contains(a.Why, "stopped by bob") {
		t.Errorf("%+v", a)
	}
	if len(w.events(holdfast.Local, "budget_extended")) != 1 {
		t.Error("a rejection granted something")
	}
}

func (w *world) reject(id string) {
	w.t.Helper()
	if _, err := w.k.Decide(w.say(operator.Reject, id, "enough")); err != nil {
		w.t.Fatal(err)
	}
}

// spentReview is the one of n reviews of spent budgets that wait.
func (w *world) spentReview(n int) review.Review {
	w.t.Helper()
	rs, err := w.k.Reviews(w.t.Context(), holdfast.Local, review.Pending)
	if err != nil || len(rs) != n {
		w.t.Fatalf("%d reviews wait, not %d: %v", len(rs), n, err)
	}
	return rs[0]
}

// To unpause grants nothing; the question waits on, and the agent is stopped again
// by the same one.
func Test001_Layer1_BudgetSession_unpaused_without_a_grant(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	w.passes(w.pays("ada", 10_000_000))
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "ada"})); err != nil {
		t.Fatal(err)
	}
	w.passes(w.pays("ada", 1, session("another")))
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	w.refusedAs(w.pays("ada", 0), holdfast.GateHalt, holdfast.KindPaused)
	w.approve(w.spentReview(1).ID)
	w.passes(w.pays("ada", 1))
}

// What was measured above what was reserved exceeds as well, in the entry's own
// transaction; what is in flight goes on to its end.
func Test001_Layer1_Budget_exceeded_by_settlement(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	letGo, other := w.inside(w.pays("ada", 1, chained("c1")), func(context.Context) error { return nil })
	out, err := w.k.Cross(t.Context(), w.pays("ada", 1, chained("c1")), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{}`), Used: map[holdfast.Resource]int64{holdfast.MoneyMicro: 11_000_000}}, nil
	})
	if err != nil || out.Output == nil {
		t.Fatalf("what was done is not given: %v", err)
	}
	w.refusedAs(w.pays("bea", 0, chained("c1")), holdfast.GateHalt, holdfast.KindChainEnded)
	w.refusedAs(w.pays("ada", 0), holdfast.GateHalt, holdfast.KindPaused)
	close(letGo)
	if err := <-other; err != nil {
		t.Errorf("what was in flight was cut: %v", err)
	}
	for _, name := range []string{"chain_halted", "agent_paused"} {
		if ev := w.events(holdfast.Local, name); len(ev) != 1 || ev[0].Crossing != out.Crossing {
			t.Errorf("%s: %+v", name, ev)
		}
	}
}

// TestSettlementExceedsByOne: a settlement at the limit stops nothing, one micro-dollar
// more ends the chain.
func TestSettlementExceedsByOne(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	for used, ended := range map[int64]int{5_000_000: 0, 5_000_001: 1} {
		chain := chained(strconv.FormatInt(used, 10))
		spend := func(context.Context) (holdfast.Output, error) {
			spent := map[holdfast.Resource]int64{holdfast.MoneyMicro: used}
			return holdfast.Output{Body: []byte(`{}`), Used: spent}, nil
		}
		if _, err := w.k.Cross(t.Context(), w.pays("agent-"+strconv.Itoa(ended), 1, chain), spend); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range w.events(holdfast.Local, "chain_halted") {
			if e.Subject == strconv.FormatInt(used, 10) {
				n++
			}
		}
		if n != ended {
			t.Errorf("of %d used: %d chains ended, want %d", used, n, ended)
		}
	}
}

// TestRetryTimeIsOfWhatFits: a request that is one above the whole budget gets no time
// to try again, one that fits into the next window does.
func TestRetryTimeIsOfWhatFits(t *testing.T) {
	day := budget.Limit{Scope: budget.Agent, Resource: holdfast.MoneyMicro, Amount: 10,
		Window: 24 * time.Hour, Source: "a test"}
	w := newWorld(t, "", limits(day))
	if e := w.refusedAs(w.pays("ada", 11), holdfast.K3, holdfast.KindBounds); e.After != 0 {
		t.Errorf("11 of 10: again in %v", e.After)
	}
	w.passes(w.pays("ada", 1))
	if e := w.refusedAs(w.pays("ada", 10), holdfast.K3, holdfast.KindBounds); e.After <= 0 {
		t.Errorf("10 of 10: again in %v", e.After)
	}
}

// Of many that ask at once the budget passes what fits, and what follows happens
// once.
func Test001_Layer1_Budget_exceeded_by_many_at_once(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	var wg sync.WaitGroup
	for range 16 {
		req := w.pays("ada", 1_000_000, chained("c1"))
		wg.Go(func() { _, _ = w.k.Cross(context.Background(), req, ok) })
	}
	wg.Wait()
	done := 0
	for _, e := range w.entries(holdfast.Local) {
		if e.Outcome == "done" {
			done++
		}
	}
	if done > 5 || len(w.events(holdfast.Local, "chain_halted")) != 1 {
		t.Fatalf("%d passed, %d events", done, len(w.events(holdfast.Local, "chain_halted")))
	}
}

// A limit that refuses and nothing more does nothing more.
func Test001_Layer1_Budget_refuse_only(t *testing.T) {
	ls := theTable()
	for i := range ls {
		ls[i].Exceed = budget.Refuse
	}
	ls[0].Exceed = ""
	w := newWorld(t, "", limits(ls...))
	w.refusedAs(w.pays("ada", 60_000_000, chained("c1")), holdfast.K3, holdfast.KindBounds)
	w.passes(w.pays("ada", 1, chained("c1")))
}

// What cannot be committed has stopped nothing, in memory neither.
func Test001_Layer1_Block_that_is_not_durable(t *testing.T) {
	w := newWorld(t, "", limits(theTable()[0]))
	w.passes(w.pays("ada", 50_000_000))
	req := w.pays("ada", 1)
	if out, err := w.k.Check(t.Context(), req); err == nil && out.Verdict == holdfast.Allow {
		t.Fatal("a spent budget allows")
	}
	w.passes(w.pays("bea", 0)) // to ask what would happen blocks nobody
}

// TestTenantStaysBlockedAcrossAnUpdate: a block whose row was written before there were stops
// refuses the tenant's agents after the start, and a person lifts it like any other.
func TestTenantStaysBlockedAcrossAnUpdate(t *testing.T) {
	w := newWorld(t, "", limits(theTable()[0]))
	w.passes(w.pays("ada", 50_000_000))
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		stops, err := kernel.FindStops(tx, holdfast.Local, exceed.Name)
		if err == nil && len(stops) != 1 {
			t.Errorf("%d stops", len(stops))
		}
		for _, def := range kernel.Tables() {
			if err == nil && def.Name == "stop" {
				err = tx.DeleteRow(def, []any{holdfast.Local, stops[0].ID})
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := w.dir
	w.store.Close()
	w = reopen(t, dir, "", limits(theTable()[0]))
	w.refusedAs(w.pays("bea", 0), holdfast.GateHalt, holdfast.KindTenantBlocked)
	unblock := w.sign(operator.Statement{Act: operator.Unblock, Subject: "budget", Reason: "go on"})
	if _, err := exceed.FromKernel(w.k).UnblockTenant(holdfast.Local, unblock); err != nil {
		t.Fatal(err)
	}
	w.passes(w.pays("bea", 0))
	if n := len(w.events(holdfast.Local, "stopped")) + len(w.events(holdfast.Local, "stop_lifted")); n != 0 {
		t.Errorf("%d events of stops: budgets record their own", n)
	}
	w.store.Close()
	w = reopen(t, dir, "", limits(theTable()[0]))
	w.passes(w.pays("bea", 0))
}
