package kernel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

func priced(p *kernel.Policy) {
	p.Limits = theTable()
	p.Prices = &budget.Prices{Calls: []budget.CallPrice{{Boundary: "test/*", Micro: 7}, {Boundary: "test/medium", Micro: 1000}},
		Models: map[string]budget.ModelPrice{"m": {Input: 3_000_000, Output: 15_000_000}, "gift": {}}}
	p.Contracts = append(p.Contracts, holdfast.Contract{Boundary: "test/llm", Risk: holdfast.Low, Source: "test:20",
		PricedBy: &holdfast.PricedBy{Model: "args.model", InputTokens: "payload_size", OutputTokens: "args.max_tokens"}})
}

// spentOf is what alice's session has used of money.
func (w *world) spentOf() int64 {
	w.t.Helper()
	draws, _, no := budget.Plan(theTable()[1:2], nil, budget.Ask{Who: holdfast.Identity{Tenant: holdfast.Local, Agent: "alice", Session: "alice-s1"},
		Boundary: "test/llm", Consumes: map[holdfast.Resource]int64{holdfast.MoneyMicro: 1}, Now: w.now()})
	if no != nil {
		w.t.Fatal(no)
	}
	return w.used(draws[0])
}

// Spec 001, layer 1: money from a price table per tool, in whole millionths.
func Test001_Layer1_Price_of_a_call(t *testing.T) {
	w := newWorld(t, "", policy(priced))
	w.passes(w.req("test/low", `{}`))
	w.passes(w.req("test/medium", `{}`))
	if got := w.spentOf(); got != 1007 {
		t.Fatalf("%d are used, not 1007", got)
	}
}

// Spec 001, layer 1: money from a price table per model: reserved by what the
// request says, settled by what the hand measured, else at the reservation.
func Test001_Layer1_Price_of_a_model(t *testing.T) {
	const payload = `{"max_tokens":1000,"model":"m"}` // 31 bytes
	const reserved = 31*3 + 1000*15 + 7
	for name, c := range map[string]struct {
		used map[holdfast.Resource]int64
		want int64
	}{
		"nothing measured": {nil, reserved},
		"tokens":           {map[holdfast.Resource]int64{holdfast.LLMTokens: 131}, 31*3 + 100*15 + 7},
		"fewer than came":  {map[holdfast.Resource]int64{holdfast.LLMTokens: 10}, 10*3 + 7},
		"money":            {map[holdfast.Resource]int64{holdfast.LLMTokens: 131, holdfast.MoneyMicro: 42}, 42},
		"less than none":   {map[holdfast.Resource]int64{holdfast.MoneyMicro: -5}, reserved},
		"tokens below 0":   {map[holdfast.Resource]int64{holdfast.LLMTokens: -5}, reserved},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", policy(priced))
			_, err := w.k.Cross(t.Context(), w.req("test/llm", payload), func(context.Context) (holdfast.Output, error) {
				return holdfast.Output{Body: []byte(`{}`), Used: c.used}, nil
			})
			if err != nil || w.spentOf() != c.want {
				t.Fatalf("%d are used, not %d: %v", w.spentOf(), c.want, err)
			}
		})
	}
}

// What cannot be priced is refused by name, never free.
func Test001_Layer1_Price_that_is_missing(t *testing.T) {
	w := newWorld(t, "", policy(priced))
	for payload, want := range map[string]struct {
		kind holdfast.Kind
		why  string
	}{
		`{"max_tokens":1,"model":"other"}`:               {holdfast.KindBudgetNotFound, `no price for model "other"`},
		`{"max_tokens":1,"model":"M"}`:                   {holdfast.KindBudgetNotFound, `no price for model "M"`},
		`{"max_tokens":1}`:                               {holdfast.KindValue, "does not name the model"},
		`{"max_tokens":1,"model":""}`:                    {holdfast.KindValue, "does not name the model"},
		`{"max_tokens":1,"model":7}`:                     {holdfast.KindValue, "does not name the model"},
		`{"model":"m"}`:                                  {holdfast.KindValue, "no whole number"},
		`{"max_tokens":-1,"model":"m"}`:                  {holdfast.KindValue, "no whole number"},
		`{"max_tokens":1.5,"model":"m"}`:                 {holdfast.KindValue, "no whole number"},
		`{"max_tokens":"1","model":"m"}`:                 {holdfast.KindValue, "no whole number"},
		`{"max_tokens":9007199254740993000,"model":"m"}`: {holdfast.KindValue, "no whole number"},
		`{"max_tokens":1e300,"model":"m"}`:               {holdfast.KindValue, "no whole number"},
	} {
		e := w.refusedAs(w.req("test/llm", payload), holdfast.K3, want.kind)
		if !strings.Contains(e.Why, want.why) {
			t.Errorf("%s: %q, not %q", payload, e.Why, want.why)
		}
		if w.spentOf() != 0 {
			t.Fatalf("%s was charged %d", payload, w.spentOf())
		}
	}
	w.refusedAs(w.req("test/llm", `{"max_tokens":9007199254740990,"model":"m"}`), holdfast.K3, holdfast.KindBounds)
	free := newWorld(t, "", policy(priced))
	free.passes(free.req("test/llm", `{"max_tokens":1,"model":"gift"}`)) // somebody said that it costs nothing
}

// A model's price without a table refuses, and an expression that does not compile
// refuses the policy.
func Test001_Layer1_Price_without_a_table(t *testing.T) {
	w := newWorld(t, "", policy(priced), policy(func(p *kernel.Policy) { p.Prices = nil }))
	w.refusedAs(w.req("test/llm", `{"max_tokens":1,"model":"m"}`), holdfast.K3, holdfast.KindBudgetNotFound)
	p := *w.policy
	p.Version = strings.Repeat("2", 64)
	p.Contracts = append(p.Contracts[:len(p.Contracts)-1:len(p.Contracts)-1], holdfast.Contract{Boundary: "test/llm", Risk: holdfast.Low, Source: "test:20",
		PricedBy: &holdfast.PricedBy{Model: "args.model", InputTokens: "payload_sise", OutputTokens: "'one'"}})
	if err := w.k.SetPolicy(&p, "bob"); err == nil || !strings.Contains(err.Error(), "test:20") || !strings.Contains(err.Error(), "payload_sise") {
		t.Fatalf("%v", err)
	}
	w.refusedAs(w.req("test/llm", `{"max_tokens":1,"model":"m"}`), holdfast.K3, holdfast.KindBudgetNotFound) // what was in force stays
}
