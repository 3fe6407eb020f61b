package daemon

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/constitution"
	"github.com/holdfast-dev/holdfast/internal/budget"
)

// PricesConfig is what things cost (spec 001, layer 1). Like every line of the
// configuration it is part of the policy's hash.
type PricesConfig struct {
	Calls  []CallPriceConfig           `yaml:"calls" doc:"what each crossing of a boundary costs; its own name wins, else the longest pattern"`
	Models map[string]ModelPriceConfig `yaml:"models" doc:"model: what a million of its tokens cost; a model that is not here is refused, never free"`
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
	At     string `yaml:"-"`
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
		out.Models[name] = budget.ModelPrice{Input: int64(*m.Input), Output: int64(*m.Output)}
	}
	return out
}

func (k *checker) prices(c *Config) {
	seen := map[string]string{}
	for _, p := range c.Prices.Calls {
		if why := boundaryFault(p.Boundary); why != "" {
			k.fail(p.At, "such as mcp/github/* or exec/python3.11", "the boundary %q %s", clip(p.Boundary), why)
		}
		if first := seen[p.Boundary]; first != "" {
			k.fail(p.At, "keep one of the two", "the boundary %q has a price twice, first at %s", clip(p.Boundary), first)
		}
		seen[p.Boundary] = p.At
	}
	for _, name := range sortedKeys(c.Prices.Models) {
		if !plainName(name) {
			k.fail(c.Prices.Models[name].At, "", "%q is no name for a model", clip(name))
		}
	}
	for i := range c.Boundaries {
		k.priced(c, &c.Boundaries[i])
	}
}

func (k *checker) priced(c *Config, b *BoundaryConfig) {
	by := b.PricedBy
	if by == nil {
		return
	}
	if len(c.Prices.Models) == 0 {
		k.fail(by.At, "add models under prices", "no model has a price, so the boundary %q could never be crossed", clip(b.Boundary))
	}
	_, err := constitution.CompileName(by.Model, by.At)
	_, err2 := constitution.CompileAmount(by.Input, by.At)
	_, err3 := constitution.CompileAmount(by.Output, by.At)
	for _, e := range []struct {
		name string
		err  error
	}{{"model", err}, {"input_tokens", err2}, {"output_tokens", err3}} {
		if e.err != nil {
			why, hint := letter(e.err)
			k.fail(by.At, hint, "priced_by.%s: %s", e.name, why)
		}
	}
}
