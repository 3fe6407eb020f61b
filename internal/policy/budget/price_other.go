package budget

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// OtherPrices is what a model costs beside or instead of its ordinary prices.
type OtherPrices struct {
	// Above are the prices of calls with much input, by rising Over: of those whose
	// Over is less than the call's input the last is that of all its tokens.
	Above []AbovePrice
	// Uses is what one use of a tool costs that the provider runs itself, in
	// millionths of a dollar, by the tool's name such as web_search.
	Uses map[string]int64
	// Times is how much of the ordinary price of tokens is charged under a term, in
	// millionths of it, by the term such as service_tier=priority.
	Times map[string]int64
}

// AbovePrice is what the tokens of a call cost whose input, cached or not, is more
// than Over tokens. It has no OtherPrices of its own.
type AbovePrice struct {
	Over  int64
	Price ModelPrice
}

// once is a factor of one, in millionths.
const once = perMillion

// Spent is what a call cost that took so much, rounded up to a whole millionth. What
// nobody has priced of it costs as the dearest of its kind that somebody has. It is
// not ok where an amount or a price is negative, or the sum overflows.
func (m ModelPrice) Spent(u holdfast.ModelUse) (micro int64, ok bool) {
	times := int64(once)
	for _, t := range u.Terms {
		if times, ok = scaled(times, m.factor(t)); !ok {
			return 0, false
		}
	}
	if micro, ok = sum(u.Tokens, m.at(input(u.Tokens)).rates(), times); !ok {
		return 0, false
	}
	for _, use := range u.Uses {
		each, priced := m.use(use.Name)
		if !priced {
			each = m.dearestUse()
		}
		if use.N < 0 && each == 0 {
			continue
		}
		if micro, ok = plus(micro, use.N, each); !ok {
			return 0, false
		}
	}
	return micro, true
}

// Most is the most that a call can cost that may take so much: input may be read anew
// or from a cache, and less of it at another price. Errors are *holdfast.Error:
// KindBudgetNotFound where the table lacks a price of it, KindBudgetExceeded where
// nothing bounds how often a tool is used that has one, KindOverflow.
func (m ModelPrice) Most(u holdfast.ModelUse) (int64, error) {
	times := int64(once)
	for _, t := range u.Terms {
		if !m.timed(t) && !strings.HasSuffix(t, "=") {
			return 0, &holdfast.Error{Kind: holdfast.KindBudgetNotFound, Why: fmt.Sprintf("no price for model %q under %q", u.Model, t), Hint: "add it to the model's times: under prices: models: in holdfast.yaml, or leave it out"}
		}
		var ok bool
		if times, ok = scaled(times, max(once, m.factor(t))); !ok {
			return 0, uncountable()
		}
	}
	most, ok := sum(u.Tokens, m.dearest(), times)
	for _, a := range m.above() {
		if n, fits := sum(u.Tokens, a.Price.dearest(), times); a.Over < input(u.Tokens) {
			most, ok = max(most, n), ok && fits
		}
	}
	if !ok {
		return 0, uncountable()
	}
	for _, use := range u.Uses {
		each, priced := m.use(use.Name)
		switch {
		case !priced:
			return 0, &holdfast.Error{Kind: holdfast.KindBudgetNotFound, Why: fmt.Sprintf("no price for uses of the provider's own %q by model %q", use.Name, u.Model), Hint: "add it to the model's uses: under prices: models: in holdfast.yaml, $0 where it costs nothing"}
		case use.N < 0 && each > 0:
			return 0, &holdfast.Error{Kind: holdfast.KindBudgetExceeded, Why: fmt.Sprintf("the provider itself would use %q, each time for a price, and nothing bounds how often", use.Name), Hint: "name the most in the request, such as max_uses: 5"}
		}
		if most, ok = plus(most, max(0, use.N), each); !ok {
			return 0, uncountable()
		}
	}
	return most, nil
}

func uncountable() error {
	return &holdfast.Error{Kind: holdfast.KindOverflow, Why: "what the request may cost cannot be counted"}
}

