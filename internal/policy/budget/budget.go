// Package budget judges whether there is room (K3, D9): which counters a
// crossing draws on, and whether what it asks fits. It is pure; the store
// keeps the counters.
package budget

import (
	"math"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Scope says whose counter a limit is (D9).
type Scope string

// The scopes.
const (
	Tenant  Scope = "tenant"
	Tier    Scope = "tier"
	Intent  Scope = "intent"
	Kind    Scope = "kind"
	Agent   Scope = "agent"
	Session Scope = "session"
	Chain   Scope = "chain"
)

// Draw is one amount taken from one counter.
type Draw struct {
	// Key names the counter: scope, its value, resource and limit name,
	// under the tenant. It holds no window.
	Key      string            `json:"key"`
	Resource holdfast.Resource `json:"resource"`
	Amount   int64             `json:"amount"`
	Limit    int64             `json:"limit"`
	// Window is when the counter's current window started, unix seconds; 0
	// for a counter that never resets. A stored counter with another
	// window counts as zero.
	Window int64 `json:"window,omitempty"`
	// Name is the limit's name for people, with file:line where it has one.
	Name string `json:"name,omitempty"`
	// Exceed is the limit's, and Of the agent within the agent whose counter it is,
	// empty where it is not of one. They are no part of what is recorded.
	Exceed Exceed `json:"-"`
	Of     string `json:"-"`
}

// Counter is what was used of a key in a window: settled and reserved
// together.
type Counter struct {
	Used   int64 `json:"used"`
	Window int64 `json:"window"`
}

// Rate bounds takings of a key in any window of that length; exact (D9).
// A cooldown is a rate of one.
type Rate struct {
	Key    string        `json:"key"`
	Limit  int           `json:"limit"`
	Window time.Duration `json:"window"`
	Name   string        `json:"name,omitempty"`
}

// Refusal is why there is no room.
type Refusal struct {
	// Kind is BoundsExceeded, OverflowError, UsageTrackingError,
	// InvalidBudgetError or ValueError.
	Kind    holdfast.Kind
	Draw    Draw
	Counter Counter
	// Rate is set instead of Draw for a rate; After is when there is room.
	Rate  *Rate
	After time.Duration
}

// Fits says whether d fits on top of c, which is the counter of d's window;
// nil means yes. The sum is checked for overflow before it is compared.
func Fits(d Draw, c Counter) *Refusal {
	switch {
	case d.Limit < 0:
		return &Refusal{Kind: holdfast.KindInvalidBudget, Draw: d, Counter: c}
	case d.Amount < 0:
		return &Refusal{Kind: holdfast.KindValue, Draw: d, Counter: c}
	case c.Used < 0:
		return &Refusal{Kind: holdfast.KindUsageTracking, Draw: d, Counter: c}
	case c.Used+d.Amount < c.Used:
		return &Refusal{Kind: holdfast.KindOverflow, Draw: d, Counter: c}
	case c.Used+d.Amount > d.Limit:
		return &Refusal{Kind: holdfast.KindBounds, Draw: d, Counter: c}
	}
	return nil
}

// Limit caps what a scope may use of a resource.
type Limit struct {
	Scope Scope `json:"scope"`
	// Match is the scope's value the limit is for, such as an agent's name;
	// "*" or empty gives each value a counter of its own. AGENT/ID is for what one
	// within an agent takes, with those beneath it, beside what the agent may take.
	Match    string            `json:"match,omitempty"`
	Resource holdfast.Resource `json:"resource"`
	// Boundary is a name or pattern, as MatchBoundary reads it: only what
	// crosses there draws on the limit, from a counter of its own that all
	// that match share. Empty means all.
	Boundary string `json:"boundary,omitempty"`
	Amount   int64  `json:"amount"`
	// Window is how long until the counter starts again; 24 h starts at
	// UTC midnight (D9); 0 never resets.
	Window time.Duration `json:"window,omitempty"`
	// Exceed is what follows where a crossing exceeds the limit.
	Exceed Exceed `json:"exceed,omitempty"`
	// Source is "file:line" or "built in".
	Source string `json:"source,omitempty"`
}

// RateLimit caps how often a scope may cross boundaries that match.
type RateLimit struct {
	Scope    Scope  `json:"scope"`
	Match    string `json:"match,omitempty"`
	Boundary string `json:"boundary,omitempty"` // pattern; empty means all
	// PerMinute is at most so many in any 60 s; Cooldown the least time
	// between two. Zero leaves either out.
	PerMinute int           `json:"per_minute,omitempty"`
	Cooldown  time.Duration `json:"cooldown,omitempty"`
	Source    string        `json:"source,omitempty"`
}

// AddCapped adds two amounts, and stops at the ends of an int64.
func AddCapped(a, b int64) int64 {
	switch s := a + b; {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	default:
		return s
	}
}
