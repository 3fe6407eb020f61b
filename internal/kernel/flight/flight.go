// Package flight registers the crossings that begin or are ACTIVE, so that a halt, a stop, a pause
// or a revocation finds each of them and cuts it.
package flight

import (
	"context"
	"slices"
	"sync"
	"time"
)

// MaxLeases bounds the crossings of one agent that are open between Enter and Exit.
const MaxLeases = 256

// Flight is a crossing that begins or is ACTIVE.
type Flight struct {
	ID, Tenant, Agent, Token, Boundary, Intent, Chain string
	// Within is who asks within the agent, and all above that one, by name.
	Within []string
	Since  time.Time
	Cut    context.CancelCauseFunc
	// Leased reports that its caller acts itself.
	Leased bool
	// ended reports that it was cut already: the latch's watcher and the command
	// that wrote it both come.
	ended bool // guarded by Set.mu
}

// BelongsTo reports whether the agent of that name asks, or one beneath it.
func (f *Flight) BelongsTo(tenant, agent string) bool {
	return f.Tenant == tenant && (f.Agent == agent || slices.Contains(f.Within, agent))
}

// Asker returns who asks.
func (f *Flight) Asker() string {
	if len(f.Within) > 0 {
		return f.Within[0]
	}
	return f.Agent
}

func (f *Flight) agentKey() agentKey { return agentKey{f.Tenant, f.Agent} }

// agentKey names an agent.
type agentKey struct{ tenant, agent string }

// Set holds the flights. Two requests that race for one approval have one ID until one has
// begun. It is safe for concurrent use.
type Set struct {
	mu sync.Mutex
	m  map[*Flight]struct{} // guarded by mu
	// leases are the leased ones of each agent.
	leases map[agentKey]int // guarded by mu
}

// Add registers a flight. It reports false if its agent has MaxLeases.
func (s *Set) Add(f *Flight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Leased {
		if s.leases[f.agentKey()] >= MaxLeases {
			return false
		}
		if s.leases == nil {
			s.leases = map[agentKey]int{}
		}
		s.leases[f.agentKey()]++
	}
	if s.m == nil {
		s.m = map[*Flight]struct{}{}
	}
	s.m[f] = struct{}{}
	return true
}

// Remove forgets a flight, whether it is registered or not.
func (s *Set) Remove(f *Flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, in := s.m[f]; !in {
		return
	}
	delete(s.m, f)
	if f.Leased {
		if s.leases[f.agentKey()]--; s.leases[f.agentKey()] == 0 {
			delete(s.leases, f.agentKey())
		}
	}
}

// Cut ends the context of every flight that matches, and returns how many it
// ended that were not ended before.
func (s *Set) Cut(cause error, match func(*Flight) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for f := range s.m {
		if !f.ended && match(f) {
			f.Cut(cause)
			f.ended = true
			n++
		}
	}
	return n
}

// Summary describes a flight, for status.
type Summary struct {
	Crossing string    `json:"crossing"`
	Tenant   string    `json:"tenant_id"`
	Agent    string    `json:"agent"`
	Boundary string    `json:"boundary"`
	Since    time.Time `json:"since"`
}

// List returns the flights, in no order.
func (s *Set) List() []Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Summary, 0, len(s.m))
	for f := range s.m {
		out = append(out, Summary{f.ID, f.Tenant, f.Asker(), f.Boundary, f.Since})
	}
	return out
}
