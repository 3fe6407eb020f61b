package console

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// The page of agents says what is left of budgets, with a bar each, the tightest
// first; what is unknown has none. A session's name is text there.
func TestWhatIsLeftOfBudgetsIsShown(t *testing.T) {
	w := newWorld(t)
	p := *w.k.Policy()
	p.Version = strings.Repeat("2", 64)
	p.Prices = &budget.Prices{Version: "v", Models: map[string]budget.ModelPrice{"m": {Input: 1_000_000_000, Output: 1_000_000_000}}}
	p.Limits = append(p.Limits, budget.Limit{Scope: budget.Session, Resource: holdfast.MoneyMicro, Amount: 4_000_000, Source: "test"},
		budget.Limit{Scope: budget.Tenant, Resource: holdfast.MoneyMicro, Amount: 100_000_000, Window: 24 * time.Hour, Source: "test"})
	if err := w.k.SetPolicy(&p, "a test"); err != nil {
		t.Fatal(err)
	}
	b := w.signedIn()
	b.get("/agents").wants(200).lacks("What is left")
	w.site.c.Budgets = func(tx kernel.Tx, now time.Time) (survey.Standings, error) {
		return survey.Read(tx, w.k.Policy(), survey.Ask{Live: true}, now)
	}
	w.signedIn().get("/agents").wants(200).lacks("What is left") // nobody drew on any
	w.spends("alice", "", "m", holdfast.Tokens{Input: 1000, Output: 1000})
	b.get("/agents").wants(200, `<section aria-label="Budgets">`, `session s1 of alice <span class="meta">$2.00 of $4.00 left, does not reset</span>`,
		`aria-label="Taken of the budget of session s1 of alice">50.0 %</meter>`, `tenant local <span class="meta">$98.00 of $100.00 left, until `, `value="2.0"`)
	b.inOrder("session s1 of alice", "tenant local")
	one := int64(1)
	w.site.c.Budgets = func(kernel.Tx, time.Time) (survey.Standings, error) {
		s := survey.Standings{More: 3, Rows: []survey.Standing{{Tenant: "acme", Scope: budget.Chain, Of: "<b>",
			Resource: holdfast.LLMTokens, Limit: 5, Unknown: "the counter is damaged"},
			{Tenant: holdfast.Local, Scope: budget.Chain, Of: "c", Resource: holdfast.LLMTokens, Limit: 5, Used: &one, Reserved: &one, Left: &one}}}
		for range maxBudgets {
			s.Rows = append(s.Rows, s.Rows[1])
		}
		return s, nil
	}
	b.get("/agents").wants(200, `chain &lt;b&gt; <span class="meta">of acme</span> <span class="meta">llm_tokens: unknown, the counter is damaged`, "1 llm_tokens of 5 llm_tokens left, 1 llm_tokens reserved", "5 more: <code>holdfast budget</code>")
	if n := strings.Count(b.body, "<meter"); n != maxBudgets-1 {
		t.Errorf("%d bars", n)
	}
}
