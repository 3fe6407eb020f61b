package kernel

import (
	"sync"
	"time"
)

// Floods of denials by one agent are limited at the door and summarised as
// one event (D5): past floodLimit recorded denials in floodWindow, further
// requests of that agent are refused unrecorded until the window has passed.
const (
	floodLimit  = 600
	floodWindow = time.Minute
	floodAgents = 10_000
)

type floodKey struct{ tenant, agent string }

type floodCount struct {
	since   time.Time
	denied  int
	dropped int
}

type flood struct {
	mu sync.Mutex
	m  map[floodKey]*floodCount // guarded by mu
}

// full says whether the agent's denials have reached the limit; if so, the
// refusal is counted.
func (f *flood) full(tenant, agent string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.m[floodKey{tenant, agent}]
	if c == nil || now.Sub(c.since) >= floodWindow || c.denied < floodLimit {
		return false
	}
	c.dropped++
	return true
}

// denied counts one recorded denial.
func (f *flood) denied(tenant, agent string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		f.m = map[floodKey]*floodCount{}
	}
	k := floodKey{tenant, agent}
	c := f.m[k]
	if c == nil {
		if len(f.m) >= floodAgents {
			return
		}
		c = &floodCount{since: now}
		f.m[k] = c
	}
	if now.Sub(c.since) >= floodWindow && c.dropped == 0 {
		*c = floodCount{since: now}
	}
	c.denied++
}

// floodSummary is what one agent's flood came to.
type floodSummary struct {
	tenant, agent   string
	denied, dropped int
	since           time.Time
}

// drain returns the floods whose window has passed and forgets them.
func (f *flood) drain(now time.Time) []floodSummary {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []floodSummary
	for k, c := range f.m {
		if now.Sub(c.since) < floodWindow {
			continue
		}
		if c.dropped > 0 {
			out = append(out, floodSummary{k.tenant, k.agent, c.denied, c.dropped, c.since})
		}
		delete(f.m, k)
	}
	return out
}
