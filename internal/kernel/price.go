package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// pricing is a contract's priced_by made ready; nil where it has none.
type pricing struct {
	model         *constitution.Name
	input, output *constitution.Amount
}

func compilePricing(p *holdfast.PricedBy, where string) (*pricing, error) {
	if p == nil {
		return nil, nil
	}
	model, err := constitution.CompileName(p.Model, where)
	input, err2 := constitution.CompileAmount(p.InputTokens, where)
	output, err3 := constitution.CompileAmount(p.OutputTokens, where)
	return &pricing{model, input, output}, errors.Join(err, err2, err3)
}

// price is what a request costs before it is made, in millionths of a dollar.
type price struct {
	micro int64
	call  int64 // what the crossing itself costs
	model *budget.ModelPrice
	input int64              // tokens
	use   *holdfast.ModelUse // what the door says that it may take, as it is recorded
	// others are the prices of the models that may answer instead.
	others map[string]budget.ModelPrice
}

// setPrice works out what the request costs. A model that nobody has priced, and
// an amount of tokens that is none, refuse it: nothing is free by mistake.
func (j *judgement) setPrice(ctx context.Context) {
	c := j.contract
	if c == nil {
		return
	}
	j.price.call = j.pol.Prices.Call(j.req.Boundary)
	j.price.micro = j.price.call
	if c.pricing == nil {
		j.setModelPrice()
		return
	}
	if j.doc == nil {
		return // K1 refuses it
	}
	ctx, cancel := limit(ctx, gateTime)
	defer cancel()
	no := func(kind holdfast.Kind, state, why, hint string) {
		op := deny(holdfast.K3, kind, why, hint)
		op.State, op.Rule = state, "priced_by ("+c.Source+")"
		j.priceErr = &op
	}
	if c.pricingErr != nil {
		no(holdfast.KindValue, "EXCEEDED", "the contract's priced_by does not compile", "")
		return
	}
	f := j.facts()
	name, err := c.pricing.model.Eval(ctx, f)
	if err != nil {
		no(holdfast.KindValue, "EXCEEDED", "the request does not name the model that it is priced by: "+excerpt.Of(err.Error(), 128), "")
		return
	}
	m, ok := j.pol.Prices.Model(name)
	if !ok {
		no(holdfast.KindBudgetNotFound, "BUDGET_NOT_FOUND", fmt.Sprintf("no price for model %q", j.k.quote(name, 64)), "add it under prices: models: in holdfast.yaml")
		return
	}
	input, err := c.pricing.input.Eval(ctx, f)
	output, err2 := c.pricing.output.Eval(ctx, f)
	if err := errors.Join(err, err2); err != nil {
		no(holdfast.KindValue, "EXCEEDED", "the request's tokens are no whole number of at least 0: "+excerpt.Of(err.Error(), 128), "")
		return
	}
	cost, ok := m.Cost(input, output)
	if !ok || budget.AddCapped(cost, j.price.call) == 1<<63-1 {
		no(holdfast.KindOverflow, "EXCEEDED", "what the request costs overflows", "")
		return
	}
	j.price.micro, j.price.model, j.price.input = cost+j.price.call, &m, input
}

// spentMoney is what a crossing has cost by what its hand has measured: the money
// itself, else its tokens; not ok where it has measured neither.
func (j *judgement) spentMoney(used map[holdfast.Resource]int64) (int64, bool) {
	if n, ok := used[holdfast.MoneyMicro]; ok {
		return n, n >= 0
	}
	tokens, ok := used[holdfast.LLMTokens]
	if !ok || j.price.model == nil || j.price.use != nil {
		return 0, false
	}
	n, ok := j.price.model.Measured(j.price.input, tokens)
	if !ok {
		return 1<<63 - 1, tokens >= 0 // more than can be counted is not less
	}
	// What the contract asks beside its price was not measured.
	return budget.AddCapped(budget.AddCapped(n, j.price.call), j.flatMoney()), true
}

// flatMoney is what contract and request ask of money beside the price.
func (j *judgement) flatMoney() int64 {
	return budget.AddCapped(j.contract.Consumes[holdfast.MoneyMicro], max(0, j.req.Consumes[holdfast.MoneyMicro]))
}
