package kernel_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

func limits(ls ...budget.Limit) option {
	return policy(func(p *kernel.Policy) { p.Limits = ls })
}

func tokens(scope budget.Scope, n int64) budget.Limit {
	return budget.Limit{Scope: scope, Resource: holdfast.LLMTokens, Amount: n, Source: "test"}
}

// spent is how many tokens alice's counter of the first limit holds.
func (w *world) spent() int64 {
	w.t.Helper()
	return w.used(w.plan(holdfast.LLMTokens, 1)[0])
}

func TestK3_AC1_AC2_FP2_FP7_room(t *testing.T) {
	cases := []struct {
		name       string
		limit, ask int64 // the contract asks 10 besides
		times      int   // how many fit
		kind       holdfast.Kind
	}{
		{"K3_AC1_to_the_edge", 30, 0, 3, holdfast.KindBounds},
		{"K3_AC2_one_short", 29, 0, 2, holdfast.KindBounds},
		{"K3_FP7_alone_too_much", 9, 0, 0, holdfast.KindBounds},
		{"K3_FP7_no_room_at_all", 0, 0, 0, holdfast.KindBounds},
		{"K3_AC1_request_adds", 30, 5, 2, holdfast.KindBounds},
		{"K3_FP6_request_negative", 30, -1, 0, holdfast.KindValue},
		{"K3_FP6_request_most_negative", 30, math.MinInt64, 0, holdfast.KindValue},
		{"K3_FP8_request_vast", math.MaxInt64 - 5, math.MaxInt64, 0, holdfast.KindBounds},
		{"K3_FP3_negative_budget", -1, 0, 0, holdfast.KindInvalidBudget},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "", limits(tokens(budget.Tenant, c.limit)))
			req := w.req("test/cost", `{}`)
			if c.ask != 0 {
				req.Consumes = map[holdfast.Resource]int64{holdfast.LLMTokens: c.ask}
			}
			for range c.times {
				w.passes(req)
			}
			e := w.refused(req, holdfast.K3, c.kind)
			if c.kind == holdfast.KindBounds && !strings.Contains(e.Why, "left") {
				t.Fatalf("%q does not say what is left", e.Why)
			}
			if c.limit >= 0 {
				if got := w.spent(); got != int64(c.times)*(10+max(0, c.ask)) {
					t.Fatalf("%d used", got)
				}
			}
		})
	}
}

// An amount that the counter cannot hold together with what it has is an
// overflow, not a small number.
func TestK3_FP8_overflow(t *testing.T) {
	w := newWorld(t, "", limits(tokens(budget.Tenant, math.MaxInt64)))
	w.passes(w.req("test/cost", `{}`))
	req := w.req("test/cost", `{}`)
	req.Consumes = map[holdfast.Resource]int64{holdfast.LLMTokens: math.MaxInt64}
	w.refused(req, holdfast.K3, holdfast.KindOverflow)
	w.passes(w.req("test/cost", `{}`))
}

func TestK3_FP1_unknown_resource(t *testing.T) {
	w := newWorld(t, "")
	w.refused(w.req("test/unfunded", `{}`), holdfast.K3, holdfast.KindBudgetNotFound)
	req := w.req("test/low", `{}`)
	req.Consumes = map[holdfast.Resource]int64{"LLM_TOKENS": 1}
	w.refused(req, holdfast.K3, holdfast.KindBudgetNotFound)
}

