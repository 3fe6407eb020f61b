package kernel

import (
	"context"
	"slices"
	"sync"
	"time"
)

// flight is a crossing that begins or is ACTIVE.
type flight struct {
	id, tenant, agent, token, boundary, intent, chain string
	// within is who asks within the agent, and whoever is above that one, by name.
	within []string
	since  time.Time
	cut    context.CancelCauseFunc
	// ended says that it was cut already: the latch's watcher and the command
	// that wrote it both come.
	ended bool // guarded by flights.mu
	// leased says that its caller acts itself.
	leased bool
}

// agentKey names an agent.
type agentKey struct{ tenant, agent string }

// flights are the crossings that halt, pause and revocation can cut. Two
// requests that race for one approval fly under one id until one has begun.
type flights struct {
	mu sync.Mutex
	m  map[*flight]struct{} // guarded by mu
	// leases are the leased ones of each agent.
	leases map[agentKey]int // guarded by mu
}

// add says no to one lease more than an agent may have.
func (f *flights) add(fl *flight) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.leased {
		if f.leases[fl.who()] >= MaxLeases {
			return false
		}
		if f.leases == nil {
			f.leases = map[agentKey]int{}
		}
		f.leases[fl.who()]++
	}
	if f.m == nil {
		f.m = map[*flight]struct{}{}
	}
	f.m[fl] = struct{}{}
	return true
}

// of says whether the agent of that name asks, or whether one beneath it does.
func (fl *flight) of(tenant, agent string) bool {
	return fl.tenant == tenant && (fl.agent == agent || slices.Contains(fl.within, agent))
}

// name is who asks.
func (fl *flight) name() string {
	if len(fl.within) > 0 {
		return fl.within[0]
	}
	return fl.agent
}

// who is whose flight it is.
func (fl *flight) who() agentKey { return agentKey{fl.tenant, fl.agent} }

func (f *flights) remove(fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, in := f.m[fl]; !in {
		return
	}
	delete(f.m, fl)
	if fl.leased {
		if f.leases[fl.who()]--; f.leases[fl.who()] == 0 {
			delete(f.leases, fl.who())
		}
	}
}

// cut ends the context of every flight that matches, and returns how many it
// ended that were not ended before.
func (f *flights) cut(cause error, match func(*flight) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for fl := range f.m {
		if !fl.ended && match(fl) {
			fl.cut(cause)
			fl.ended = true
			n++
		}
	}
	return n
}

// Flight describes a crossing under way, for status.
type Flight struct {
	Crossing string    `json:"crossing"`
	Tenant   string    `json:"tenant_id"`
	Agent    string    `json:"agent"`
	Boundary string    `json:"boundary"`
	Since    time.Time `json:"since"`
}

// Flights lists the crossings that begin or are ACTIVE now, in no order.
func (k *Kernel) Flights() []Flight {
	k.flights.mu.Lock()
	defer k.flights.mu.Unlock()
	out := make([]Flight, 0, len(k.flights.m))
	for f := range k.flights.m {
		out = append(out, Flight{f.id, f.tenant, f.name(), f.boundary, f.since})
	}
	return out
}

// Cut ends every crossing in flight if the latch is set, and returns how many.
// The daemon calls it when it learns that the latch has changed.
func (k *Kernel) Cut() int {
	err := k.asked()
	if err == nil {
		return 0
	}
	n := k.flights.cut(err, func(*flight) bool { return true })
	k.cuts.Add(int64(n))
	return n
}
