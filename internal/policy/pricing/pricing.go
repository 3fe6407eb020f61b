// Package pricing determines what a request costs before it is made, and what its crossing
// cost. Amounts of money are in millionths of a dollar.
package pricing

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// Expressions are the priced_by of a contract, compiled.
type Expressions struct {
	model         *constitution.Name
	input, output *constitution.Amount
}

// Compile compiles a priced_by; of nil it returns nil. where is where it is written.
func Compile(p *holdfast.PricedBy, where string) (*Expressions, error) {
	if p == nil {
		return nil, nil
	}
	model, err := constitution.CompileName(p.Model, where)
	input, err2 := constitution.CompileAmount(p.InputTokens, where)
	output, err3 := constitution.CompileAmount(p.OutputTokens, where)
	return &Expressions{model, input, output}, errors.Join(err, err2, err3)
}

// Price is what a request costs before it is made. The zero value is free.
type Price struct {
	// Micro is the whole price.
	Micro int64
	// Use is what the frontend says that the request may take of a model, as it is
	// recorded; nil if that is nothing.
	Use   *holdfast.ModelUse
	call  int64 // the price of the crossing itself
	model *budget.ModelPrice
	input int64 // tokens
	asked string
	// others are the prices of the models that may answer instead.
	others map[string]budget.ModelPrice
}

// HasModel reports whether the model has a price.
func (p *Price) HasModel() bool { return p.model != nil }

// Ask is a request that is to be priced.
type Ask struct {
	Boundary string
	Source   string // where its contract is written
	Prices   *budget.Prices
	Limits   []budget.Limit
	// Use is what the frontend says that the request may take of a model, or nil.
	Use *holdfast.ModelUse
	// Quote redacts a text of the caller's and returns at most n bytes of it.
	Quote func(text string, n int) string
}

// Call returns the price of the crossing alone.
func (a *Ask) Call() Price {
	call := a.Prices.Call(a.Boundary)
	return Price{Micro: call, call: call}
}

// ByContract returns the price by the expressions of the contract, err being why they did
// not compile. A request whose model has no price, or whose tokens are not a whole number,
// is refused: nothing is free by mistake.
func (a *Ask) ByContract(ctx context.Context, x *Expressions, err error, f constitution.Facts) (Price,
	*holdfast.Opinion) {
	p := a.Call()
	no := func(kind holdfast.Kind, state, why, hint string) (Price, *holdfast.Opinion) {
		return p, refuse(kind, state, "priced_by ("+a.Source+")", why, hint)
	}
	if err != nil {
		return no(holdfast.KindValue, "EXCEEDED", "the contract's priced_by does not compile", "")
	}
	name, err := x.model.Eval(ctx, f)
	if err != nil {
		return no(holdfast.KindValue, "EXCEEDED", "the request does not name the model that it is priced by: "+
			excerpt.Of(err.Error(), 128), "")
	}
	m, ok := a.Prices.Model(name)
	if !ok {
		return no(holdfast.KindBudgetNotFound, "BUDGET_NOT_FOUND", fmt.Sprintf("no price for model %q",
			a.Quote(name, 64)), hintAddPrice)
	}
	input, err := x.input.Eval(ctx, f)
	output, err2 := x.output.Eval(ctx, f)
	if err := errors.Join(err, err2); err != nil {
		return no(holdfast.KindValue, "EXCEEDED", "the request's tokens are no whole number of at least 0: "+
			excerpt.Of(err.Error(), 128), "")
	}
	cost, ok := m.Cost(input, output)
	if !ok || budget.AddCapped(cost, p.call) == 1<<63-1 {
		return no(holdfast.KindOverflow, "EXCEEDED", "what the request costs overflows", "")
	}
	p.Micro, p.model, p.input = cost+p.call, &m, input
	return p, nil
}

const hintAddPrice = "add it under prices: models: in holdfast.yaml"

func refuse(kind holdfast.Kind, state, rule, why, hint string) *holdfast.Opinion {
	return &holdfast.Opinion{Gate: holdfast.K3, Verdict: holdfast.Deny, Kind: kind, State: state, Rule: rule, Why: why,
		Hint: hint}
}

// Measured returns what a crossing cost by what its backend measured: the money itself, or
// its tokens; flat is what contract and request ask of money in addition to the price. It
// reports false if neither was measured.
func (p *Price) Measured(used map[holdfast.Resource]int64, flat int64) (int64, bool) {
	if n, ok := used[holdfast.MoneyMicro]; ok {
		return n, n >= 0
	}
	tokens, ok := used[holdfast.LLMTokens]
	if !ok || p.model == nil || p.Use != nil {
		return 0, false
	}
	n, ok := p.model.Measured(p.input, tokens)
	if !ok {
		return 1<<63 - 1, tokens >= 0 // more than can be counted is not less
	}
	// What the contract asks in addition to its price was not measured.
	return budget.AddCapped(budget.AddCapped(n, p.call), flat), true
}
