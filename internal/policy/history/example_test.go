package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
)

// At most 3 payments above 100 in 24 hours, over all sessions of a tenant, is one
// line.
func Example() {
	rules, err := constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(`
rules:
  - id: few-large-payments
    on: request
    boundary: mcp/bank/pay
    when: args.amount > 100 && past("mcp/bank/pay", "24h").where(args.amount > 100).count() >= 3
    message: three payments above 100 in a day are enough
`)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	h := history.New(history.MaxEntries)
	unready, _ := h.Use(now, rules.Pasts())
	for _, p := range unready {
		h.Ready(p.ID) // the ledger is empty
	}
	for i, amount := range []string{"150", "99.50", "200", "101", "120", "80", "130"} {
		now = now.Add(4 * time.Hour)
		facts := constitution.Facts{Boundary: "mcp/bank/pay", Now: now, Payload: map[string]any{"amount": json.Number(amount)},
			Who: holdfast.Identity{Tenant: "local", Session: fmt.Sprint("s", i)}}
		facts.Sights = rules.See(context.Background(), facts)
		ticket := h.Add(now, facts.Who.Tenant, fmt.Sprint("crossing ", i), facts.Sights)
		facts.History = ticket
		if found := rules.Judge(context.Background(), constitution.OnRequest, facts); len(found) > 0 {
			ticket.Drop()
			fmt.Println(amount, found[0].Message)
			continue
		}
		ticket.Confirm(now)
		fmt.Println(amount, "is paid")
	}
	// Output:
	// 150 is paid
	// 99.50 is paid
	// 200 is paid
	// 101 is paid
	// 120 three payments above 100 in a day are enough
	// 80 is paid
	// 130 three payments above 100 in a day are enough
}
