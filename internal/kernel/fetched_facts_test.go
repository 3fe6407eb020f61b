package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/ledger"
)

// giver is a FactSource that gives what a test says, and notes what it was asked.
type giver struct {
	mu    sync.Mutex
	gives map[string]constitution.Fetched // guarded by mu
	asked [][]string                      // guarded by mu
	given []byte                          // guarded by mu; the last request
	slow  bool
}

func (g *giver) Fetch(ctx context.Context, names []string, request func() ([]byte, error)) map[string]constitution.Fetched {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, slices.Clone(names))
	g.given, _ = request()
	out := map[string]constitution.Fetched{}
	if g.slow {
		<-ctx.Done()
	}
	for _, n := range names {
		f, there := g.gives[n]
		if !there || g.slow {
			f.Value, f.Err = nil, errors.New("it cannot be had")
		}
		out[n] = f
	}
	return out
}

// give makes name have a value.
func (g *giver) give(name, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	g.gives[name] = constitution.Fetched{Value: v, Text: []byte(text)}
}

func (g *giver) fetches() [][]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

const factRules = `rules:
  - {id: peers, on: request, boundary: test/low, when: '!(args.to in facts.peers)', message: no peer of ours}
  - {id: busy, on: output, boundary: test/low, when: facts.busy == true, message: too busy}
  - {id: goals, on: goal, when: '!(goal.goal_type in facts.kinds)', message: no such goal today}
  - {id: plain, on: request, boundary: test/medium, when: args.n > 1, message: too many}
`

func factWorld(t *testing.T, rules string) (*world, *giver) {
	t.Helper()
	g := &giver{gives: map[string]constitution.Fetched{}}
	var facts []constitution.Fact
	for _, n := range []string{"peers", "busy", "kinds"} {
		facts = append(facts, constitution.Fact{Name: n})
	}
	set, err := constitution.Setting{Facts: facts}.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(rules)}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "", unlimited, func(c *kernel.Config, w *world) {
		p := *c.Policy
		p.Rules, p.Facts = set, g
		p.Contracts = append(slices.Clone(p.Contracts), holdfast.Contract{Boundary: goalrule.Boundary, Risk: holdfast.Low, Source: "test:20"},
			holdfast.Contract{Boundary: "test/checked", Risk: holdfast.Low, Predicates: []string{"busy"}, Source: "test:21"})
		c.Policy, w.policy = &p, &p
	})
	return w, g
}

func (w *world) begun() (out []*ledger.Begin) {
	w.t.Helper()
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		if s.Kind == ledger.KindBegin {
			b, err := ledger.ParseBegin(s.Record)
			if err != nil {
				w.t.Fatal(err)
			}
			out = append(out, b)
		}
	})
	return out
}

