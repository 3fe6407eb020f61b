package budget

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Money is read exactly, and what is not money is refused by name.
func TestParseMoney(t *testing.T) {
	for text, want := range map[string]int64{"$0.002": 2_000, "$3": 3_000_000, "15": 15_000_000, "0": 0, "$0.000001": 1, "9223372036854.775807": math.MaxInt64, "$007.10": 7_100_000} {
		if got, err := ParseMoney(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for text, why := range map[string]string{"-1": "negative", "$-1": "negative", "-$1": "negative", "0.0000001": "six decimals", "9223372036854.775808": "more than can be counted",
		"99999999999999999999999999": "more than can be counted", "NaN": "no amount", "inf": "no amount", "1e3": "no amount", "": "no amount", "$": "no amount", "1.": "no amount", ".5": "no amount", "0x10": "no amount", "1_000": "no amount", "$$1": "no amount", "1.2.3": "no amount", "１": "no amount"} {
		if got, err := ParseMoney(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %d, %v, want %s", text, got, err, why)
		}
	}
}

// A cost is exact, is rounded up once, and never wraps.
func TestModelPriceCost(t *testing.T) {
	m := ModelPrice{Input: 3_000_000, Output: 15_000_000}
	for _, c := range []struct{ in, out, want int64 }{{1_000_000, 0, 3_000_000}, {0, 1_000_000, 15_000_000}, {1000, 500, 10_500}, {0, 0, 0}, {1, 0, 3}} {
		if got, ok := m.Cost(c.in, c.out); !ok || got != c.want {
			t.Errorf("%+v: %d %v", c, got, ok)
		}
	}
	if got, ok := (ModelPrice{Input: 1, Output: 1}).Cost(1, 1); !ok || got != 1 {
		t.Errorf("less than a millionth costs %d, %v", got, ok)
	}
	for _, c := range []struct {
		m       ModelPrice
		in, out int64
	}{{m, math.MaxInt64, 0}, {m, math.MaxInt64, math.MaxInt64}, {ModelPrice{Input: math.MaxInt64, Output: math.MaxInt64}, math.MaxInt64, math.MaxInt64}, {m, -1, 0}, {ModelPrice{Input: -1}, 1, 1}} {
		if got, ok := c.m.Cost(c.in, c.out); ok {
			t.Errorf("%+v costs %d", c, got)
		}
	}
	if got, ok := m.Measured(1000, 1500); !ok || got != 10_500 {
		t.Errorf("1500 tokens, of which 1000 came in: %d", got)
	}
	if got, _ := m.Measured(1000, 400); got != 1_200 {
		t.Errorf("fewer than were counted: %d", got)
	}
}

// What a cache has to do with has prices of its own. One that nobody stated is never
// less than what any provider asks.
func TestSpent(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	tokens := holdfast.Tokens{Input: 1_000_000, CacheRead: 2_000_000, CacheWrite: 3_000_000, CacheWriteLong: 4_000_000, Output: 5_000_000}
	for _, c := range []struct {
		m    ModelPrice
		want int64
	}{
		{ModelPrice{Input: 10, Output: 100, Cached: &CachedPrice{Read: n(1), Write: n(12), WriteLong: n(20)}}, 10 + 2 + 36 + 80 + 500},
		{ModelPrice{Input: 10, Output: 100}, 10 + 20 + 60 + 80 + 500},
		{ModelPrice{Input: 10, Output: 100, Cached: &CachedPrice{Read: n(0)}}, 10 + 60 + 80 + 500},
		{ModelPrice{}, 0},
	} {
		if got, ok := c.m.Spent(holdfast.ModelUse{Tokens: tokens}); !ok || got != c.want {
			t.Errorf("%+v: %d %v, not %d", c.m, got, ok, c.want)
		}
	}
	for _, c := range []struct {
		m ModelPrice
		t holdfast.Tokens
	}{
		{ModelPrice{Input: 1}, holdfast.Tokens{CacheRead: -1}},
		{ModelPrice{Cached: &CachedPrice{Read: n(-1)}}, holdfast.Tokens{CacheRead: 1}},
		{ModelPrice{Input: math.MaxInt64}, holdfast.Tokens{CacheWrite: math.MaxInt64, CacheWriteLong: math.MaxInt64}},
	} {
		if got, ok := c.m.Spent(holdfast.ModelUse{Tokens: c.t}); ok {
			t.Errorf("%+v of %+v costs %d", c.t, c.m, got)
		}
	}
}

// The longest pattern that matches decides; what none matches is free.
func TestCallPrice(t *testing.T) {
	p := &Prices{Calls: []CallPrice{{"mcp/*", 1}, {"mcp/bank/*", 20}, {"mcp/bank/pay", 300}}}
	for name, want := range map[string]int64{"mcp/x/y": 1, "mcp/bank/see": 20, "mcp/bank/pay": 300, "exec/sh": 0} {
		if got := p.Call(name); got != want {
			t.Errorf("%s costs %d, not %d", name, got, want)
		}
	}
	// A name is nearer than a pattern of as many letters, in whatever order they
	// stand; of two prices of one name the higher counts.
	for _, turned := range []bool{false, true} {
		p := &Prices{Calls: []CallPrice{{"mcp/bank/pa*", 0}, {"mcp/bank/pay", 300}, {"mcp/bank/pay*", 7}, {"*", 5}, {"exec/sh", 8}, {"exec/sh", 9}}}
		if turned {
			slices.Reverse(p.Calls)
		}
		for name, want := range map[string]int64{"mcp/bank/pay": 300, "mcp/bank/payee": 7, "mcp/bank/pat": 0, "x": 5, "exec/sh": 9} {
			if got := p.Call(name); got != want {
				t.Errorf("turned %v: %s costs %d, not %d", turned, name, got, want)
			}
		}
	}
	if _, ok := (*Prices)(nil).Model("m"); ok {
		t.Error("a model without a table has a price")
	}
}