// Criterion 3 and invariant 1: many at once take exactly what there is.
func TestK3_AC3_INV1_race_never_above_the_cap(t *testing.T) {
	w := newWorld(t, "", limits(tokens(budget.Tenant, 255)))
	var done, over atomic.Int64
	var wg sync.WaitGroup
	for i := range 40 {
		req := w.req("test/cost", fmt.Sprintf(`{"i":%d}`, i))
		req.Token = w.who(fmt.Sprintf("agent-%d", i%4))
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, err := w.k.Cross(context.Background(), req, ok)
			switch {
			case err == nil:
				done.Add(1)
			case holdfast.KindOf(err) == holdfast.KindBounds:
				over.Add(1)
			default:
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if done.Load() != 25 || over.Load() != 15 || w.spent() != 250 {
		t.Fatalf("%d crossed, %d were refused, %d are used of 255 at 10 each", done.Load(), over.Load(), w.spent())
	}
}

// Several resources are taken together or not at all.
func TestK3_D9_all_or_nothing(t *testing.T) {
	w := newWorld(t, "", limits(tokens(budget.Tenant, 100), budget.Limit{Scope: budget.Tenant, Resource: holdfast.FileWrites, Amount: 1, Source: "test"}))
	req := w.req("test/cost", `{}`)
	req.Consumes = map[holdfast.Resource]int64{holdfast.FileWrites: 1}
	w.passes(req)
	w.refused(req, holdfast.K3, holdfast.KindBounds)
	if got := w.spent(); got != 10 {
		t.Fatalf("%d tokens are used", got)
	}
}

func TestK3_AC4_INV4_tenants_are_independent(t *testing.T) {
	tenant := "org_a"
	who := holdfast.Identity{Principal: "user:a", Agent: "a", Session: "s", TokenID: "j", Roles: []string{"agent"}, Expires: time.Now().Add(time.Hour)}
	w := newWorld(t, "", limits(tokens(budget.Tenant, 20)), func(c *kernel.Config, _ *world) {
		c.Verifier = verifierFunc(func() holdfast.Identity { i := who; i.Tenant = tenant; return i })
	})
	req := w.req("test/cost", `{}`)
	for _, tenant = range []string{"org_a", "org_b", "org_a/tenant", "org_A"} {
		w.passes(req)
		w.passes(req)
		w.refused(req, holdfast.K3, holdfast.KindBounds)
	}
}

type verifierFunc func() holdfast.Identity

func (f verifierFunc) Verify(context.Context, holdfast.Secret, time.Time) (holdfast.Identity, error) {
	return f(), nil
}

// A limit of each scope stops who shares that scope, and nobody else (D9).
func TestK3_D9_scopes(t *testing.T) {
	base := holdfast.Identity{Tenant: "org", Tier: "gold", Intent: "I-1", Kind: "builder", Agent: "ada", Session: "s1", Chain: "c1",
		Principal: "user:a", TokenID: "j", Roles: []string{"agent"}, Expires: time.Now().Add(time.Hour)}
	change := map[budget.Scope]func(*holdfast.Identity){
		budget.Tier:    func(i *holdfast.Identity) { i.Tier = "x" },
		budget.Intent:  func(i *holdfast.Identity) { i.Intent = "x" },
		budget.Kind:    func(i *holdfast.Identity) { i.Kind = "x" },
		budget.Agent:   func(i *holdfast.Identity) { i.Agent = "x" },
		budget.Session: func(i *holdfast.Identity) { i.Session = "x" },
		budget.Chain:   func(i *holdfast.Identity) { i.Chain = "x" },
	}
	for scope, other := range change {
		t.Run(string(scope), func(t *testing.T) {
			who := base
			w := newWorld(t, "", limits(tokens(scope, 10)), func(c *kernel.Config, _ *world) {
				c.Verifier = verifierFunc(func() holdfast.Identity { return who })
			})
			req := w.req("test/cost", `{}`)
			w.passes(req)
			w.refused(req, holdfast.K3, holdfast.KindBounds)
			for s, fn := range change {
				if s == scope || scope == budget.Session && s == budget.Agent {
					continue // a session is one agent's
				}
				who = base
				fn(&who)
				w.refused(req, holdfast.K3, holdfast.KindBounds)
			}
			who = base
			other(&who)
			w.passes(req)
		})
	}
}

// Criterion 5: a policy that changes under a crossing does not change it: one
// that is judged is judged anew, and enters under the new one whole; one that has
// begun settles at its own limit.
func TestK3_AC5_INV5_policy_change(t *testing.T) {
	var change func()
	w := newWorld(t, "", limits(tokens(budget.Tenant, 100)), during(&change))
	next := func(version string, limit int64) {
		p := *w.k.Policy()
		p.Version, p.Limits = strings.Repeat(version, 64), []budget.Limit{tokens(budget.Tenant, limit)}
		if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
			t.Error(err)
		}
	}
	out, err := w.k.Cross(t.Context(), w.req("test/cost", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		next("2", 15)
		return ok(ctx)
	})
	if err != nil || out.Verdict != holdfast.Allow {
		t.Fatal(err)
	}
	if e := w.entries(holdfast.Local)[0]; *e.BudgetLimit != 100 || *e.Uses[0].Used != 10 {
		t.Fatalf("%+v", e)
	}
	w.refused(w.req("test/cost", `{}`), holdfast.K3, holdfast.KindBounds)
	change = func() { change = nil; next("3", 100) }
	w.passes(w.req("test/low", `{}`))
	if e := w.entries(holdfast.Local); change != nil || e[len(e)-1].Policy != strings.Repeat("3", 64) {
		t.Fatalf("%+v", e[len(e)-1])
	}
	change = func() { change = nil; next("4", 15) }
	w.passes(w.req("test/low", `{}`))
	w.refused(w.req("test/cost", `{}`), holdfast.K3, holdfast.KindBounds)
	next("5", 100)
	w.passes(w.req("test/cost", `{}`))
	if e := w.entries(holdfast.Local); *e[len(e)-1].BudgetLimit != 100 {
		t.Fatalf("%+v", e[len(e)-1])
	}
}

// Criterion 6: a tracker that cannot be read denies.
func TestK3_AC6_FP4_counters_unreadable(t *testing.T) {
	b := &broken{}
	w := newWorld(t, "", breakable(b))
	w.passes(w.req("test/cost", `{}`))
	w.advance(3 * time.Minute) // the counter was not 0 for so long that nobody can have seen it so
	for _, verb := range []string{"Counter", "PeekRate"} {
		b.fail(verb)
		boundary := map[string]string{"Counter": "test/cost", "PeekRate": "test/rate"}[verb]
		w.refused(w.req(boundary, `{}`), holdfast.K3, holdfast.KindUsageTracking)
	}
	b.fail("Draw")
	w.refused(w.req("test/cost", `{}`), holdfast.K6, holdfast.KindWALWrite)
	b.fail("")
	if got := w.spent(); got != 10 {
		t.Fatalf("%d used", got)
	}
	w.passes(w.req("test/cost", `{}`))
	b.view.Store(true)
	out, _ := w.k.Explain(t.Context(), w.req("test/cost", `{}`))
	if op := out.Opinions[2]; op.Kind != holdfast.KindUsageTracking || op.Verdict != holdfast.Deny {
		t.Fatalf("%+v", op)
	}
}

// The database itself takes no negative counter; budget.Fits refuses one all
// the same.
func TestK3_FP5_negative_usage(t *testing.T) {
	w := newWorld(t, "")
	w.passes(w.req("test/cost", `{}`))
	w.store.Close()
	if err := w.sql("UPDATE counter SET used = -50"); err == nil {
		t.Fatal("the database takes a negative counter")
	}
}

// Criterion 7: a day's window ends at UTC midnight, wherever the clock stands;
// a counter without a window never ends.
func TestK3_AC7_windows_reset_at_utc_midnight(t *testing.T) {
	day := tokens(budget.Tenant, 20)
	day.Window = 24 * time.Hour
	ever := tokens(budget.Agent, 35)
	w := newWorld(t, "", limits(day, ever))
	midnight := w.now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	w.advance(midnight.Add(-2 * time.Second).Sub(w.now()))
	w.passes(w.req("test/cost", `{}`))
	w.passes(w.req("test/cost", `{}`))
	w.refused(w.req("test/cost", `{}`), holdfast.K3, holdfast.KindBounds)
	w.advance(3 * time.Second)
	w.passes(w.req("test/cost", `{}`)) // the day is new, the agent has 5 left
	e := w.refused(w.req("test/cost", `{}`), holdfast.K3, holdfast.KindBounds)
	if !strings.Contains(e.Why, "per agent") {
		t.Fatalf("%q", e.Why)
	}
	w.advance(400 * 24 * time.Hour)
	w.refused(w.req("test/cost", `{}`), holdfast.K3, holdfast.KindBounds)
}

// A crossing that settles after its window's end leaves the new window alone.
func TestK3_AC7_settles_into_its_own_window(t *testing.T) {
	day := tokens(budget.Tenant, 20)
	day.Window = 24 * time.Hour
	w := newWorld(t, "", limits(day))
	if _, err := w.k.Cross(t.Context(), w.req("test/cost", `{}`), func(context.Context) (holdfast.Output, error) {
		w.advance(24 * time.Hour)
		return holdfast.Output{Used: map[holdfast.Resource]int64{holdfast.LLMTokens: 1}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := w.spent(); got != 0 {
		t.Fatalf("the new day begins with %d", got)
	}
}

// Invariant 3: counters survive a restart.
func TestK3_INV3_counters_survive_a_restart(t *testing.T) {
	w := newWorld(t, "")
	for range 5 {
		w.passes(w.req("test/cost", `{}`))
	}
	for range 3 {
		w.passes(w.req("test/rate", `{}`))
	}
	w.store.Close()
	again := reopen(t, w.dir, "")
	if got := again.spent(); got != 50 {
		t.Fatalf("%d used", got)
	}
	again.passes(again.req("test/cost", `{}`))
	again.refused(again.req("test/cost", `{}`), holdfast.K3, holdfast.KindBounds)
	again.refused(again.req("test/rate", `{}`), holdfast.K3, holdfast.KindBounds)
}

// What started is settled at what was measured, or at what was reserved; what
// provably never started is given back (D9).
func TestK3_D9_settlement(t *testing.T) {
	used := func(n int64) map[holdfast.Resource]int64 {
		return map[holdfast.Resource]int64{holdfast.LLMTokens: n}
	}
	cases := []struct {
		name string
		out  holdfast.Output
		err  error
		want int64
	}{
		{"measured_less", holdfast.Output{Used: used(3)}, nil, 3},
		{"measured_nothing", holdfast.Output{Used: used(0)}, nil, 0},
		{"measured_more", holdfast.Output{Used: used(25)}, nil, 25},
		{"not_measured", holdfast.Output{}, nil, 10},
		{"measured_negative", holdfast.Output{Used: used(-5)}, nil, 10},
		{"another_resource_measured", holdfast.Output{Used: map[holdfast.Resource]int64{holdfast.FileWrites: 1}}, nil, 10},
		{"failed_and_not_measured", holdfast.Output{}, errGone, 10},
		{"failed_and_measured", holdfast.Output{Used: used(4)}, errGone, 4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "", limits(tokens(budget.Tenant, 100)))
			_, err := w.k.Cross(t.Context(), w.req("test/cost", `{}`), func(context.Context) (holdfast.Output, error) {
				if got := w.spent(); got != 10 {
					t.Errorf("%d are taken while it acts", got)
				}
				return c.out, c.err
			})
			if (err == nil) != (c.err == nil) {
				t.Fatal(err)
			}
			if got := w.spent(); got != c.want {
				t.Fatalf("%d settled, want %d", got, c.want)
			}
			if e := w.entries(holdfast.Local)[0]; *e.Uses[0].Used != c.want || *e.Requested != 10 || *e.UsageBefore != 0 {
				t.Fatalf("%+v", e.Uses)
			}
		})
	}
}

// haltsAt is a latch that is set when it is asked for the nth time.
type haltsAt struct {
	kernel.Latch
	n atomic.Int64
}

func (l *haltsAt) Halted() bool {
	if l.n.Add(-1) == 0 {
		_ = l.Set("user:carol", "at the last instant", time.Now())
	}
	return l.Latch.Halted()
}

// A halt at the last instant: the hand never ran, so the budget is given back;
// the rate and the iteration are not.
func TestK3_D9_release_when_never_started(t *testing.T) {
	l := &haltsAt{}
	w := newWorld(t, "", limits(tokens(budget.Tenant, 100)), func(c *kernel.Config, _ *world) { l.Latch = c.Latch; c.Latch = l },
		listed(holdfast.Contract{Boundary: "test/all", Risk: holdfast.Low, RatePerMinute: 1,
			Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 10, holdfast.Iterations: 1}, Source: "test:50"}))
	l.n.Store(2)
	_, err := w.k.Cross(t.Context(), w.req("test/all", `{}`), func(context.Context) (holdfast.Output, error) {
		t.Error("acted while halted")
		return holdfast.Output{}, nil
	})
	wants(t, err, holdfast.KindHalted)
	if got := w.spent(); got != 0 {
		t.Fatalf("%d tokens kept", got)
	}
	es := w.entries(holdfast.Local)
	if len(es) != 1 || es[0].Outcome != "halted" || es[0].BeginSeq == nil {
		t.Fatalf("%+v", es)
	}
	for _, u := range es[0].Uses {
		if want := map[string]int64{"iterations": 1}[string(u.Draw.Resource)]; *u.Used != want {
			t.Fatalf("%s settled at %d", u.Draw.Resource, *u.Used)
		}
	}
	if err := w.latch.Clear(); err != nil {
		t.Fatal(err)
	}
	w.refused(w.req("test/all", `{}`), holdfast.K3, holdfast.KindBounds) // the rate
}

// A hand that says that nothing was begun is believed, whatever kind of error it
// gives; one that says nothing is settled at what was reserved.
func TestK3_D9_release_when_the_hand_never_began(t *testing.T) {
	w := newWorld(t, "", limits(tokens(budget.Tenant, 100)))
	fail := func(err error) (*holdfast.Outcome, error) {
		return w.k.Cross(t.Context(), w.req("test/cost", `{}`), func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, err })
	}
	_, err := fail(&holdfast.Error{Kind: holdfast.KindTimeout, Why: "it never left", Err: fmt.Errorf("queue: %w", holdfast.ErrNotStarted)})
	wants(t, err, holdfast.KindTimeout)
	if got := w.spent(); got != 0 {
		t.Errorf("%d tokens kept", got)
	}
	w.unstarted(ledger.Failed, holdfast.KindTimeout)
	if _, err := fail(&holdfast.Error{Kind: holdfast.KindTimeout, Why: "no answer"}); err == nil || w.spent() != 10 {
		t.Errorf("%d tokens kept of a call that was made: %v", w.spent(), err)
	}
}

