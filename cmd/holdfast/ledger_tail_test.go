package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/ledger"
)

// A tail of an agent has what those within it do, and a tail of one of those it alone.
func TestTailOfAnAgent(t *testing.T) {
	const hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	var records []ledger.Stored
	put := func(kind ledger.Kind, r interface {
		AppendJSON([]byte) ([]byte, error)
	}) {
		b, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, ledger.Stored{Kind: kind, Record: b})
	}
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	for _, who := range [][2]string{{"coder", ""}, {"coder/plan", "coder"}, {"coder/x", "coder"}, {"coder/plan", ""}, {"coder2", ""}} {
		b := ledger.Begin{ID: "i", TenantID: "local", Correlation: "c", Timestamp: now, Boundary: "egress/x", Caller: "a", Agent: who[0], Owner: who[1], ExactHash: hash, Key: hash, Policy: hash}
		put(ledger.KindEntry, b.Entry(0, now))
	}
	for _, e := range []struct{ name, subject, data string }{
		{"agent_paused", "coder/plan", `{}`}, {"agent_paused", "coder", `{}`}, {"subagent_first_seen", "coder/x", `{"owner":"coder"}`}, {"halted", "everything", `{"agent":7}`},
		{"review_proposed", "rv_1", `{"agent":"coder","asker":"coder/x","boundary":"egress/x"}`},
	} {
		put(ledger.KindEvent, &ledger.Event{ID: "e", TenantID: "local", Timestamp: now, Name: e.name, Who: "bob", Subject: e.subject, Data: json.RawMessage(e.data)})
	}
	for agent, want := range map[string][]int{"": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "coder": {0, 1, 2, 5, 6, 7, 9}, "coder/plan": {1, 3, 5}, "coder/x": {2, 7, 9}, "cod": nil} {
		for egress, most := range map[bool]int{false: 9, true: 9} {
			var got []int
			for i, s := range records {
				if (&tailing{agent: agent, events: true, egress: egress}).wants(s) {
					got = append(got, i)
				}
			}
			wanted := slices.DeleteFunc(slices.Clone(want), func(i int) bool { return egress && i > 4 && i != most })
			if !slices.Equal(got, wanted) {
				t.Errorf("%q, of egress %t: %v, not %v", agent, egress, got, wanted)
			}
		}
	}
}

// The status says what an agent has spent with those within it, before what each has.
func TestSpendLinesOfATree(t *testing.T) {
	rows := []spend.Sum{{Tenant: "local", Agent: "b/x", Owner: "b", Model: "m", Calls: 2, Micro: 70_000},
		{Tenant: "local", Agent: "a", Model: "m", Calls: 1, Micro: 50_000},
		{Tenant: "local", Agent: "b", Model: "m", Calls: 1, Micro: 10_000}, {Tenant: "acme", Agent: "b", Model: "m", Calls: 1, Micro: 10_000}}
	got := spendLines(&api.Spend{Today: rows, ThisMonth: rows})
	if len(got) != 6 || got[1] != "b and those within it: $0.08, 3 calls" || got[2] != "b/x on m: $0.07, 2 calls" {
		t.Errorf("%q", got)
	}
}
