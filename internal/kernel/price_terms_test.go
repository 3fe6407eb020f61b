package kernel_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// otherPrices has one model that costs elsewise above 500 tokens, at another tier, and
// by each search.
func otherPrices(p *kernel.Policy) {
	p.Limits = theTable()
	p.Prices = &budget.Prices{Version: "table-8", Models: map[string]budget.ModelPrice{
		"plain": {Input: 1_000_000, Output: 1_000_000},
		"m": {Input: 3_000_000, Output: 15_000_000, Other: &budget.OtherPrices{
			Above: []budget.AbovePrice{{Over: 500, Price: budget.ModelPrice{Input: 6_000_000, Output: 20_000_000}}},
			Uses:  map[string]int64{"web_search": 10_000},
			Times: map[string]int64{"service_tier=priority": 2_000_000, "speed=fast": 6_000_000}}}}}
}

// D24: what a call may cost beside its ordinary tokens is reserved at the dearest, or
// refused by name; what the provider says is charged, and the record keeps by what.
func TestD24_terms_and_uses_have_prices(t *testing.T) {
	type use = []holdfast.ToolUse
	for name, c := range map[string]struct {
		terms    []string
		uses     use
		took     *holdfast.ModelUse
		reserved int64
		want     int64
		kept     string
	}{
		"above":                  {took: &holdfast.ModelUse{How: "complete", Tokens: holdfast.Tokens{Input: 501, Output: 1}}, reserved: 1000*6 + 100*20, want: 501*6 + 20},
		"not above":              {took: &holdfast.ModelUse{How: "complete", Tokens: holdfast.Tokens{Input: 500, Output: 1}}, reserved: 1000*6 + 100*20, want: 500*3 + 15},
		"the provider's tier":    {terms: []string{"service_tier=", "inference_geo="}, took: &holdfast.ModelUse{How: "complete", Terms: []string{"service_tier=priority", "inference_geo="}, Tokens: holdfast.Tokens{Input: 10}}, reserved: 2 * (1000*6 + 100*20), want: 60, kept: "service_tier=priority"},
		"nobody tells the tier":  {terms: []string{"service_tier="}, took: &holdfast.ModelUse{How: "complete", Terms: []string{"service_tier="}, Tokens: holdfast.Tokens{Input: 10}}, reserved: 2 * (1000*6 + 100*20), want: 60, kept: "service_tier="},
		"searches":               {uses: use{{Name: "web_search", N: 5}}, took: &holdfast.ModelUse{How: "complete", Uses: use{{Name: "web_search", N: 2}, {Name: "web_fetch"}}, Tokens: holdfast.Tokens{Input: 10}}, reserved: 1000*6 + 100*20 + 50_000, want: 20_030, kept: "web_search*2"},
		"more than were allowed": {uses: use{{Name: "web_search", N: 5}}, took: &holdfast.ModelUse{How: "complete", Uses: use{{Name: "web_search", N: 7}}}, reserved: 1000*6 + 100*20 + 50_000, want: 70_000, kept: "web_search*7"},
		"nobody measured":        {terms: []string{"speed=fast"}, uses: use{{Name: "web_search", N: 5}}, reserved: 6*(1000*6+100*20) + 50_000, want: 6*(1000*6+100*20) + 50_000, kept: "speed=fast web_search*5"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", policy(otherPrices))
			r := w.asksModel("m")
			r.Model.Terms, r.Model.Uses = c.terms, c.uses
			_, err := w.k.Cross(t.Context(), r, func(context.Context) (holdfast.Output, error) {
				if got := w.spentOf(); got != c.reserved {
					t.Errorf("%d are reserved, not %d", got, c.reserved)
				}
				return holdfast.Output{Body: []byte(`{}`), Model: c.took}, nil
			})
			if got := w.spentOf(); err != nil || got != c.want {
				t.Errorf("%d were charged, not %d: %v", got, c.want, err)
			}
			es := w.entries(holdfast.Local)
			if m := es[len(es)-1].Model; m == nil || m.Terms != c.kept || m.Micro != c.want || m.Prices != "table-8" {
				t.Errorf("the entry says %+v", m)
			}
		})
	}
	w := newWorld(t, "", policy(otherPrices))
	for name, c := range map[string]struct {
		use  holdfast.ModelUse
		kind holdfast.Kind
		why  string
	}{
		"a term without a price": {holdfast.ModelUse{Model: "m", Terms: []string{"inference_geo=us"}}, holdfast.KindBudgetNotFound, `under "inference_geo=us"`},
		"a tool without a price": {holdfast.ModelUse{Model: "m", Uses: use{{Name: "code_execution", N: 1}}}, holdfast.KindBudgetNotFound, `"code_execution"`},
		"searches without end":   {holdfast.ModelUse{Model: "m", Uses: use{{Name: "web_search", N: -1}}}, holdfast.KindBudgetExceeded, "nothing bounds"},
		"another model without":  {holdfast.ModelUse{Model: "m", Others: []string{"plain"}, Terms: []string{"speed=fast"}}, holdfast.KindBudgetNotFound, `model "plain" under "speed=fast"`},
		"too many terms":         {holdfast.ModelUse{Model: "m", Terms: slices.Repeat([]string{"speed=fast"}, 100), Tokens: holdfast.Tokens{Input: 1}}, holdfast.KindOverflow, "cannot be counted"},
	} {
		r := w.req("test/low", `{}`)
		r.Model = &c.use
		if e := w.refusedAs(r, holdfast.K3, c.kind); !strings.Contains(e.Why, c.why) || w.spentOf() != 0 {
			t.Errorf("%s: %q, and %d were charged", name, e.Why, w.spentOf())
		}
	}
	free := newWorld(t, "", policy(func(p *kernel.Policy) { p.Limits = theTable() }))
	r := free.asksModel("other")
	r.Model.Terms, r.Model.Uses = []string{"speed=fast"}, use{{Name: "web_search", N: -1}}
	free.passes(r) // without any price tokens alone are counted
}
