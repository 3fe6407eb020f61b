package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/deadline"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/pricing"
	"github.com/holdfast-dev/holdfast/ledger"
)

// setPrice determines what the request costs.
func (j *judgement) setPrice(ctx context.Context) {
	c := j.contract
	if c == nil {
		return
	}
	ask := pricing.Ask{Boundary: j.req.Boundary, Source: c.Source, Prices: j.pol.Prices, Limits: j.pol.Limits,
		Use: j.req.Model, Quote: j.k.quote}
	switch {
	case c.Pricing == nil:
		j.price, j.priceErr = ask.ByModel()
	case j.doc == nil:
		j.price = ask.Call() // K1 refuses it
	default:
		ctx, cancel := deadline.After(ctx, gateTime)
		defer cancel()
		j.price, j.priceErr = ask.ByContract(ctx, c.Pricing, c.PricingErr, j.facts())
	}
}

// flatMoney is what contract and request ask of money in addition to the price.
func (j *judgement) flatMoney() int64 {
	return budget.AddCapped(j.contract.Consumes[holdfast.MoneyMicro], max(0, j.req.Consumes[holdfast.MoneyMicro]))
}

// spentModel returns what the crossing took of its model, and its cost with all else that it
// is charged.
func (j *judgement) spentModel(end *ending) (took holdfast.ModelUse, micro int64, ok bool) {
	if end.unstarted {
		return took, 0, false
	}
	return j.price.Spent(end.out.Model, j.flatMoney(), j.k.quote)
}

// reservedModel is what the begin keeps of what may be taken of a model.
func (j *judgement) reservedModel() *ledger.Spending {
	use := j.price.Use
	if use == nil {
		return nil
	}
	s := &ledger.Spending{Model: use.Model, How: use.How, Tokens: use.Tokens, Terms: j.price.Terms(use, j.k.quote)}
	if j.price.HasModel() {
		s.Prices, s.Micro = j.pol.Prices.Version, j.price.Micro
	}
	return s
}

// chargedModel is what the entry keeps of what was taken: what was reserved, if nothing was
// measured.
func (c *crossing) chargedModel(end *ending) *ledger.Spending {
	j := c.j
	s := j.reservedModel()
	switch took, micro, ok := j.spentModel(end); {
	case s == nil:
	case end.unstarted:
		s.How, s.Tokens, s.Micro, s.Terms = "unstarted", holdfast.Tokens{}, 0, ""
	case ok:
		s.Answered, s.How, s.Tokens, s.Terms = took.Answered, took.How, took.Tokens, j.price.Terms(&took, j.k.quote)
		if j.price.HasModel() {
			s.Micro = micro
		}
	}
	return s
}
