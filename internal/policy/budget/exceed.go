package budget

import (
	"net/url"
	"strings"
)

// Exceed is what follows where a crossing exceeds a limit, beside that it is
// refused (spec 001, layer 1; D41).
type Exceed string

// What may follow. The zero value refuses and does nothing more.
const (
	// Refuse refuses the crossing.
	Refuse Exceed = "refuse"
	// EndChain ends the crossing's chain for ever.
	EndChain Exceed = "end_chain"
	// BlockTenant refuses every agent of the tenant until the window ends.
	BlockTenant Exceed = "block_tenant"
	// PauseAgent pauses the agent and asks a person, who may grant as much
	// again.
	PauseAgent Exceed = "pause_agent"
)

// Fault says why a limit of that scope and window cannot have x, "" where it
// can: a limit that many share must not be one agent's end alone, nor the other
// way round, and a block ends with its window.
func (x Exceed) Fault(s Scope, windowed bool) string {
	switch x {
	case "", Refuse:
		return ""
	case EndChain:
		if s != Chain {
			return "end_chain is for the scope chain"
		}
		return ""
	case BlockTenant:
		if s != Tenant || !windowed {
			return "block_tenant is for the scope tenant, with a window"
		}
		return ""
	case PauseAgent:
		if s != Session && s != Agent {
			return "pause_agent is for the scopes session and agent"
		}
		return ""
	}
	return "there is no such consequence"
}

// Acts says whether anything follows but the refusal.
func (x Exceed) Acts() bool { return x != "" && x != Refuse }

// breadth orders scopes from the narrowest: of several limits that have no room
// the narrowest answers first, so that what one chain or one session has spent
// blocks nobody else.
func (s Scope) breadth() int {
	switch s {
	case Chain:
		return 0
	case Session:
		return 1
	case Agent:
		return 2
	case Kind:
		return 3
	case Intent:
		return 4
	case Tier:
		return 5
	}
	return 6
}

// Narrower compares two limits by scope, narrowest first, for slices.SortStableFunc.
func Narrower(a, b Limit) int { return a.Scope.breadth() - b.Scope.breadth() }

// Amount is the amount of the limit that made d, where one of the limits did: the
// smallest of those of its name that are for the value which d counts, for limits
// that stand on one line have one name.
func Amount(limits []Limit, d Draw) (amount int64, ok bool) {
	parts := strings.Split(d.Key, "/")
	if len(parts) < 3 {
		return 0, false
	}
	value, err := url.PathUnescape(parts[2])
	if err != nil {
		return 0, false
	}
	value = strings.Replace(value, "\x00", "/", 1) // as within has it
	for i := range limits {
		l := &limits[i]
		if l.Resource == d.Resource && l.name() == d.Name && matches(l.Match, value) && (!ok || l.Amount < amount) {
			amount, ok = l.Amount, true
		}
	}
	return amount, ok
}
