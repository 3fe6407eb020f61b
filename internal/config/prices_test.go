package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// configured loads a configuration of that text.
func configured(t *testing.T, text string) (*Loaded, error) {
	t.Helper()
	p := filepath.Join(t.TempDir(), "holdfast.yaml")
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(p)
}

// pricesAbove are so many prices above 1, 2 and so on tokens.
func pricesAbove(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("{tokens: %d, input: $2, output: $2}", i+1))
	}
	return strings.Join(out, ", ")
}

// Spec 001, layer 1: a limit or a price that is none is an error with its line, of
// which nothing comes into force.
func Test001_Layer1_bad_limits_and_prices(t *testing.T) {
	const llm = "boundaries:\n- boundary: mcp/llm/ask\n  risk: LOW\n  priced_by: {model: args.model, input_tokens: payload_size, output_tokens: args.max_tokens}\n"
	for name, c := range map[string]struct{ text, where, why string }{
		"negative limit":     {"budgets:\n- {scope: chain, resource: money_micro, amount: -1}\n", ":3", "at least 0"},
		"overflowing limit":  {"budgets:\n- {scope: chain, resource: money_micro, amount: 9223372036854775808}\n", ":3", "below 2^63"},
		"fraction":           {"budgets:\n- {scope: chain, resource: money_micro, amount: 1.5}\n", ":3", "whole number"},
		"half written":       {"budgets:\n- {scope: chain, resource: money_mic", ":4", "not YAML"},
		"unknown answer":     {"budgets:\n- {scope: chain, resource: money_micro, amount: 1, exceed: explode}\n", ":3", "must be one of refuse"},
		"end of no chain":    {"budgets:\n- {scope: session, resource: money_micro, amount: 1, exceed: end_chain}\n", ":3", "scope chain"},
		"block without end":  {"budgets:\n- {scope: tenant, resource: money_micro, amount: 1, exceed: block_tenant}\n", ":3", "with a window"},
		"pause of everybody": {"budgets:\n- {scope: tenant, resource: money_micro, amount: 1, window: 24h, exceed: pause_agent}\n", ":3", "session and agent"},
		"negative price":     {"prices:\n  calls:\n  - {boundary: mcp/a/b, money: $-1}\n", ":4", "is negative"},
		"NaN":                {"prices:\n  calls:\n  - {boundary: mcp/a/b, money: .nan}\n", ":4", "no amount of dollars"},
		"seven decimals":     {"prices:\n  calls:\n  - {boundary: mcp/a/b, money: $0.0000001}\n", ":4", "six decimals"},
		"vast":               {"prices:\n  models:\n    m: {input: $9999999999999, output: $1}\n", ":4", "more than can be counted"},
		"half a price":       {"prices:\n  models:\n    m: {input: $1}\n", ":4", `"output" is missing`},
		"a factor of none":   {"prices:\n  models:\n    m: {input: $1, output: $1, times: {speed=fast: 0}}\n", ":4", "above 0"},
		"a negative factor":  {"prices:\n  models:\n    m: {input: $1, output: $1, times: {speed=fast: -2}}\n", ":4", "above 0"},
		"a vast factor":      {"prices:\n  models:\n    m: {input: $1, output: $1, times: {speed=fast: 1001}}\n", ":4", "at most 1000"},
		"a factor of money":  {"prices:\n  models:\n    m: {input: $1, output: $1, times: {speed=fast: $2}}\n", ":4", "number of times"},
		"no factor":          {"prices:\n  models:\n    m: {input: $1, output: $1, times: {speed=fast: .inf}}\n", ":4", "number of times"},
		"an odd term":        {"prices:\n  models:\n    m: {input: $1, output: $1, times: {'speed=': 2}}\n", ":4", "no term"},
		"a tool's version":   {"prices:\n  models:\n    m: {input: $1, output: $1, uses: {web_search_20250305: $0.01}}\n", ":4", "no name for a provider's tool"},
		"a negative use":     {"prices:\n  models:\n    m: {input: $1, output: $1, uses: {web_search: $-1}}\n", ":4", "is negative"},
		"tiers that fall":    {"prices:\n  models:\n    m:\n      input: $1\n      output: $1\n      above:\n      - {tokens: 200, input: $2, output: $2}\n      - {tokens: 200, input: $3, output: $3}\n", ":9", "does not follow one above 200"},
		"a negative tier":    {"prices:\n  models:\n    m:\n      input: $1\n      output: $1\n      above:\n      - {tokens: -5, input: $2, output: $2}\n", ":8", "tokens"},
		"a vast tier":        {"prices:\n  models:\n    m:\n      input: $1\n      output: $1\n      above:\n      - {tokens: 100000001, input: $2, output: $2}\n", ":8", "above 100000001 tokens"},
		"half a tier":        {"prices:\n  models:\n    m:\n      input: $1\n      output: $1\n      above:\n      - {tokens: 5, input: $2}\n", ":8", `"output" is missing`},
		"too many tiers":     {"prices:\n  models:\n    m:\n      input: $1\n      output: $1\n      above: [" + pricesAbove(9) + "]\n", ":5", "too many other prices"},
		"twice":              {"prices:\n  calls:\n  - {boundary: mcp/a/b, money: $1}\n  - {boundary: mcp/a/b, money: $2}\n", ":5", "twice, first at holdfast.yaml:4"},
		"no model priced":    {llm, ":5", "no model has a price"},
		"bad expression":     {strings.Replace(llm, "payload_size", "payload_sise", 1) + "prices: {models: {m: {input: $1, output: $2}}}\n", ":5", "payload_sise"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := configured(t, "version: 1\n"+c.text)
			if err == nil || !strings.Contains(err.Error(), "holdfast.yaml"+c.where) || !strings.Contains(err.Error(), c.why) {
				t.Fatalf("got %v, want %s at %s", err, c.why, c.where)
			}
		})
	}
	l, err := configured(t, "version: 1\n"+llm+"prices:\n  calls:\n  - {boundary: mcp/*, money: $0.002}\n  models:\n    m: {input: 3, output: $15}\n")
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := l.Policy.Prices.Model("m"); !ok || m != (budget.ModelPrice{Input: 3_000_000, Output: 15_000_000}) || l.Policy.Prices.Call("mcp/llm/ask") != 2_000 {
		t.Errorf("%+v", l.Policy.Prices)
	}
	if v := l.Policy.Prices.Version; len(v) != 12 {
		t.Errorf("the table is called %q", v)
	}
	cached, err := configured(t, "version: 1\nprices:\n  version: 2026-11\n  models:\n    m: {input: 3, output: $15, cache_read: $0.3, cache_write_long: $6}\n")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := cached.Policy.Prices.Model("m")
	if got, ok := m.Spent(holdfast.ModelUse{Tokens: holdfast.Tokens{Input: 1_000_000, CacheRead: 1_000_000, CacheWrite: 1_000_000, CacheWriteLong: 1_000_000, Output: 1_000_000}}); !ok || got != 3_000_000+300_000+6_000_000+6_000_000+15_000_000 {
		t.Errorf("they cost %d", got)
	}
	if v := cached.Policy.Prices.Version; !strings.HasPrefix(v, "2026-11-") || v == "2026-11-"+l.Policy.Prices.Version {
		t.Errorf("the table is called %q", v)
	}
	other, err := configured(t, "version: 1\nprices:\n  version: 2026-11\n  models:\n    m: {input: 3, output: $15, cache_read: $0.3, cache_write_long: $6, above: ["+pricesAbove(2)+"], uses: {web_search: $0.01}, times: {speed=fast: 6, service_tier=flex: 0.5}}\n")
	if err != nil {
		t.Fatal(err)
	}
	m, _ = other.Policy.Prices.Model("m")
	if got, ok := m.Spent(holdfast.ModelUse{Terms: []string{"speed=fast", "service_tier=flex"}, Uses: []holdfast.ToolUse{{Name: "web_search", N: 2}}, Tokens: holdfast.Tokens{Input: 1_000_000, CacheRead: 1}}); !ok || got != 2_000_000*3+6+20_000 {
		t.Errorf("they cost %d", got)
	}
	if v := other.Policy.Prices.Version; v == cached.Policy.Prices.Version || len(v) != len(cached.Policy.Prices.Version) {
		t.Errorf("the table is called %q, as the one without other prices", v)
	}
	dearer, err := configured(t, "version: 1\n"+llm+"prices:\n  calls:\n  - {boundary: mcp/*, money: $0.002}\n  models:\n    m: {input: 3, output: $16}\n")
	if err != nil || dearer.Hash == l.Hash {
		t.Errorf("another price is the same policy: %v", err)
	}
}

