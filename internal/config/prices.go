package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// PricesConfig is what things cost (spec 001, layer 1). Like every line of the
// configuration it is part of the policy's hash.
type PricesConfig struct {
	Version string                      `yaml:"version" doc:"what you call this table, such as 2026-11; each charge is recorded with it and with a hash of the models' prices"`
	Calls   []CallPriceConfig           `yaml:"calls" doc:"what each crossing of a boundary costs; its own name wins, else the longest pattern"`
	Models  map[string]ModelPriceConfig `yaml:"models" doc:"model: what a million of its tokens cost; a model that is not here is refused, never free"`
}

// CallPriceConfig is the price of a crossing.
type CallPriceConfig struct {
	Boundary string `yaml:"boundary" need:"yes" doc:"boundary or pattern"`
	Money    *Money `yaml:"money" need:"yes" doc:"dollars, such as $0.002; at most six decimals"`
	At       string `yaml:"-"`
}

// ModelPriceConfig is the price of a model's tokens.
type ModelPriceConfig struct {
	Input  *Money `yaml:"input" need:"yes" doc:"dollars for a million tokens that go in"`
	Output *Money `yaml:"output" need:"yes" doc:"dollars for a million tokens that come out"`
	// What a provider keeps is charged otherwise.
	CacheRead      *Money `yaml:"cache_read" doc:"dollars for a million tokens that are read from the provider's cache; input if absent"`
	CacheWrite     *Money `yaml:"cache_write" doc:"dollars for a million tokens that are put there for minutes; twice input if absent"`
	CacheWriteLong *Money `yaml:"cache_write_long" doc:"dollars for a million tokens that are put there for an hour; twice input if absent"`
	// What a call costs under other terms.
	Above []AbovePriceConfig `yaml:"above" doc:"what all tokens of a call cost whose input is more than so many, by rising tokens; at most 8"`
	Uses  map[string]Money   `yaml:"uses" doc:"tool that the provider runs itself, such as web_search: dollars for each use; a tool that is not here is refused"`
	Times map[string]Factor  `yaml:"times" doc:"term, such as service_tier=priority, speed=fast or inference_geo=us: how many times the tokens' price is charged under it; a term that is not here is refused"`
	At    string             `yaml:"-"`
}

// AbovePriceConfig is the price of the tokens of a call with much input.
type AbovePriceConfig struct {
	Tokens         int64  `yaml:"tokens" need:"yes" min:"1" doc:"a call has this price whose input, cached or not, is more than this"`
	Input          *Money `yaml:"input" need:"yes" doc:"as that of the model"`
	Output         *Money `yaml:"output" need:"yes" doc:"as that of the model"`
	CacheRead      *Money `yaml:"cache_read" doc:"as that of the model; the input above if absent"`
	CacheWrite     *Money `yaml:"cache_write" doc:"as that of the model; twice the input above if absent"`
	CacheWriteLong *Money `yaml:"cache_write_long" doc:"as that of the model; twice the input above if absent"`
	At             string `yaml:"-"`
}

// Factor is how many times a price, in millionths.
type Factor int64

// maxFactor is the largest Factor.
const maxFactor = 1000 * 1_000_000

// UnmarshalText reads "1.1" or "6": above 0, at most 1000, with six decimals at most.
func (f *Factor) UnmarshalText(b []byte) error {
	n, err := budget.ParseMoney(string(b))
	if err != nil || len(b) > 0 && b[0] == '$' || n == 0 || n > maxFactor {
		return &holdfast.Error{Kind: holdfast.KindValue, Why: fmt.Sprintf(
			"%q is no number of times above 0 and at most 1000", excerpt.Word(string(b)),
		), Hint: "such as 2 or 1.1"}
	}
	*f = Factor(n)
	return nil
}

// PricedConfig is a contract's priced_by.
type PricedConfig struct {
	Model  string `yaml:"model" need:"yes" doc:"CEL: the model's name, such as args.model"`
	Input  string `yaml:"input_tokens" need:"yes" doc:"CEL: the tokens that go in, a whole number, such as payload_size"`
	Output string `yaml:"output_tokens" need:"yes" doc:"CEL: the most that come out, such as args.max_tokens"`
	At     string `yaml:"-"`
}

// Money is an amount in millionths of a dollar, written in dollars.
type Money int64

// UnmarshalText reads "$0.002" or "15".
func (m *Money) UnmarshalText(b []byte) error {
	n, err := budget.ParseMoney(string(b))
	*m = Money(n)
	return err
}

// MarshalText writes what UnmarshalText reads.
func (m Money) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "$%d.%06d", int64(m)/1_000_000, int64(m)%1_000_000), nil
}

func (p *PricesConfig) table() *budget.Prices {
	out := &budget.Prices{Models: map[string]budget.ModelPrice{}}
	for _, c := range p.Calls {
		out.Calls = append(out.Calls, budget.CallPrice{Boundary: c.Boundary, Micro: int64(*c.Money)})
	}
	for name, m := range p.Models {
		out.Models[name] = m.price()
	}
	if len(out.Models) > 0 {
		out.Version = p.named()
	}
	return out
}

func (m ModelPriceConfig) price() budget.ModelPrice {
	out := tokenPrice(m.Input, m.Output, m.CacheRead, m.CacheWrite, m.CacheWriteLong)
	if len(m.Above)+len(m.Uses)+len(m.Times) == 0 {
		return out
	}
	out.Other = &budget.OtherPrices{Uses: map[string]int64{}, Times: map[string]int64{}}
	for _, a := range m.Above {
		out.Other.Above = append(out.Other.Above, budget.AbovePrice{Over: a.Tokens, Price: tokenPrice(a.Input, a.Output, a.CacheRead, a.CacheWrite, a.CacheWriteLong)})
	}
	for tool, price := range m.Uses {
		out.Other.Uses[tool] = int64(price)
	}
	for term, f := range m.Times {
		out.Other.Times[term] = int64(f)
	}
	return out
}

