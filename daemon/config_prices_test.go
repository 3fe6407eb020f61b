package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/budget"
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