// TestFacts_004_fetched_before_judging: only what the rules that judge here name
// is fetched, it is what they judge by, and the record has it (004, asynchronous
// predicates; D3).
func TestFacts_004_fetched_before_judging(t *testing.T) {
	w, g := factWorld(t, factRules)
	if _, err := w.cross(w.req("test/medium", `{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	if got := g.fetches(); len(got) != 0 {
		t.Fatalf("a rule that needs none fetched %v", got)
	}
	g.give("peers", `["ann","bob"]`)
	g.give("busy", `false`)
	if _, err := w.cross(w.req("test/low", `{"to":"ann"}`)); err != nil {
		t.Fatal(err)
	}
	if got := g.fetches(); len(got) != 2 || !slices.Equal(got[0], []string{"peers"}) || !slices.Equal(got[1], []string{"busy"}) {
		t.Errorf("%v", got)
	}
	b, e := w.begun()[1], w.last()
	if len(b.Fetched) != 1 || b.Fetched[0].Name != "peers" || b.Fetched[0].Text != `["ann","bob"]` || len(b.Fetched[0].Seal) != 32 {
		t.Errorf("the begin has %+v", b.Fetched)
	}
	if len(e.Fetched) != 1 || e.Fetched[0].Name != "busy" || e.Fetched[0].Text != "false" {
		t.Errorf("the entry has %+v", e.Fetched)
	}
	w.refused(w.req("test/low", `{"to":"eve"}`), holdfast.K8, holdfast.KindRule)
	if e := w.last(); len(e.Fetched) != 1 || e.Fetched[0].Seal != b.Fetched[0].Seal {
		t.Errorf("the refusal has %+v", e.Fetched)
	}
	g.give("busy", `true`)
	if _, err := w.cross(w.req("test/low", `{"to":"ann"}`)); holdfast.KindOf(err) != holdfast.KindEvalFailure {
		t.Errorf("an output while busy: %v", err)
	}
	if _, err := w.cross(w.req("test/checked", `{}`)); holdfast.KindOf(err) != holdfast.KindEvalFailure {
		t.Errorf("a contract's predicate: %v", err)
	}
	verifyStore(t, w)
}

// TestFacts_004_missing_refuses: what cannot be fetched fails its rule, and no
// rule else; the record says why.
func TestFacts_004_missing_refuses(t *testing.T) {
	w, g := factWorld(t, factRules)
	e := w.refused(w.req("test/low", `{"to":"ann"}`), holdfast.K8, holdfast.KindEval)
	if !strings.Contains(e.Why, "peers") {
		t.Errorf("%q", e.Why)
	}
	if r := w.last(); len(r.Fetched) != 1 || r.Fetched[0].Why != "it cannot be had" || r.Fetched[0].Seal != "" {
		t.Errorf("%+v", r.Fetched)
	}
	w.passes(w.req("test/medium", `{"n":1}`))
	if out, err := w.k.Check(t.Context(), w.req("test/low", `{"to":"ann"}`)); err != nil || out.Verdict != holdfast.Deny {
		t.Errorf("%+v %v", out, err)
	}
	none := *w.policy
	none.Version, none.Facts = strings.Repeat("2", 64), nil
	if err := w.k.SetPolicy(&none, "test"); err != nil {
		t.Fatal(err)
	}
	g.give("peers", `["ann"]`)
	w.refused(w.req("test/low", `{"to":"ann"}`), holdfast.K8, holdfast.KindEval)
}

// TestFacts_004_deadline: facts end with the request's own time.
func TestFacts_004_deadline(t *testing.T) {
	w, g := factWorld(t, factRules)
	g.give("peers", `["ann"]`)
	g.slow = true
	req := w.req("test/low", `{"to":"ann"}`)
	req.Deadline = time.Now().Add(50 * time.Millisecond)
	if _, err := w.cross(req); err == nil {
		t.Error("it passed")
	}
}

// TestFacts_004_goals: rules on goals are given theirs.
func TestFacts_004_goals(t *testing.T) {
	w, g := factWorld(t, factRules)
	g.give("kinds", `["research"]`)
	for kind, want := range map[string]bool{"research": true, "trade": false} {
		_, err := w.cross(w.req(goalrule.Boundary, `{"goal":{"goal_id":"g1","description":"look","priority":2,"goal_type":"`+kind+`"}}`))
		if (err == nil) != want {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if got := g.fetches(); len(got) != 2 || !slices.Equal(got[0], []string{"kinds"}) {
		t.Errorf("%v", got)
	}
}

// TestFacts_that_may_not_stand_in_the_record: what redaction knows, what is long
// and what hangs on the request leave a seal alone; the request is given redacted.
func TestFacts_that_may_not_stand_in_the_record(t *testing.T) {
	w, g := factWorld(t, factRules)
	g.give("busy", "false")
	for name, text := range map[string]string{"secret": `["ann","eve@example.com"]`, "long": `["ann","` + strings.Repeat("b", 600) + `"]`, "own": `["ann"]`} {
		g.give("peers", text)
		if name == "own" {
			f := g.gives["peers"]
			f.PerRequest = true
			g.gives["peers"] = f
		}
		if _, err := w.cross(w.req("test/low", `{"to":"ann","mail":"carol@example.com"}`)); err != nil {
			t.Fatal(err)
		}
		bs := w.begun()
		if f := bs[len(bs)-1].Fetched; len(f) != 1 || f[0].Text != "" || len(f[0].Seal) != 32 {
			t.Errorf("%s: %+v", name, f)
		}
		if strings.Contains(string(g.given), "carol@example.com") || !strings.Contains(string(g.given), `"boundary":"test/low"`) {
			t.Errorf("%s", g.given)
		}
	}
	w.nowhere("eve@example.com")
}
