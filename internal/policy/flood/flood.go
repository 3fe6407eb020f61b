// Package flood limits how many denials of one agent are recorded, and sums up the others
// (D5): past a limit, further requests of the agent are refused unrecorded until a minute
// has passed.
package flood

import (
	"sync"
	"time"
)

// Window is the time in which denials are counted.
const Window = time.Minute

// The number of denials of one agent, and of all requests without a valid token, that are
// recorded in a Window: anyone who reaches a frontend can make the latter. maxAgents bounds
// the agents that are counted.
const (
	perAgent  = 600
	anonymous = 60
	maxAgents = 10_000
)

type agentKey struct{ tenant, agent string }

type tally struct {
	since   time.Time
	denied  int
	dropped int
}

// isOver reports whether the window has passed; one in the future, after the clock was set
// back, has.
func (c *tally) isOver(now time.Time) bool {
	d := now.Sub(c.since)
	return d < 0 || d >= Window
}

// Counter counts denials. The zero value is ready. It is safe for concurrent use.
type Counter struct {
	mu sync.Mutex
	m  map[agentKey]*tally // guarded by mu
}

// LimitOf returns the number of denials of an agent, "" without a valid token, that are
// recorded in a Window.
func LimitOf(agent string) int {
	if agent == "" {
		return anonymous
	}
	return perAgent
}

// IsFull reports whether the agent's denials have reached the limit; if so, it counts the
// request as dropped.
func (f *Counter) IsFull(tenant, agent string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.m[agentKey{tenant, agent}]
	if c == nil || c.isOver(now) || c.denied < LimitOf(agent) {
		return false
	}
	c.dropped++
	return true
}

// CountDenied counts one recorded denial.
func (f *Counter) CountDenied(tenant, agent string, now time.Time) {
	f.count(tenant, agent, now, func(c *tally) { c.denied++ })
}

// CountDropped counts n requests that were refused unrecorded.
func (f *Counter) CountDropped(tenant, agent string, now time.Time, n int) {
	f.count(tenant, agent, now, func(c *tally) { c.dropped += n })
}

// count changes an agent's tally of the window, unless maxAgents others have one.
func (f *Counter) count(tenant, agent string, now time.Time, change func(*tally)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		f.m = map[agentKey]*tally{}
	}
	k := agentKey{tenant, agent}
	c := f.m[k]
	if c == nil {
		if len(f.m) >= maxAgents {
			return
		}
		c = &tally{since: now}
		f.m[k] = c
	}
	if c.isOver(now) && c.dropped == 0 {
		*c = tally{since: now}
	}
	change(c)
}

// Summary is the flood of one agent in one Window.
type Summary struct {
	Tenant, Agent string
	// Denied were recorded, Dropped were not.
	Denied, Dropped int
	Since           time.Time
}

// Ended returns the floods whose window has passed and that are to be summarised, and
// forgets the tallies that need no summary.
func (f *Counter) Ended(now time.Time) []Summary {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Summary
	for k, c := range f.m {
		switch {
		case !c.isOver(now):
		case c.dropped > 0:
			out = append(out, Summary{k.tenant, k.agent, c.denied, c.dropped, c.since})
		default:
			delete(f.m, k)
		}
	}
	return out
}

// Forget drops a flood whose summary is written; what was dropped since then waits for the
// next one.
func (f *Counter) Forget(s Summary) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := agentKey{s.Tenant, s.Agent}
	c := f.m[k]
	switch {
	case c == nil:
	case c.dropped > s.Dropped:
		c.dropped -= s.Dropped
		c.denied = max(0, c.denied-s.Denied)
	default:
		delete(f.m, k)
	}
}
