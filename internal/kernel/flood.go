package kernel

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Floods of denials by one agent are limited at the door and summarised as
// one event (D5): past floodLimit recorded denials in floodWindow, further
// requests of that agent are refused unrecorded until the window has passed.
// Whoever shows no good token is nobody, and all of them are one agent, which
// has fewer: anybody who reaches a door can be one.
const (
	floodLimit  = 600
	floodNobody = 60
	floodWindow = time.Minute
	floodAgents = 10_000
)

type floodKey struct{ tenant, agent string }

type floodCount struct {
	since   time.Time
	denied  int
	dropped int
}

// over says whether the count's window has passed; one that lies ahead, after
// the clock was set back, has.
func (c *floodCount) over(now time.Time) bool {
	d := now.Sub(c.since)
	return d < 0 || d >= floodWindow
}

type flood struct {
	mu sync.Mutex
	m  map[floodKey]*floodCount // guarded by mu
}

// floodOf is how many denials of an agent, "" for nobody, are recorded in a
// window.
func floodOf(agent string) int {
	if agent == "" {
		return floodNobody
	}
	return floodLimit
}

// full says whether the agent's denials have reached the limit; if so, the
// refusal is counted.
func (f *flood) full(tenant, agent string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.m[floodKey{tenant, agent}]
	if c == nil || c.over(now) || c.denied < floodOf(agent) {
		return false
	}
	c.dropped++
	return true
}

// denied counts one recorded denial.
func (f *flood) denied(tenant, agent string, now time.Time) {
	f.count(tenant, agent, now, func(c *floodCount) { c.denied++ })
}

// count changes an agent's count of the window; there is none where the map is
// full.
func (f *flood) count(tenant, agent string, now time.Time, change func(*floodCount)) {
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
	if c.over(now) && c.dropped == 0 {
		*c = floodCount{since: now}
	}
	change(c)
}

// TurnedAway counts n requests or connections that a door turned away before it
// made crossings of them, because their caller has too many under way: they are
// in the event that ends the minute (denials_summarised), as its unrecorded
// ones. token is the caller's; whose is no good is nobody's. n below 1 counts
// nothing. A door calls it for many at once, as it verifies the token.
func (k *Kernel) TurnedAway(ctx context.Context, token holdfast.Secret, n int) {
	if n < 1 {
		return
	}
	j := &judgement{k: k, now: k.now().UTC()}
	j.who, j.whoErr = k.verify(ctx, token, j)
	k.flood.count(j.tenant(), j.who.Agent, j.now, func(c *floodCount) { c.dropped += n })
}

// floodSummary is what one agent's flood came to.
type floodSummary struct {
	tenant, agent   string
	denied, dropped int
	since           time.Time
}

// ended returns the floods whose window has passed and which are to be
// summarised, and forgets the counts that need no summary.
func (f *flood) ended(now time.Time) []floodSummary {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []floodSummary
	for k, c := range f.m {
		switch {
		case !c.over(now):
		case c.dropped > 0:
			out = append(out, floodSummary{k.tenant, k.agent, c.denied, c.dropped, c.since})
		default:
			delete(f.m, k)
		}
	}
	return out
}

// forget drops a flood whose summary is written; what was dropped since then
// waits for the next one.
func (f *flood) forget(s floodSummary) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := floodKey{s.tenant, s.agent}
	c := f.m[k]
	switch {
	case c == nil:
	case c.dropped > s.dropped:
		c.dropped -= s.dropped
		c.denied = max(0, c.denied-s.denied)
	default:
		delete(f.m, k)
	}
}