// Iterations are counted per session, by kind; an unknown kind has two, and
// nothing gives one back (D41).
func TestK3_D41_iterations(t *testing.T) {
	w := newWorld(t, "")
	step := func(session string, kind string) holdfast.Request {
		req := w.req("agent/step", `{}`)
		req.Token = w.who("alice", func(i *holdfast.Identity) { i.Session, i.Kind = session, kind })
		return req
	}
	fail := func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Used: map[holdfast.Resource]int64{holdfast.Iterations: 0}}, errGone
	}
	for kind, n := range map[string]int{"builder": 5, "stranger": 2, "": 2} {
		for range n {
			if _, err := w.k.Cross(t.Context(), step("s-"+kind, kind), fail); holdfast.KindOf(err) != holdfast.KindOperation {
				t.Fatal(err)
			}
		}
		w.refused(step("s-"+kind, kind), holdfast.K3, holdfast.KindBounds)
		w.passes(step("other-"+kind, kind))
	}
}

// A denial by a later gate takes nothing.
func TestK3_D9_a_denial_takes_nothing(t *testing.T) {
	w := newWorld(t, "rules:\n  - {id: no, on: request, boundary: test/*, when: has(args.bad), message: bad}\n", limits(tokens(budget.Tenant, 100)))
	w.refused(w.req("test/cost", `{"bad":1}`), holdfast.K8, holdfast.KindRule)
	for range 5 {
		w.refused(w.req("test/rate", `{"bad":1}`), holdfast.K8, holdfast.KindRule)
	}
	if got := w.spent(); got != 0 {
		t.Fatalf("%d", got)
	}
	w.passes(w.req("test/rate", `{}`))
}