// input is how many tokens a model has read, at most what an int64 holds.
func input(t holdfast.Tokens) int64 {
	t.Output = 0
	return t.All()
}

func (m ModelPrice) above() []AbovePrice {
	if m.Other == nil {
		return nil
	}
	return m.Other.Above
}

// at is the price of a call with so much input.
func (m ModelPrice) at(input int64) ModelPrice {
	for _, a := range m.above() {
		if a.Over < input {
			m = ModelPrice{Input: a.Price.Input, Output: a.Price.Output, Cached: a.Price.Cached, Other: m.Other}
		}
	}
	return m
}

// dearest are rates for tokens of which it is not known yet how they will be read: each
// kind of input as the dearest that it may be instead.
func (m ModelPrice) dearest() [5]int64 {
	r := m.rates()
	r[0] = max(r[0], r[1])
	r[2] = max(r[0], r[2])
	r[3] = max(r[2], r[3])
	return r
}

func (m ModelPrice) timed(term string) bool {
	if m.Other == nil {
		return false
	}
	_, there := m.Other.Times[term]
	return there
}

// factor is what a term multiplies the tokens' price by, in millionths. One that nobody
// priced, or that is not known ("service_tier="), is the dearest of its kind, and once at
// least; but tiers that are cheaper at every provider are once.
func (m ModelPrice) factor(term string) int64 {
	if m.Other == nil {
		return once
	}
	if f, there := m.Other.Times[term]; there {
		return f
	}
	most := int64(once)
	if term == "service_tier=flex" || term == "service_tier=batch" {
		return most
	}
	name, _, _ := strings.Cut(term, "=")
	for t, f := range m.Other.Times {
		if kind, _, _ := strings.Cut(t, "="); kind == name {
			most = max(most, f)
		}
	}
	return most
}

// Decides says whether the tokens of a call have another price under a term.
func (m ModelPrice) Decides(term string) bool { return m.factor(term) != once }

func (m ModelPrice) use(name string) (each int64, priced bool) {
	if m.Other == nil {
		return 0, false
	}
	each, priced = m.Other.Uses[name]
	return each, priced
}

func (m ModelPrice) dearestUse() int64 {
	most := int64(0)
	if m.Other != nil {
		for _, each := range m.Other.Uses {
			most = max(most, each)
		}
	}
	return most
}

// sum is what so many tokens cost at rates for a million, times a factor in millionths.
// Each rate is rounded up to a whole millionth of a dollar, and so is the sum.
func sum(t holdfast.Tokens, rates [5]int64, times int64) (micro int64, ok bool) {
	var hi, lo uint64
	for i, n := range [...]int64{t.Input, t.CacheRead, t.CacheWrite, t.CacheWriteLong, t.Output} {
		rate, ok := scaled(rates[i], times)
		if n < 0 || !ok && n > 0 {
			return 0, false
		}
		h, l := bits.Mul64(uint64(n), uint64(rate))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		if hi, carry = bits.Add64(hi, h, carry); carry > 0 {
			return 0, false
		}
	}
	return millionth(hi, lo)
}

// scaled is n times a factor in millionths, rounded up.
func scaled(n, times int64) (int64, bool) {
	if n < 0 || times < 0 {
		return 0, false
	}
	if times == once {
		return n, true
	}
	return millionth(bits.Mul64(uint64(n), uint64(times)))
}

// millionth is a number of two words through a million, rounded up.
func millionth(hi, lo uint64) (int64, bool) {
	lo, carry := bits.Add64(lo, perMillion-1, 0)
	if hi, carry = bits.Add64(hi, 0, carry); carry > 0 || hi >= perMillion {
		return 0, false
	}
	n, _ := bits.Div64(hi, lo, perMillion)
	return int64(n), n <= math.MaxInt64
}

// plus adds n times each.
func plus(micro, n, each int64) (int64, bool) {
	if n < 0 || each < 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(n), uint64(each))
	lo, carry := bits.Add64(lo, uint64(micro), 0)
	return int64(lo), hi == 0 && carry == 0 && lo <= math.MaxInt64
}
