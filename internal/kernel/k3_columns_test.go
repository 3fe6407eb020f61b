package kernel_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// D14b: the k3_ columns of a refusal name what had no room, though another resource
// that was asked of would be left with less, in its own unit.
func TestD14b_columns_name_what_refused(t *testing.T) {
	w := newWorld(t, "", limits(
		budget.Limit{Scope: budget.Agent, Resource: holdfast.HTTPRequests, Amount: 1, Source: "test"},
		budget.Limit{Scope: budget.Agent, Resource: holdfast.MoneyMicro, Amount: 1_000, Source: "test"}))
	req := w.req("test/low", `{}`)
	req.Consumes = map[holdfast.Resource]int64{holdfast.HTTPRequests: 5, holdfast.MoneyMicro: 1_000_000}
	w.refusedAs(req, holdfast.K3, holdfast.KindBounds)
	req.Consumes = map[holdfast.Resource]int64{holdfast.HTTPRequests: 1, holdfast.MoneyMicro: 10}
	w.passes(req)
	var got []string
	for _, e := range w.entries(holdfast.Local) {
		got = append(got, *e.ResourceType)
		if len(e.Uses) != 2 {
			t.Errorf("%+v", e.Uses)
		}
	}
	// The first was refused for its requests, though its money lacks more; of what
	// passes the tightest is named.
	if len(got) != 2 || got[0] != "http_requests" || got[1] != "http_requests" {
		t.Errorf("%q", got)
	}
}

// What is refused because nobody knows its price was asked of no budget: the columns
// name none (D14b: NULL is not asked).
func TestD14b_columns_of_what_has_no_price(t *testing.T) {
	w := newWorld(t, "", policy(modelPrices), policy(func(p *kernel.Policy) {
		p.Limits = append(p.Limits, budget.Limit{Scope: budget.Agent, Resource: holdfast.HTTPRequests, Amount: 100, Source: "test"})
	}))
	req := w.asksModel("nobody priced it")
	req.Consumes = map[holdfast.Resource]int64{holdfast.HTTPRequests: 1}
	w.refusedAs(req, holdfast.K3, holdfast.KindBudgetNotFound)
	e := w.entries(holdfast.Local)[0]
	if e.ResourceType != nil || len(e.Uses) != 0 || e.WithinBudget == nil || *e.WithinBudget {
		t.Errorf("%v %+v %v", e.ResourceType, e.Uses, e.WithinBudget)
	}
}
