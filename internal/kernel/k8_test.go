package kernel_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

const severities = `
rules:
  - {id: noted, on: request, boundary: test/*, when: "args.s == 'info'", severity: info, message: noted it}
  - {id: warned, on: request, boundary: test/*, when: "args.s == 'warn'", severity: warn, message: warned of it}
  - {id: asked, on: request, boundary: test/*, when: "args.s == 'hold'", severity: hold, message: a person must see this}
  - {id: blocked, on: request, boundary: test/*, when: "args.s == 'block'", severity: block, message: not this, hint: do that}
  - {id: critical, on: request, boundary: test/*, when: "args.s == 'critical'", severity: critical, message: never this}
  - {id: default, on: request, boundary: test/*, when: "args.s == 'default'", message: blocked by default}
  - {id: watched, on: request, boundary: test/*, when: "args.s == 'observe'", severity: block, mode: observe, message: would be blocked}
  - {id: both, on: request, boundary: test/*, when: "args.s == 'hold_and_block'", severity: hold, message: first hold}
  - {id: both2, on: request, boundary: test/*, when: "args.s == 'hold_and_block'", severity: block, message: then block}
  - {id: elsewhere, on: request, boundary: other/*, when: "true", message: of another boundary}
  - {id: thrown, on: request, boundary: test/*, when: "args.s == 'error' && args.nothing > 1", message: reads what is not there}
  - {id: failed, on: request, boundary: test/*, when: "args.s == 'observed_error' && args.nothing > 1", mode: observe, message: reads what is not there}
`

func TestK8_request_rules(t *testing.T) {
	w := newWorld(t, severities)
	cases := []struct {
		name string
		want holdfast.Verdict
		kind holdfast.Kind
		says string
	}{
		{"nothing", holdfast.Allow, "", ""},
		{"info", holdfast.Allow, "", "noted it"},
		{"warn", holdfast.Allow, "", "warned of it"},
		{"hold", holdfast.Hold, "", "a person must see this"},
		{"block", holdfast.Deny, holdfast.KindRule, "not this"},
		{"critical", holdfast.Deny, holdfast.KindRule, "never this"},
		{"default", holdfast.Deny, holdfast.KindRule, "blocked by default"},
		{"observe", holdfast.Allow, "", "would be blocked"},
		{"hold_and_block", holdfast.Deny, holdfast.KindRule, "then block"},
		{"error", holdfast.Deny, holdfast.KindEval, "thrown"},
		{"observed_error", holdfast.Allow, "", ""},
	}
	for _, c := range cases {
		t.Run("K8_"+c.name, func(t *testing.T) {
			w.t = t
			req := w.req("test/low", `{"s":"`+c.name+`"}`)
			var op holdfast.Opinion
			switch c.want {
			case holdfast.Allow:
				op = w.passes(req).Opinions[7]
			case holdfast.Hold:
				op = w.held(req).Opinions[7]
			default:
				e := w.refused(req, holdfast.K8, c.kind)
				op = holdfast.Opinion{Why: e.Why, Rule: e.Rule, Hint: e.Hint}
				if !strings.Contains(e.Rule, "rules.yaml:") {
					t.Fatalf("%q does not name the place", e.Rule)
				}
			}
			if !strings.Contains(op.Why, c.says) {
				t.Fatalf("%q lacks %q", op.Why, c.says)
			}
		})
	}
	w.t = t
	// A rule's hold is a hold like any other: approved, it acts once.
	h := w.held(w.req("test/low", `{"s":"hold"}`))
	w.approve(h.Review)
	w.passes(w.req("test/low", `{"s":"hold"}`))
	if again := w.held(w.req("test/low", `{"s":"hold"}`)); again.Review == h.Review {
		t.Fatal("approved once, used twice")
	}
	// A payload without the key that every rule reads is denied (D3).
	w.refused(w.req("test/low", `{}`), holdfast.K8, holdfast.KindEval)
}

func withOutput(body string) kernel.Act {
	return func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(body), Used: map[holdfast.Resource]int64{holdfast.LLMTokens: 4}}, nil
	}
}

const outputRules = `
rules:
  - {id: no-keys, on: output, boundary: test/*, when: "has(output.key)", message: keys stay inside}
  - {id: seen, on: output, boundary: test/*, when: "has(output.odd)", severity: warn, message: odd}
  - {id: fails, on: output, boundary: test/*, when: "has(output.crash) && output.crash.deep.er == 1", message: reads too deep}
`

