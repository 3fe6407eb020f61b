package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// What does not fit the lines of a status is counted and summed; whose it is stands
// where it is not this machine's own tenant.
func TestSpendLines(t *testing.T) {
	s := &api.Spend{}
	for i := range 8 {
		s.Today = append(s.Today, spend.Sum{Tenant: []string{"local", "acme"}[i%2], Agent: fmt.Sprint("a", i),
			Model: "m", Calls: 1, Micro: int64(8-i) * 10_000})
	}
	s.ThisMonth = s.Today
	want := []string{"on models: $0.36 today, $0.36 this month", "a0 on m: $0.08, 1 call", "a1 of acme on m: $0.07, 1 call", "a2 on m: $0.06, 1 call",
		"a3 of acme on m: $0.05, 1 call", "a4 on m: $0.04, 1 call", "3 more, $0.06 together: `holdfast status --json`"}
	if got := spendLines(s); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	s.Today = s.Today[:5]
	if got := spendLines(s); len(got) != 6 {
		t.Errorf("%q", got)
	}
}
