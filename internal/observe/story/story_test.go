package story

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "now", 400 * time.Millisecond: "now", -400 * time.Millisecond: "now", time.Second: "1 s ago", 59 * time.Second: "59 s ago",
		time.Minute: "1 min ago", 59*time.Minute + 59*time.Second: "59 min ago", 3*time.Hour + 5*time.Minute: "3 h 05 min ago",
		47*time.Hour + 59*time.Minute: "47 h 59 min ago", 48 * time.Hour: "2 days ago", -time.Minute: "in 1 min", -49 * time.Hour: "in 2 days",
	} {
		if got := Ago(now.Add(-d), now); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := Ago(time.Time{}, now); got != "never" {
		t.Error(got)
	}
	if got := Short(-time.Minute); got != "no time" {
		t.Error(got)
	}
	if got := Count(1, "call", "calls") + ", " + Count(int64(2), "call", "calls") + ", " + Count(0, "call", "calls"); got != "1 call, 2 calls, 0 calls" {
		t.Error(got)
	}
}

func TestDrawsAndUses(t *testing.T) {
	three := int64(3)
	named, plain := ledger.Draw{Name: "a day's fuel", Amount: 5, Limit: 100}, ledger.Draw{Resource: "calls", Key: "tenant:local", Amount: 1, Limit: 9}
	if got := Draws([]ledger.Draw{named, plain}); got != "5 of a day's fuel; 1 of calls tenant:local" {
		t.Error(got)
	}
	if got := Uses([]ledger.Use{{Draw: named, Before: 7, Used: &three}, {Draw: plain}}); got != "3 of a day's fuel (7 of 100 before); nothing of calls tenant:local (0 of 9 before)" {
		t.Error(got)
	}
	if Draws(nil)+Uses(nil)+Text(nil) != "" {
		t.Error("nothing is told as something")
	}
}

// TestGrounds: each gate's reason is of what the columns keep, and a refusal has
// none here: its own words are recorded.
func TestGrounds(t *testing.T) {
	text, yes, n, half := "0123456789abcdef0123456789abcdef", true, int64(4), 0.5
	fuel := "fuel"
	for name, c := range map[string]struct {
		e    ledger.Entry
		o    ledger.Opinion
		want string
	}{
		"refused":     {ledger.Entry{Risk: "LOW"}, ledger.Opinion{Gate: holdfast.K7, Verdict: holdfast.Deny}, ""},
		"schema":      {ledger.Entry{SchemaID: &text}, ledger.Opinion{Gate: holdfast.K1}, "the payload conforms to " + text},
		"no schema":   {ledger.Entry{}, ledger.Opinion{Gate: holdfast.K1, Rule: "none declared"}, "the payload is well-formed JSON"},
		"permission":  {ledger.Entry{Required: []string{"a:b", "c:d"}}, ledger.Opinion{Gate: holdfast.K2}, "granted a:b, c:d"},
		"room":        {ledger.Entry{}, ledger.Opinion{Gate: holdfast.K3}, "there was room"},
		"how much":    {ledger.Entry{ResourceType: &fuel, Requested: &n, BudgetLimit: &n, UsageBefore: &n}, ledger.Opinion{Gate: holdfast.K3}, "there was room: fuel, 4 asked, 4 of 4 used before"},
		"flow":        {ledger.Entry{Correlation: "x"}, ledger.Opinion{Gate: holdfast.K4}, "correlation x"},
		"key":         {ledger.Entry{Key: &text}, ledger.Opinion{Gate: holdfast.K5}, "key 0123456789abcdef..."},
		"replayed":    {ledger.Entry{ReplayOf: "c1"}, ledger.Opinion{Gate: holdfast.K5}, "done already by crossing c1"},
		"given back":  {ledger.Entry{}, ledger.Opinion{Gate: holdfast.K3, Rule: "replay"}, "what was settled is given back; nothing is done"},
		"approved":    {ledger.Entry{Reviewer: "ann"}, ledger.Opinion{Gate: holdfast.K7, State: "HUMAN_APPROVED"}, "approved by ann"},
		"by a column": {ledger.Entry{Reviewer: "ann", Approved: &yes, Confidence: &half}, ledger.Opinion{Gate: holdfast.K7}, "approved by ann"},
		"confidence":  {ledger.Entry{Confidence: &half, Risk: "LOW"}, ledger.Opinion{Gate: holdfast.K7}, "the confidence 0.50 suffices"},
		"risk":        {ledger.Entry{Risk: "LOW"}, ledger.Opinion{Gate: holdfast.K7}, "the risk is LOW"},
	} {
		// The zero verdict is Deny; all but one of these allow.
		if c.o.Verdict == holdfast.Deny && name != "refused" {
			c.o.Verdict = holdfast.Allow
		}
		if got := Grounds(&c.e, c.o); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestCame(t *testing.T) {
	for o, want := range map[ledger.Outcome]holdfast.Verdict{ledger.Done: holdfast.Allow, ledger.Replayed: holdfast.Allow, ledger.Unknown: holdfast.Hold,
		ledger.HeldExpired: holdfast.Hold, ledger.Canceled: holdfast.Hold, ledger.Abandoned: holdfast.Hold, ledger.Halted: holdfast.Deny, ledger.Withheld: holdfast.Deny, "": holdfast.Deny} {
		if got := Came(o); got != want {
			t.Errorf("%q: %v, want %v", o, got, want)
		}
	}
}
