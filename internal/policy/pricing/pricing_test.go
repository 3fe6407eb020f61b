package pricing_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/pricing"
)

func quote(s string, n int) string { return s[:min(len(s), n)] }

var prices = &budget.Prices{Version: "v", Calls: []budget.CallPrice{{Boundary: "llm/ask", Micro: 7}},
	Models: map[string]budget.ModelPrice{"small": {Input: 1_000_000, Output: 2_000_000}}}

func TestByContractPricesTokens(t *testing.T) {
	x, err := pricing.Compile(&holdfast.PricedBy{Model: "args.model", InputTokens: "args.tokens",
		OutputTokens: "100"}, "here:1")
	if err != nil {
		t.Fatal(err)
	}
	ask := pricing.Ask{Boundary: "llm/ask", Source: "here:1", Prices: prices, Quote: quote}
	for _, c := range []struct {
		model string
		in    int64
		kind  holdfast.Kind
		micro int64
	}{
		{"small", 10, "", 10 + 200 + 7},
		{"large", 10, holdfast.KindBudgetNotFound, 7},
		{"small", -1, holdfast.KindValue, 7},
	} {
		f := constitution.Facts{Boundary: "llm/ask", Payload: map[string]any{"model": c.model,
			"tokens": json.Number(strconv.FormatInt(c.in, 10))}}
		p, no := ask.ByContract(t.Context(), x, nil, f)
		if p.Micro != c.micro || (no == nil) != (c.kind == "") || no != nil && no.Kind != c.kind {
			t.Errorf("%+v: %d, %+v", c, p.Micro, no)
		}
		if n, ok := p.Measured(map[holdfast.Resource]int64{holdfast.LLMTokens: 60}, 5); c.kind == "" &&
			(!ok || n <= 5+7) {
			t.Errorf("measured: %d, %v", n, ok)
		}
	}
}

func TestByModelRefusesModelsWithoutAPrice(t *testing.T) {
	use := &holdfast.ModelUse{Model: "large", Tokens: holdfast.Tokens{Input: 10, Output: 10}}
	money := []budget.Limit{{Resource: holdfast.MoneyMicro, Source: "holdfast.yaml:3"}}
	for _, c := range []struct {
		prices *budget.Prices
		limits []budget.Limit
		use    *holdfast.ModelUse
		rule   string
	}{
		{prices, nil, use, "prices"},
		{nil, money, use, "holdfast.yaml:3"},
		{nil, []budget.Limit{{Resource: holdfast.MoneyMicro, Source: pricing.BuiltInLimit}}, use, ""},
		{nil, nil, use, ""},
		{prices, money, nil, ""},
	} {
		ask := pricing.Ask{Boundary: "llm/ask", Prices: c.prices, Limits: c.limits, Use: c.use, Quote: quote}
		p, no := ask.ByModel()
		if (no == nil) != (c.rule == "") || no != nil && no.Rule != c.rule {
			t.Errorf("%+v: %+v", c, no)
		}
		if (p.Use == nil) != (c.use == nil) || p.Use != nil && p.Use.How != "reserved" {
			t.Errorf("%+v: %+v", c, p.Use)
		}
	}
}

func TestSpentChargesWhatAnswered(t *testing.T) {
	ask := pricing.Ask{Boundary: "x", Prices: prices, Quote: quote,
		Use: &holdfast.ModelUse{Model: "small", Tokens: holdfast.Tokens{Input: 10, Output: 10}}}
	p, no := ask.ByModel()
	if no != nil || p.Micro != 30 || !p.HasModel() {
		t.Fatalf("%+v, %+v", p, no)
	}
	took, micro, ok := p.Spent(&holdfast.ModelUse{Answered: "small", How: "measured",
		Tokens: holdfast.Tokens{Input: 4, Output: 3}}, 2, quote)
	if !ok || micro != 4+6+2 || took.Answered != "" || took.Model != "small" {
		t.Errorf("%+v, %d, %v", took, micro, ok)
	}
	if _, _, ok := p.Spent(nil, 0, quote); ok {
		t.Error("what was not measured was spent")
	}
}
