package kernel

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// maxModelName is how much of a model's name a record keeps, in bytes.
const maxModelName = 128

// setModelPrice prices what the door says that the request may take of a model. A
// table that has any model refuses one that it lacks; and where there is none, a
// budget of money that somebody wrote down refuses all: it would count nothing.
func (j *judgement) setModelPrice() {
	use := j.req.Model
	if use == nil {
		return
	}
	own := *use
	own.Model, own.How = j.k.modelName(use.Model), "reserved"
	j.price.use = &own
	prices := map[string]budget.ModelPrice{}
	names := append([]string{use.Model}, use.Others...)
	for _, name := range names {
		m, ok := j.pol.Prices.Model(name)
		if ok {
			prices[name] = m
		} else if where := j.wantsPrice(); where != "" {
			why, hint := fmt.Sprintf("no price for model %q", j.k.modelName(name)), "add it under prices: models: in holdfast.yaml"
			if use.Unbounded {
				why = "nobody can say how many tokens this takes: " + why
				hint = "ask at a path whose cost is known, or have it priced under that name, or allowed for the host: models: {unmetered: allow}"
			}
			j.refusePrice(holdfast.KindBudgetNotFound, "BUDGET_NOT_FOUND", where, why, hint)
			return
		}
	}
	m, ok := prices[use.Model]
	if !ok {
		return
	}
	most := int64(0)
	for _, name := range names {
		p, priced := prices[name]
		if !priced {
			continue
		}
		asked := *use
		asked.Model = j.k.modelName(name)
		cost, err := p.Most(asked)
		if err == nil && budget.AddCapped(cost, j.price.call) == 1<<63-1 {
			err = &holdfast.Error{Kind: holdfast.KindOverflow, Why: "what the request may cost cannot be counted"}
		}
		if e, ok := errors.AsType[*holdfast.Error](err); ok {
			j.refusePrice(e.Kind, stateOf(e.Kind), "prices", e.Why, e.Hint)
			return
		}
		most = max(most, cost)
	}
	j.price.micro, j.price.model, j.price.others = most+j.price.call, &m, prices
}

func stateOf(price holdfast.Kind) string {
	if price == holdfast.KindBudgetNotFound {
		return "BUDGET_NOT_FOUND"
	}
	return "EXCEEDED"
}

func (j *judgement) refusePrice(kind holdfast.Kind, state, rule, why, hint string) {
	op := deny(holdfast.K3, kind, why, hint)
	op.State, op.Rule = state, rule
	j.priceErr = &op
}

// wantsPrice says what demands that a model has a price, "" where nothing does.
func (j *judgement) wantsPrice() string {
	if p := j.pol.Prices; p != nil && len(p.Models) > 0 {
		return "prices"
	}
	for i := range j.pol.Limits {
		l := &j.pol.Limits[i]
		counts := l.Resource == holdfast.MoneyMicro || l.Resource == holdfast.LLMTokens && j.req.Model.Unbounded
		if counts && l.Source != "" && l.Source != builtInLimit && budget.MatchBoundary(l.Boundary, j.req.Boundary) {
			return l.Source
		}
	}
	return ""
}

// builtInLimit is the Source of limits that nobody wrote down.
const builtInLimit = "built in"

// modelName is a model's name as it may be written down: it is a caller's text.
func (k *Kernel) modelName(name string) string {
	if name == "" {
		return ""
	}
	return printable(excerpt.Of(k.quote(name, maxModelName), maxModelName))
}

// spentModel is what the crossing took of its model, and what that cost with all
// else that it is charged; not ok where it asked none, or nobody measured it.
func (j *judgement) spentModel(end *ending) (took holdfast.ModelUse, micro int64, ok bool) {
	used := end.out.Model
	if j.price.use == nil || used == nil || end.unstarted {
		return took, 0, false
	}
	took = *used
	m := j.price.model
	if p, ok := j.price.others[used.Answered]; ok {
		m = &p
	}
	took.Model = j.price.use.Model
	if took.Answered == j.req.Model.Model {
		took.Answered = ""
	}
	took.Answered, took.How = j.k.modelName(took.Answered), short(took.How)
	if m == nil {
		return took, j.flatMoney() + j.price.call, took.All() < 1<<63-1
	}
	cost, ok := m.Spent(took)
	return took, budget.AddCapped(budget.AddCapped(cost, j.price.call), j.flatMoney()), ok
}

// reservedModel is what the begin keeps of what may be taken of a model.
func (j *judgement) reservedModel() *ledger.Spending {
	use := j.price.use
	if use == nil {
		return nil
	}
	s := &ledger.Spending{Model: use.Model, How: use.How, Tokens: use.Tokens, Terms: j.termsOf(use)}
	if j.price.model != nil {
		s.Prices, s.Micro = j.pol.Prices.Version, j.price.micro
	}
	return s
}

// chargedModel is what the entry keeps of what was taken: what was reserved, where
// nobody measured it.
func (c *crossing) chargedModel(end *ending) *ledger.Spending {
	j := c.j
	s := j.reservedModel()
	switch took, micro, ok := j.spentModel(end); {
	case s == nil:
	case end.unstarted:
		s.How, s.Tokens, s.Micro, s.Terms = "unstarted", holdfast.Tokens{}, 0, ""
	case ok:
		s.Answered, s.How, s.Tokens, s.Terms = took.Answered, took.How, took.Tokens, j.termsOf(&took)
		if j.price.model != nil {
			s.Micro = micro
		}
	}
	return s
}

// maxTerms is how much a record keeps of terms and uses, in bytes.
const maxTerms = 512

// termsOf are the terms and uses by which a model's price was reckoned, as they are
// written down: "service_tier=priority web_search*3", "*" alone for no bound. What the
// provider chooses is left out where the table has one price for it.
func (j *judgement) termsOf(u *holdfast.ModelUse) string {
	var words []string
	for _, t := range u.Terms {
		decides := !strings.HasSuffix(t, "=")
		for _, p := range j.price.others {
			decides = decides || p.Decides(t)
		}
		if decides {
			words = append(words, strings.ReplaceAll(t, " ", "?"))
		}
	}
	for _, use := range u.Uses {
		word := strings.ReplaceAll(use.Name, " ", "?") + "*"
		switch {
		case use.N > 0:
			word += strconv.FormatInt(use.N, 10)
		case use.N == 0:
			continue
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return ""
	}
	return printable(excerpt.Of(j.k.quote(strings.Join(words, " "), maxTerms), maxTerms))
}
