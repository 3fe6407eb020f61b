package pricing

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// How much of a model's name, and of terms and uses, a record keeps, in bytes.
const (
	maxModelName = 128
	maxTerms     = 512
)

// BuiltInLimit is the Source of a limit that no one configured.
const BuiltInLimit = "built in"

// ByModel returns the price of what the frontend says that the request may take of a model.
// If any model has a price, one without is refused. If none has, a configured budget of money
// refuses every model: it would count nothing.
func (a *Ask) ByModel() (Price, *holdfast.Opinion) {
	p := a.Call()
	use := a.Use
	if use == nil {
		return p, nil
	}
	own := *use
	own.Model, own.How = a.quoteModel(use.Model), "reserved"
	p.Use, p.asked = &own, use.Model
	prices := map[string]budget.ModelPrice{}
	names := append([]string{use.Model}, use.Others...)
	for _, name := range names {
		m, ok := a.Prices.Model(name)
		if ok {
			prices[name] = m
		} else if where := a.wantsPrice(); where != "" {
			why, hint := fmt.Sprintf("no price for model %q", a.quoteModel(name)), hintAddPrice
			if use.Unbounded {
				why = "nobody can say how many tokens this takes: " + why
				hint = "ask at a path whose cost is known, or have it priced under that name, or allowed for the host: models: {unmetered: allow}"
			}
			return p, refuse(holdfast.KindBudgetNotFound, "BUDGET_NOT_FOUND", where, why, hint)
		}
	}
	m, ok := prices[use.Model]
	if !ok {
		return p, nil
	}
	most := int64(0)
	for _, name := range names {
		price, priced := prices[name]
		if !priced {
			continue
		}
		asked := *use
		asked.Model = a.quoteModel(name)
		cost, err := price.Most(asked)
		if err == nil && budget.AddCapped(cost, p.call) == 1<<63-1 {
			err = &holdfast.Error{Kind: holdfast.KindOverflow, Why: "what the request may cost cannot be counted"}
		}
		if e, ok := errors.AsType[*holdfast.Error](err); ok {
			state := "EXCEEDED"
			if e.Kind == holdfast.KindBudgetNotFound {
				state = "BUDGET_NOT_FOUND"
			}
			return p, refuse(e.Kind, state, "prices", e.Why, e.Hint)
		}
		most = max(most, cost)
	}
	p.Micro, p.model, p.others = most+p.call, &m, prices
	return p, nil
}

// wantsPrice returns what demands that a model has a price, "" if nothing does.
func (a *Ask) wantsPrice() string {
	if p := a.Prices; p != nil && len(p.Models) > 0 {
		return "prices"
	}
	for i := range a.Limits {
		l := &a.Limits[i]
		counts := l.Resource == holdfast.MoneyMicro || l.Resource == holdfast.LLMTokens && a.Use.Unbounded
		if counts && l.Source != "" && l.Source != BuiltInLimit && budget.MatchBoundary(l.Boundary, a.Boundary) {
			return l.Source
		}
	}
	return ""
}

func (a *Ask) quoteModel(name string) string { return quoteModel(a.Quote, name) }

// quoteModel returns a model's name, which is a caller's text, as it may be recorded.
func quoteModel(quote func(string, int) string, name string) string {
	if name == "" {
		return ""
	}
	return visible.ReplaceUnprintable(excerpt.Of(quote(name, maxModelName), maxModelName))
}

// Spent returns what the crossing took of its model, and its cost with all else that it is
// charged; used is what was measured, and flat is as for Measured. It reports false if the
// request asked no model, or nothing was measured.
func (p *Price) Spent(used *holdfast.ModelUse, flat int64, quote func(string, int) string) (took holdfast.ModelUse,
	micro int64, ok bool) {
	if p.Use == nil || used == nil {
		return took, 0, false
	}
	took = *used
	m := p.model
	if other, ok := p.others[used.Answered]; ok {
		m = &other
	}
	took.Model = p.Use.Model
	if took.Answered == p.asked {
		took.Answered = ""
	}
	took.Answered, took.How = quoteModel(quote, took.Answered), visible.Shorten(took.How)
	if m == nil {
		return took, budget.AddCapped(flat, p.call), took.All() < 1<<63-1
	}
	cost, ok := m.Spent(took)
	return took, budget.AddCapped(budget.AddCapped(cost, p.call), flat), ok
}

// Terms returns the terms and uses by which a model's price was determined, as they are
// recorded: "service_tier=priority web_search*3", "*" alone for no bound. What the provider
// chooses is left out if the table has one price for it.
func (p *Price) Terms(u *holdfast.ModelUse, quote func(string, int) string) string {
	var words []string
	for _, t := range u.Terms {
		decides := !strings.HasSuffix(t, "=")
		for _, other := range p.others {
			decides = decides || other.Decides(t)
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
	return visible.ReplaceUnprintable(excerpt.Of(quote(strings.Join(words, " "), maxTerms), maxTerms))
}
