package budget

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Prices is what things cost, in millionths of a dollar: whole numbers, so that
// no sum is rounded twice (spec 001, layer 1; D9). The zero value prices nothing:
// calls are then free, and every model is refused.
type Prices struct {
	// Version names the table in records; empty where it prices no model.
	Version string
	Calls   []CallPrice
	Models  map[string]ModelPrice
}

// CallPrice is what each crossing of a boundary costs.
type CallPrice struct {
	Boundary string // name or pattern, as MatchBoundary reads it
	Micro    int64
}

// ModelPrice is what a million tokens of a model cost.
type ModelPrice struct {
	Input, Output int64
	// Cached is what tokens cost that a provider keeps; nil is as for each price
	// that it lacks.
	Cached *CachedPrice
	// Other is what else may be charged; nil is nothing that anybody has priced.
	Other *OtherPrices
}

// CachedPrice is what a million tokens cost that are read from a provider's cache,
// or put there for minutes or for an hour. Nil is a price that nobody stated: then
// what is read costs as input does, and what is written twice that, which no
// provider exceeds.
type CachedPrice struct{ Read, Write, WriteLong *int64 }

// rates are the prices in the order of the tokens' kinds.
func (m ModelPrice) rates() [5]int64 {
	c := m.Cached
	if c == nil {
		c = &CachedPrice{}
	}
	or := func(p *int64, otherwise int64) int64 {
		if p == nil {
			return otherwise
		}
		return *p
	}
	twice := int64(math.MaxInt64)
	if m.Input <= math.MaxInt64/2 {
		twice = 2 * m.Input
	}
	return [5]int64{m.Input, or(c.Read, m.Input), or(c.Write, twice), or(c.WriteLong, twice), m.Output}
}

// Call is what one crossing of a boundary costs beside its tokens: the price of
// its own name, else of the longest pattern that matches, 0 where none does. Of
// two that are as near the higher counts.
func (p *Prices) Call(boundary string) int64 {
	if p == nil {
		return 0
	}
	best, cost := -2, int64(0)
	for _, c := range p.Calls {
		if !MatchBoundary(c.Boundary, boundary) {
			continue
		}
		near := 2 * len(c.Boundary)
		if c.Boundary == "" || strings.HasSuffix(c.Boundary, "*") {
			near = 2*len(strings.TrimSuffix(c.Boundary, "*")) - 1
		}
		if near > best || near == best && c.Micro > cost {
			best, cost = near, c.Micro
		}
	}
	return cost
}

// Model returns the price of a model. A model without one is never free.
func (p *Prices) Model(name string) (ModelPrice, bool) {
	if p == nil {
		return ModelPrice{}, false
	}
	m, ok := p.Models[name]
	return m, ok
}

// Cost is Most of tokens alone.
func (m ModelPrice) Cost(input, output int64) (micro int64, ok bool) {
	micro, err := m.Most(holdfast.ModelUse{Tokens: holdfast.Tokens{Input: input, Output: output}})
	return micro, err == nil
}

const perMillion = 1_000_000

// Measured is what so many tokens in all cost where nobody says how many of them
// came in: those that were counted before are taken for input, the rest for output.
func (m ModelPrice) Measured(counted, tokens int64) (micro int64, ok bool) {
	if tokens < 0 || counted < 0 {
		return 0, false
	}
	in := min(counted, tokens)
	return m.Spent(holdfast.ModelUse{Tokens: holdfast.Tokens{Input: in, Output: tokens - in}})
}

// ParseMoney reads an amount of dollars such as "$0.002" or "15" as millionths,
// exactly. It refuses what is negative, has more than six decimals or does not fit.
func ParseMoney(s string) (int64, error) {
	no := func(why string) (int64, error) {
		return 0, &holdfast.Error{Kind: holdfast.KindValue, Why: fmt.Sprintf("%q %s", s[:min(len(s), 64)], why), Hint: "such as $3 or $0.002"}
	}
	text := strings.TrimPrefix(s, "$")
	if strings.HasPrefix(text, "-") || strings.HasPrefix(s, "-") {
		return no("is negative")
	}
	whole, part, dotted := strings.Cut(text, ".")
	if whole == "" || dotted && part == "" || strings.Trim(whole+part, "0123456789") != "" {
		return no("is no amount of dollars")
	}
	if len(part) > 6 {
		return no("has more than six decimals")
	}
	n := uint64(0)
	for _, c := range whole + part + strings.Repeat("0", 6-len(part)) {
		hi, lo := bits.Mul64(n, 10)
		sum, carry := bits.Add64(lo, uint64(c-'0'), 0)
		if hi+carry > 0 || sum > math.MaxInt64 {
			return no("is more than can be counted")
		}
		n = sum
	}
	return int64(n), nil
}