func judged() holdfast.Contract {
	return holdfast.Contract{Boundary: "test/judged", Risk: holdfast.Low, Predicates: []string{"output_schema_conformance"}, Source: "test:90",
		Consumes:     map[holdfast.Resource]int64{holdfast.LLMTokens: 10},
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}}}`)}
}

func TestK8_AC1_AC2_AC7_FP3_FP4_FP6_INV1_INV2_outputs(t *testing.T) {
	cases := []struct {
		name, body string
		kind       holdfast.Kind
	}{
		{"K8_AC1_satisfies", `{"ok":true}`, ""},
		{"K8_AC1_warned_of_only", `{"ok":true,"odd":1}`, ""},
		{"K8_AC2_FP4_violates_schema", `{"ok":"yes"}`, holdfast.KindEvalFailure},
		{"K8_AC2_FP4_violates_rule", `{"ok":true,"key":"x"}`, holdfast.KindEvalFailure},
		{"K8_FP3_rule_fails", `{"ok":true,"crash":{}}`, holdfast.KindEval},
		{"K8_FP6_not_json", `{"ok":`, holdfast.KindType},
		{"K8_FP6_two_documents", `{} {}`, holdfast.KindType},
		{"K8_FP6_duplicate_key", `{"ok":true,"ok":1}`, holdfast.KindType},
		{"K8_FP6_too_deep", strings.Repeat("[", 100) + strings.Repeat("]", 100), holdfast.KindType},
		{"K8_AC2_FP4_wrong_root", `[]`, holdfast.KindEvalFailure},
		{"K8_AC2_FP4_empty_is_null", ``, holdfast.KindEvalFailure},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, outputRules, listed(judged()), limits(tokens(budget.Tenant, 100)))
			out, err := w.k.Cross(t.Context(), w.req("test/judged", `{}`), withOutput(c.body))
			e := w.entries(holdfast.Local)[0]
			// Whatever K8 says, what was used is settled (D12).
			if w.spent() != 4 || *e.Uses[0].Used != 4 || e.BeginSeq == nil {
				t.Fatalf("%d settled", w.spent())
			}
			if c.kind == "" {
				if err != nil || string(out.Output.Body) != c.body || e.Outcome != ledger.Done || !*e.Passed {
					t.Fatalf("%v %+v", err, e)
				}
				return
			}
			wants(t, err, c.kind)
			if out.Output != nil || e.Outcome != ledger.Withheld || e.State != holdfast.Faulted || *e.Passed || *e.Gate != holdfast.K8 || e.ExitCode == 0 {
				t.Fatalf("%+v", e)
			}
		})
	}
}

// Criterion 6 and invariant 3: the same output has the same verdict, and a
// predicate that changes what it is given changes nothing for the caller.
func TestK8_AC6_INV3_deterministic(t *testing.T) {
	w := newWorld(t, outputRules, listed(judged()), limits(tokens(budget.Tenant, 10_000)))
	for body, kind := range map[string]holdfast.Kind{`{"ok":true}`: "", `{"ok":1}`: holdfast.KindEvalFailure} {
		var why string
		for i := range 10 {
			_, err := w.k.Cross(t.Context(), w.req("test/judged", `{}`), withOutput(body))
			wants(t, err, kind)
			if err != nil {
				if i > 0 && err.Error() != why {
					t.Fatalf("%q, then %q", why, err)
				}
				why = err.Error()
			}
		}
	}
}

// grabbing is a constitution whose judging writes over what it was given.
type grabbing struct{ kernel.Rules }

func (g grabbing) Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding {
	if m, ok := f.Output.(map[string]any); ok {
		m["ok"] = "changed"
		clear(m)
	}
	if m, ok := f.Payload.(map[string]any); ok {
		clear(m)
	}
	return g.Rules.Judge(ctx, on, f)
}

func TestK8_D12_predicates_see_a_copy(t *testing.T) {
	w := newWorld(t, "", listed(judged()), policy(func(p *kernel.Policy) { p.Rules = grabbing{p.Rules} }))
	req := w.req("test/judged", `{"a":1}`)
	out, err := w.k.Cross(t.Context(), req, withOutput(`{"ok":true}`))
	if err != nil || string(out.Output.Body) != `{"ok":true}` || string(req.Payload) != `{"a":1}` {
		t.Fatalf("%v %+v", err, out)
	}
}

// Criterion 5: a predicate that does not exist refuses the whole policy when
// it is loaded; one that a door brings refuses the crossing before the act.
func TestK8_AC5_FP1_missing_predicate(t *testing.T) {
	w := newWorld(t, "")
	c := holdfast.Contract{Boundary: "test/ghost", Risk: holdfast.Low, Predicates: []string{"no_such_check_v1"}, Source: "test:91"}
	p := *w.policy
	p.Version, p.Contracts = strings.Repeat("2", 64), append(append([]holdfast.Contract{}, p.Contracts...), c)
	err := w.k.SetPolicy(&p, "user:carol")
	wants(t, err, holdfast.KindPredicateNotFound)
	if !strings.Contains(err.Error(), "no_such_check_v1") || w.k.Policy().Version != w.policy.Version {
		t.Fatal(err)
	}
	if _, err := w.tools.Observe(t.Context(), []holdfast.Contract{c}); err != nil {
		t.Fatal(err)
	}
	w.refused(w.req("test/ghost", `{}`), holdfast.K8, holdfast.KindPredicateNotFound)
}

// Criterion 3: a predicate is found when its contract is made, once, and not
// at a crossing.
func TestK8_AC3_predicate_loaded_once(t *testing.T) {
	n := 0
	w := newWorld(t, "", listed(judged()), policy(func(p *kernel.Policy) { p.Rules = &countingRules{p.Rules, &n} }))
	made := n
	if made == 0 {
		t.Fatal("never asked for")
	}
	for range 3 {
		if _, err := w.k.Cross(t.Context(), w.req("test/judged", `{}`), withOutput(`{"ok":true}`)); err != nil {
			t.Fatal(err)
		}
	}
	if n != made {
		t.Fatalf("asked for %d times more", n-made)
	}
}

type countingRules struct {
	kernel.Rules
	n *int
}

func (c *countingRules) Predicate(id string) (constitution.Predicate, bool) {
	*c.n++
	return c.Rules.Predicate(id)
}

// Invariant 4: a predicate's version is a hash over what it asks, in the rule
// that the error names.
func TestK8_INV4_versions(t *testing.T) {
	load := func(when string) constitution.Predicate {
		set, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte("rules:\n  - {id: p, on: output, when: \"" + when + "\", message: m}\n")}})
		if err != nil {
			t.Fatal(err)
		}
		p, found := set.Predicate("p")
		if !found {
			t.Fatal("no predicate")
		}
		return p
	}
	a, same, b := load("output == 1"), load("output == 1"), load("output == 2")
	if a.Version != same.Version || a.Version == b.Version || a.Version == "" {
		t.Fatalf("%q %q %q", a.Version, same.Version, b.Version)
	}
}

// A rule that panics is a denial, before the act and after it.
type panicking struct {
	kernel.Rules
	on constitution.On
}

func (p panicking) Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding {
	if on == p.on {
		panic("a fault with AKIAIOSFODNN7CANARYX in it")
	}
	return p.Rules.Judge(ctx, on, f)
}

func TestK8_FP3_panics(t *testing.T) {
	for on, kind := range map[constitution.On]holdfast.Kind{constitution.OnRequest: holdfast.KindInternal, constitution.OnOutput: holdfast.KindEval} {
		w := newWorld(t, "", policy(func(p *kernel.Policy) { p.Rules = panicking{p.Rules, on} }))
		out, err := w.cross(w.req("test/low", `{}`))
		wants(t, err, kind)
		if out.Output != nil || strings.Contains(err.Error(), "CANARY") {
			t.Fatalf("%+v %v", out, err)
		}
	}
}

// Criterion 4 and failure predicate 5: a rule on outputs that does not answer
// is left behind after five seconds.
func TestK8_AC4_FP5_predicate_timeout(t *testing.T) {
	if testing.Short() {
		t.Skip("waits five seconds")
	}
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	w := newWorld(t, "", policy(func(p *kernel.Policy) { p.Rules = deafRules{p.Rules, release} }))
	start := time.Now()
	out, err := w.cross(w.req("test/low", `{}`))
	wants(t, err, holdfast.KindTimeout)
	if took := time.Since(start); took < 4*time.Second || took > time.Minute || out.Output != nil {
		t.Fatalf("took %v", took)
	}
}

// deafRules ignores its context.
type deafRules struct {
	kernel.Rules
	release chan struct{}
}

func (d deafRules) Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding {
	if on == constitution.OnOutput {
		<-d.release
	}
	return d.Rules.Judge(ctx, on, f)
}

// Texts that mean to talk a judge round change no verdict, wherever they stand
// in an output or a payload.
func TestK8_injected_texts_change_no_verdict(t *testing.T) {
	f, err := os.Open("../policy/constitution/testdata/injections.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := newWorld(t, outputRules+"  - {id: no-bad, on: request, boundary: test/*, when: \"has(args.bad)\", message: bad}\n",
		listed(judged()), limits(tokens(budget.Tenant, 1<<40)))
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if n++; !testrepeat.Enduring && n%5 != 0 {
			continue // the rules alone are asked about each (constitution)
		}
		text := `"` + line + `"`
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s", text)
		}
		for body, kind := range map[string]holdfast.Kind{
			`{"ok":true,"x":` + text + `}`:   "",
			`{"ok":` + text + `}`:            holdfast.KindEvalFailure,
			`{"ok":true,"key":` + text + `}`: holdfast.KindEvalFailure,
			text:                             holdfast.KindEvalFailure,
		} {
			out, err := w.k.Cross(t.Context(), w.req("test/judged", `{}`), withOutput(body))
			wants(t, err, kind)
			if (kind == "") != (out.Output != nil) {
				t.Fatalf("%s: output %v", body, out.Output)
			}
		}
		w.refused(w.req("test/low", `{"bad":`+text+`}`), holdfast.K8, holdfast.KindRule)
	}
	if n < 20 {
		t.Fatalf("only %d texts", n)
	}
	verifyStore(t, w)
}
