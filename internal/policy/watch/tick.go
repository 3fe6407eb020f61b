package watch

import (
	"fmt"
	"time"
)

// Set tells of a condition that was found elsewhere, of an agent, a tenant (agent
// is empty) or everything (both are). A name that is none is not noted.
func (w *Watch) Set(tenant, agent string, name Name, holds bool, at time.Time, why string) []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	if which, ok := w.at[name]; ok {
		w.holds(w.agent(tenant, agent), owner{tenant: tenant, agent: agent}, which, is(holds), w.clock(at), words(why))
	}
	return w.take()
}

// Tick looks at what time alone changes: conditions that become visible or clear,
// a tenant that nobody looked after for a day though its agents acted. Once a
// second is often enough.
func (w *Watch) Tick(now time.Time) []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	if behind := w.last - w.ahead - now.UnixNano(); behind > int64(time.Minute) {
		w.ahead += behind // it was set back
	}
	at := w.clock(now)
	for k, a := range w.agents {
		w.tick(a, owner{tenant: k.tenant, agent: k.agent}, at)
	}
	for tenant, looked := range w.people {
		if looked > at { // by a clock that was ahead
			w.people[tenant], looked = at, at
		}
		if w.acted(tenant, looked) {
			w.holds(w.agent(tenant, ""), owner{tenant: tenant}, atNoHumanCheck, is(at-looked > int64(w.limits.Unchecked)), at, func() string {
				return fmt.Sprintf("nobody looked for %d hours while agents acted", (at-looked)/hour)
			})
		}
	}
	return w.take()
}

func (w *Watch) tick(a *agent, o owner, at int64) {
	for i := range a.alarms {
		al := &a.alarms[i]
		switch {
		case al.since == 0:
		case al.until == 0:
			w.goOn(a, al, o, 0, at, nil)
		case at >= al.until:
			w.end(a, al, o, at)
		}
	}
	if o.agent == "" {
		return
	}
	if n := len(a.hours); n > 0 && int64(a.hours[n-1].hour) < at/hour {
		w.hourEnded(a, o, a.hours[n-1], at)
	}
	if a.now == nil {
		return
	}
	w.rates(a, o, at)
	if at-a.last >= hour+slot {
		a.now = nil // patterns of an hour ago are none
		for _, which := range [...]place{atLoop, atRapid, atEscalating, atRepetition} {
			w.holds(a, o, which, 0, at, nil)
		}
	}
}

// acted says whether an agent of the tenant did something since then.
func (w *Watch) acted(tenant string, since int64) bool {
	t := w.agents[key{tenant, ""}]
	return t != nil && t.last > since
}

// clock is an instant on the watch's own clock, which never goes back. One that is
// set back is believed when Tick sees it: the watch's goes on from where it is, at
// the other's pace.
func (w *Watch) clock(t time.Time) int64 {
	w.last = max(w.last, t.UnixNano()+w.ahead)
	return w.last
}

// when is what everybody's clock shows at an instant of the watch's.
func (w *Watch) when(at int64) time.Time { return time.Unix(0, at-w.ahead).UTC() }

func (w *Watch) take() []Finding {
	out := w.out
	w.out = nil
	return out
}
