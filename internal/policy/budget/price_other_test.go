package budget

import (
	"math"
	"math/rand"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// elsewise is a price with all that can be: per token 10 in, 100 out, above 1000 tokens
// 20 and 150.
func elsewise() ModelPrice {
	read, write := int64(1_000_000), int64(12_000_000)
	return ModelPrice{Input: 10_000_000, Output: 100_000_000, Cached: &CachedPrice{Read: &read, Write: &write}, Other: &OtherPrices{
		Above: []AbovePrice{{1000, ModelPrice{Input: 20_000_000, Output: 150_000_000}}, {5000, ModelPrice{Input: 40_000_000, Output: 160_000_000}}},
		Uses:  map[string]int64{"web_search": 10_000, "web_fetch": 0},
		Times: map[string]int64{"service_tier=priority": 2_000_000, "service_tier=flex": 500_000, "speed=fast": 6_000_000, "inference_geo=us": 1_100_000},
	}}
}

// What a call costs beside its tokens is what the answer tells, and what nobody priced
// costs as the dearest of its kind.
func TestOtherPrices(t *testing.T) {
	type T = holdfast.Tokens
	type use = []holdfast.ToolUse
	m := elsewise()
	for name, c := range map[string]struct {
		u    holdfast.ModelUse
		want int64
	}{
		"ordinary":                      {holdfast.ModelUse{Tokens: T{Input: 10, Output: 1}}, 200},
		"at the edge":                   {holdfast.ModelUse{Tokens: T{Input: 1000}}, 10_000},
		"above it":                      {holdfast.ModelUse{Tokens: T{Input: 1001, Output: 1}}, 20_020 + 150},
		"above it by what was cached":   {holdfast.ModelUse{Tokens: T{CacheRead: 1000, Input: 1, Output: 1}}, 20_020 + 150},
		"output is not above":           {holdfast.ModelUse{Tokens: T{Input: 1, Output: 2000}}, 200_010},
		"far above":                     {holdfast.ModelUse{Tokens: T{CacheWrite: 5001}}, 5001 * 80},
		"dearer":                        {holdfast.ModelUse{Terms: []string{"service_tier=priority"}, Tokens: T{Input: 10}}, 200},
		"cheaper":                       {holdfast.ModelUse{Terms: []string{"service_tier=flex"}, Tokens: T{Input: 10}}, 50},
		"both":                          {holdfast.ModelUse{Terms: []string{"speed=fast", "inference_geo=us"}, Tokens: T{Input: 10}}, 660},
		"a tier that nobody priced":     {holdfast.ModelUse{Terms: []string{"service_tier=scale"}, Tokens: T{Input: 10}}, 200},
		"a tier that nobody tells":      {holdfast.ModelUse{Terms: []string{"service_tier="}, Tokens: T{Input: 10}}, 200},
		"a cheaper one nobody priced":   {holdfast.ModelUse{Terms: []string{"service_tier=batch"}, Tokens: T{Input: 10}}, 100},
		"a term that nobody priced":     {holdfast.ModelUse{Terms: []string{"audio"}, Tokens: T{Input: 10}}, 100},
		"searches":                      {holdfast.ModelUse{Uses: use{{Name: "web_search", N: 3}, {Name: "web_fetch", N: 7}}, Tokens: T{Input: 10}}, 30_100},
		"searches at another tier":      {holdfast.ModelUse{Terms: []string{"service_tier=priority"}, Uses: use{{Name: "web_search", N: 1}}, Tokens: T{Input: 10}}, 10_200},
		"a tool that nobody priced":     {holdfast.ModelUse{Uses: use{{Name: "code_execution", N: 2}}}, 20_000},
		"a free tool without any bound": {holdfast.ModelUse{Uses: use{{Name: "web_fetch", N: -1}}}, 0},
	} {
		if got, ok := m.Spent(c.u); !ok || got != c.want {
			t.Errorf("%s: %d %v, not %d", name, got, ok, c.want)
		}
	}
	for name, u := range map[string]holdfast.ModelUse{
		"less than no search": {Uses: use{{Name: "web_search", N: -1}}},
		"searches overflow":   {Uses: use{{Name: "web_search", N: math.MaxInt64}}},
		"terms overflow":      {Terms: []string{"speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast", "speed=fast"}, Tokens: T{Input: 1 << 40}},
	} {
		if got, ok := m.Spent(u); ok {
			t.Errorf("%s costs %d", name, got)
		}
	}
}

// What may be asked is reserved at its dearest, or refused by name.
func TestMostIsTheDearest(t *testing.T) {
	type T = holdfast.Tokens
	type use = []holdfast.ToolUse
	for name, c := range map[string]struct {
		u    holdfast.ModelUse
		want int64
		kind holdfast.Kind
	}{
		"ordinary":                    {u: holdfast.ModelUse{Tokens: T{Input: 10, Output: 1}}, want: 200},
		"what may be written":         {u: holdfast.ModelUse{Tokens: T{CacheWrite: 10}}, want: 120},
		"above":                       {u: holdfast.ModelUse{Tokens: T{Input: 1001}}, want: 20_020},
		"a tier is asked for":         {u: holdfast.ModelUse{Terms: []string{"service_tier=priority"}, Tokens: T{Input: 10}}, want: 200},
		"the provider chooses it":     {u: holdfast.ModelUse{Terms: []string{"service_tier="}, Tokens: T{Input: 10}}, want: 200},
		"a cheaper one is asked for":  {u: holdfast.ModelUse{Terms: []string{"service_tier=flex"}, Tokens: T{Input: 10}}, want: 100},
		"searches":                    {u: holdfast.ModelUse{Uses: use{{Name: "web_search", N: 5}}}, want: 50_000},
		"a free tool without a bound": {u: holdfast.ModelUse{Uses: use{{Name: "web_fetch", N: -1}}}},
		"searches without a bound":    {u: holdfast.ModelUse{Uses: use{{Name: "web_search", N: -1}}}, kind: holdfast.KindBudgetExceeded},
		"a tool without a price":      {u: holdfast.ModelUse{Uses: use{{Name: "code_execution", N: 1}}}, kind: holdfast.KindBudgetNotFound},
		"a term without a price":      {u: holdfast.ModelUse{Terms: []string{"service_tier=scale"}}, kind: holdfast.KindBudgetNotFound},
		"too much to count":           {u: holdfast.ModelUse{Tokens: T{Input: math.MaxInt64}}, kind: holdfast.KindOverflow},
		"less than nothing":           {u: holdfast.ModelUse{Tokens: T{Input: -1}}, kind: holdfast.KindOverflow},
	} {
		if got, err := elsewise().Most(c.u); got != c.want || holdfast.KindOf(err) != c.kind {
			t.Errorf("%s: %d, %v, not %d", name, got, err, c.want)
		}
	}
	plain := ModelPrice{Input: 1_000_000}
	for _, u := range []holdfast.ModelUse{{Terms: []string{"speed=fast"}}, {Uses: use{{Name: "web_search", N: 1}}}} {
		if _, err := plain.Most(u); holdfast.KindOf(err) != holdfast.KindBudgetNotFound {
			t.Errorf("%+v has a price in a table without one: %v", u, err)
		}
	}
	if got, err := plain.Most(holdfast.ModelUse{Terms: []string{"service_tier="}, Tokens: T{Input: 7}}); err != nil || got != 7 {
		t.Errorf("%d, %v", got, err)
	}
}

// Whatever a call takes of what was reserved, in whatever kinds of token and under
// whichever tier the provider chooses, costs no more than was reserved, whatever the
// table says: also one whose cache or whose long prompts are cheaper.
func TestNothingCostsMoreThanTheMost(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	price := func() int64 { return r.Int63n(50_000_000) }
	maybe := func() *int64 {
		if p := price(); r.Intn(2) == 0 {
			return &p
		}
		return nil
	}
	some := func() ModelPrice {
		m := ModelPrice{Input: price(), Output: price()}
		if r.Intn(2) == 0 {
			m.Cached = &CachedPrice{Read: maybe(), Write: maybe(), WriteLong: maybe()}
		}
		return m
	}
	for i := range 3000 {
		m := some()
		m.Other = &OtherPrices{Uses: map[string]int64{"web_search": price()}, Times: map[string]int64{"service_tier=priority": 1 + price(), "service_tier=flex": 1 + price()/100, "speed=fast": 1 + price()}}
		over := int64(0)
		for range r.Intn(4) {
			over += 1 + r.Int63n(3000)
			m.Other.Above = append(m.Other.Above, AbovePrice{over, some()})
		}
		in, out, kind := r.Int63n(10_000), r.Int63n(3000), r.Intn(3)
		most := holdfast.ModelUse{Terms: []string{"service_tier=", "speed=fast"}, Uses: []holdfast.ToolUse{{Name: "web_search", N: 4}}, Tokens: holdfast.Tokens{Output: out}}
		*[]*int64{&most.Input, &most.CacheWrite, &most.CacheWriteLong}[kind] = in
		reserved, err := m.Most(most)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			took := holdfast.ModelUse{Uses: []holdfast.ToolUse{{Name: "web_search", N: r.Int63n(5)}}, Tokens: holdfast.Tokens{Output: r.Int63n(out + 1)}}
			left := r.Int63n(in + 1)
			for _, n := range []*int64{&took.Input, &took.CacheRead, &took.CacheWrite, &took.CacheWriteLong}[:2+kind] {
				*n = r.Int63n(left + 1)
				left -= *n
			}
			took.Input += left
			took.Terms = [][]string{nil, {"service_tier=flex"}, {"service_tier=priority", "speed=fast"}, {"service_tier=unheard"}, {"service_tier=", "speed=fast"}}[r.Intn(5)]
			if got, ok := m.Spent(took); !ok || got > reserved {
				t.Fatalf("%d: %+v costs %d, %v, and %+v reserved %d", i, took, got, ok, most, reserved)
			}
		}
	}
}