func tokenPrice(input, output, read, write, long *Money) budget.ModelPrice {
	out := budget.ModelPrice{Input: int64(*input), Output: int64(*output)}
	if read != nil || write != nil || long != nil {
		out.Cached = &budget.CachedPrice{Read: (*int64)(read), Write: (*int64)(write), WriteLong: (*int64)(long)}
	}
	return out
}

// named is the version of the models' prices as records have it: what somebody
// calls them, and a hash, so that two tables are never taken for one.
func (p *PricesConfig) named() string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		m := p.Models[name]
		fmt.Fprintf(sum, "%q", name)
		hashPrices(sum, m.Input, m.Output, m.CacheRead, m.CacheWrite, m.CacheWriteLong)
		for _, a := range m.Above {
			fmt.Fprintf(sum, " above %d", a.Tokens)
			hashPrices(sum, a.Input, a.Output, a.CacheRead, a.CacheWrite, a.CacheWriteLong)
		}
		for _, tool := range slices.Sorted(maps.Keys(m.Uses)) {
			fmt.Fprintf(sum, " use %q %d", tool, m.Uses[tool])
		}
		for _, term := range slices.Sorted(maps.Keys(m.Times)) {
			fmt.Fprintf(sum, " times %q %d", term, m.Times[term])
		}
	}
	hash := hex.EncodeToString(sum.Sum(nil)[:6])
	if p.Version == "" {
		return hash
	}
	return p.Version + "-" + hash
}

func hashPrices(sum io.Writer, prices ...*Money) {
	for _, price := range prices {
		if price == nil {
			fmt.Fprint(sum, " -")
			continue
		}
		fmt.Fprintf(sum, " %d", *price)
	}
}

// maxPriceVersion bounds the name of a table of prices, in bytes.
const maxPriceVersion = 64

func (k *checker) prices(c *Config) {
	if v := c.Prices.Version; v != "" && (!plainName(v) || len(v) > maxPriceVersion) {
		k.fail(k.at("prices.version"), "such as 2026-11", "%q is no name for a table of prices", excerpt.Word(v))
	}
	seen := map[string]string{}
	for _, p := range c.Prices.Calls {
		if why := boundaryFault(p.Boundary); why != "" {
			k.fail(p.At, "such as mcp/github/* or exec/python3.11", "the boundary %q %s", excerpt.Word(p.Boundary), why)
		}
		if first := seen[p.Boundary]; first != "" {
			k.fail(p.At, "keep one of the two", "the boundary %q has a price twice, first at %s", excerpt.Word(
				p.Boundary,
			), first)
		}
		seen[p.Boundary] = p.At
	}
	for _, name := range slices.Sorted(maps.Keys(c.Prices.Models)) {
		if !plainName(name) {
			k.fail(c.Prices.Models[name].At, "", "%q is no name for a model", excerpt.Word(name))
		}
		k.otherPrices(c.Prices.Models[name])
	}
	for i := range c.Boundaries {
		k.priced(c, &c.Boundaries[i])
	}
}

// maxAbove and maxTerms bound what a model's other prices are, by kind.
const maxAbove, maxTerms = 8, 64

// otherPrices holds what a model costs under other terms to its bounds.
func (k *checker) otherPrices(m ModelPriceConfig) {
	if len(m.Above) > maxAbove || len(m.Uses) > maxTerms || len(m.Times) > maxTerms {
		k.fail(m.At, fmt.Sprintf("at most %d above, %d uses and %d times", maxAbove, maxTerms, maxTerms), "the model has too many other prices")
	}
	over := int64(0)
	for _, a := range m.Above {
		if a.Tokens <= over || a.Tokens > domain.MostTokens {
			k.fail(a.At, fmt.Sprintf("by rising tokens, at most %d", domain.MostTokens), "a price above %d tokens does not follow one above %d", a.Tokens, over)
		}
		over = a.Tokens
	}
	for _, tool := range slices.Sorted(maps.Keys(m.Uses)) {
		if !serverName().MatchString(tool) || dialect.ToolOf(tool) != tool {
			k.fail(m.At, "without a version, such as web_search", "%q is no name for a provider's tool",
				excerpt.Word(tool))
		}
	}
	for _, term := range slices.Sorted(maps.Keys(m.Times)) {
		name, word, named := strings.Cut(term, "=")
		if !serverName().MatchString(name) || named && !serverName().MatchString(word) {
			k.fail(m.At, "such as service_tier=priority", "%q is no term of a price", excerpt.Word(term))
		}
	}
}

func (k *checker) priced(c *Config, b *BoundaryConfig) {
	by := b.PricedBy
	if by == nil {
		return
	}
	if len(c.Prices.Models) == 0 {
		k.fail(by.At, "add models under prices", "no model has a price, so the boundary %q could never be crossed",
			excerpt.Word(b.Boundary))
	}
	_, err := constitution.CompileName(by.Model, by.At)
	_, err2 := constitution.CompileAmount(by.Input, by.At)
	_, err3 := constitution.CompileAmount(by.Output, by.At)
	for _, e := range []struct {
		name string
		err  error
	}{{"model", err}, {"input_tokens", err2}, {"output_tokens", err3}} {
		if e.err != nil {
			why, hint := usage.Explain(e.err)
			k.fail(by.At, hint, "priced_by.%s: %s", e.name, why)
		}
	}
}
