package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// jumps are a clock's: an hour back, 25 hours ahead, and the same again and again
// in any order, with hours that pass as they should between them.
func jumps(seed uint64) []time.Duration {
	out := []time.Duration{-time.Hour, 25 * time.Hour, -time.Hour, -25 * time.Hour, 25 * time.Hour, 25 * time.Hour, -25 * time.Hour}
	r := rand.New(rand.NewPCG(seed, 8))
	for range 12 {
		out = append(out, []time.Duration{-time.Hour, 25 * time.Hour, -25 * time.Hour, time.Hour, 5 * time.Hour}[r.IntN(5)])
	}
	return out
}

// However the clock jumps, no closed window of 24 hours of the ledger's own time
// has more crossings than the rule allows, and the rule goes on to allow what it
// does: it is asked after each jump more often than it allows.
func TestPast_clock_jumps_never_more_than_the_limit(t *testing.T) {
	const limit = 3
	rule := fmt.Sprintf(`
rules:
  - {id: few, on: request, boundary: test/low, when: "past('test/low', '24h').count() >= %d", message: enough}
`, limit)
	for seed := range uint64(testrepeat.Times(3, 1)) {
		w := newPast(t, rule)
		allowed := w.passed(limit+2, `{}`)
		for _, by := range jumps(seed) {
			w.advance(by)
			allowed += w.passed(1, `{}`) // it may find that the ledger is to be read further back
			w.readHistory()
			allowed += w.passed(limit+1, `{}`)
		}
		var at []time.Time
		for _, b := range w.begins() {
			at = append(at, b.Timestamp)
		}
		if len(at) != allowed || allowed < 2*limit {
			t.Fatalf("%d were allowed, %d began", allowed, len(at))
		}
		for i := limit; i < len(at); i++ {
			if in := at[i].Sub(at[i-limit]); in <= 24*time.Hour {
				t.Errorf("seed %d: %d within %s, up to %s", seed, limit+1, in, at[i])
			}
		}
	}
}

// However the clock jumps, no day's window takes more than its budget, as counted
// from the ledger, and one with no window is never filled again.
func TestBudget_clock_jumps_never_more_than_the_limit(t *testing.T) {
	day := budget.Limit{Scope: budget.Tenant, Resource: holdfast.LLMTokens, Amount: 30, Window: 24 * time.Hour, Source: "test"}
	ever := budget.Limit{Scope: budget.Tenant, Resource: holdfast.LLMTokens, Amount: 130, Source: "ever"}
	for seed := range uint64(testrepeat.Times(3, 1)) {
		w := newWorld(t, "", limits(day, ever))
		for _, by := range append([]time.Duration{0}, jumps(seed)...) {
			w.advance(by)
			for range 5 {
				_, _ = w.cross(w.req("test/cost", `{}`))
			}
		}
		used := map[string]int64{}
		for _, b := range w.begins() {
			for _, d := range b.Draws {
				used[fmt.Sprint(d.Key, " ", d.Window)] += d.Amount
				if n := used[fmt.Sprint(d.Key, " ", d.Window)]; n > d.Limit {
					t.Errorf("seed %d: %d of %d of %s at %d", seed, n, d.Limit, d.Key, d.Window)
				}
			}
		}
		if n := len(w.begins()); n < 6 || n > 13 {
			t.Errorf("seed %d: %d began, where days allow 3 each and the budget for ever 13", seed, n)
		}
	}
}