// Spec 001, layer 1: the budget table and the iteration table are what governs
// without a file, row by row, and another amount is no other consequence.
func Test001_Layer1_the_tables(t *testing.T) {
	l, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		scope  budget.Scope
		amount int64
		exceed budget.Exceed
	}
	got := map[row]bool{}
	for _, b := range l.Policy.Limits {
		if b.Resource == "money_micro" {
			got[row{b.Scope, b.Amount, b.Exceed}] = true
		}
	}
	for _, want := range []row{{budget.Chain, 5_000_000, budget.EndChain}, {budget.Session, 10_000_000, budget.PauseAgent}, {budget.Tenant, 50_000_000, budget.BlockTenant}} {
		if !got[want] {
			t.Errorf("no %+v among %v", want, got)
		}
	}
	for kind, n := range map[string]int64{"discovery": 3, "support": 5, "ops": 10, "code": 3, "growth": 5, "meta": 2, "finance": 3, "loop": 5} {
		if l.Policy.Kinds[kind].Iterations != n {
			t.Errorf("%s has %d iterations, not %d", kind, l.Policy.Kinds[kind].Iterations, n)
		}
	}
	if len(l.Policy.Kinds) != 8 {
		t.Errorf("%d kinds, not eight", len(l.Policy.Kinds))
	}
	own, err := configured(t, "version: 1\nbudgets:\n- {scope: tenant, resource: money_micro, amount: 1, window: 24h}\n- {scope: chain, resource: money_micro, amount: 2, exceed: refuse}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range own.Policy.Limits {
		if b.Resource == "money_micro" && (b.Amount == 1 && b.Exceed != budget.BlockTenant || b.Amount == 2 && b.Exceed != budget.Refuse) {
			t.Errorf("%+v", b)
		}
	}
}
