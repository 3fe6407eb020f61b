package config

import (
	"errors"
	"strings"
	"testing"
)

// Where prices or budgets count tokens or money, a row through which models are asked
// uncounted is refused at its line, unless it says that it is meant; then, and where
// nothing counts, it is named among what is weakened, and in each of its records.
func TestUnmeteredRowsAreRefusedWhereSomethingCounts(t *testing.T) {
	const v, tokens, money = "version: 1\n", "budgets: [{scope: agent, resource: llm_tokens, amount: 9, match: bob}]\n", "budgets: [{scope: intent, resource: money_micro, amount: 9, boundary: 'egress/*'}]\n"
	const prices, elsewhere = "prices: {models: {m: {input: $1, output: $2}}}\n", "budgets: [{scope: agent, resource: llm_tokens, amount: 9, boundary: egress/b.example.com}, {scope: agent, resource: http_requests, amount: 9}]\n"
	for name, c := range map[string]struct{ counts, row, want string }{
		"opaque, tokens":                {tokens, "a.example.com: {type: llm, inspect: opaque}", "is an opaque tunnel to models: nobody could count there what the budget at holdfast.yaml:2 counts"},
		"opaque, money":                 {money, "a.example.com: {type: llm, inspect: opaque}", "what the budget at holdfast.yaml:2 counts"},
		"opaque, prices":                {prices, "a.example.com: {type: llm, inspect: opaque}", "what prices: models have a price for"},
		"opaque, budgets elsewhere":     {elsewhere, "a.example.com: {type: llm, inspect: opaque}", ""},
		"opaque, nothing counts":        {"", "a.example.com: {type: llm, inspect: opaque}", ""},
		"opaque and meant":              {tokens, "a.example.com: {type: llm, inspect: opaque, models: {unmetered: allow}}", ""},
		"a known host":                  {tokens, "api.anthropic.com: {}", "api.anthropic.com is a host of models, and its row is not of type llm"},
		"a known host, opaque":          {tokens, "api.openai.com: {inspect: opaque}", "is an opaque tunnel to models"},
		"a known host, nothing counts":  {"", "api.openai.com: {}", ""},
		"a known host and meant":        {prices, "api.openai.com: {models: {unmetered: allow}}", ""},
		"a star over known hosts":       {prices, "'*.openai.com': {}", ""},
		"a WebSocket":                   {money, "api.openai.com: {type: llm, websocket: true}", "permits WebSocket"},
		"a WebSocket and meant":         {money, "api.openai.com: {type: llm, websocket: true, models: {unmetered: allow}}", ""},
		"meant, and no host of models":  {"", "a.example.com: {models: {unmetered: allow}}", "is no host of models"},
		"refused, as without the words": {tokens, "api.openai.com: {models: {unmetered: refuse}}", "not of type llm"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := load(t, v+c.counts+"egress:\n  domains:\n    "+c.row+"\n")
			if c.want != "" {
				var ps Problems
				if !errors.As(err, &ps) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(ps[0].Where, "holdfast.yaml:") || ps[0].Hint == "" {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Join(l.Policy.Weakened, "\n")
			if own := l.Policy.Contracts[len(l.Policy.Contracts)-1]; !strings.Contains(said, "no budget of tokens or money holds there") || !strings.Contains(said, own.Weakened) || own.Weakened == "" {
				t.Errorf("said %q, the contract %q", said, own.Weakened)
			}
		})
	}
}
