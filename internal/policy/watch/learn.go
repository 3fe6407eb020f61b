package watch

import (
	"slices"
	"time"
)

// Load takes a crossing of the past, as the ledger has it, in any order: it counts
// in its hour, and nothing is judged by it. What has been taken by Add must not be
// loaded too. Learned ends it.
func (w *Watch) Load(s Seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := s.At.UnixNano()
	if looked, ok := w.people[s.Tenant]; !ok || at < looked && !w.looked[s.Tenant] {
		w.people[s.Tenant] = at
	}
	t := w.agent(s.Tenant, "")
	t.last = max(t.last, at)
	if s.Agent != "" {
		w.load(&s, s.Agent, at)
	}
	for i := range s.above() {
		w.load(&s, s.Above[i], at)
	}
}

func (w *Watch) load(s *Seen, name string, at int64) {
	a := w.agent(s.Tenant, name)
	a.last = max(a.last, at)
	a.load(at, s)
}

// LoadPerson takes a look of a person's in the past.
func (w *Watch) LoadPerson(tenant string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ns := at.UnixNano()
	if w.looked[tenant] {
		ns = max(ns, w.people[tenant])
	}
	w.people[tenant], w.looked[tenant] = ns, true
}

// LoadTold takes an answer of the past: people know of the condition, or that it
// holds no more. What is found again of one that holds since then is nothing new.
// Those of one owner come in their order.
func (w *Watch) LoadTold(f Finding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	which, ok := w.at[f.Condition]
	if !ok {
		return
	}
	a := w.agent(f.Tenant, f.Agent)
	al := a.alarm(which)
	if al == nil {
		a.alarms = append(a.alarms, alarm{which: which})
		al = &a.alarms[len(a.alarms)-1]
	}
	at := max(w.clock(f.At), 1)
	if f.Cleared {
		*al = alarm{which: which, told: al.told, size: al.size, shown: al.shown}
		return
	}
	if al.since == 0 {
		al.since = at
	}
	al.kept, al.done = f.Cause != "", f.Cause == ""
	al.quiet = al.done && f.Response == Record && w.response(&w.conditions[which]) == Alert
	if al.why = f.Why; al.done && !al.quiet {
		al.told, al.size, al.shown, al.why = at, max(al.size, 1), max(al.shown, 1), ""
	}
	if w.conditions[which].Brief {
		al.until = at + lasts
	}
}

// Learned ends the loading: from now on what was loaded is the agents' past.
func (w *Watch) Learned() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.agents {
		a.hours = a.hours[max(len(a.hours)-keep, 0):]
		a.learn()
		if n := len(a.hours); n > 0 && (w.last == 0 || int64(a.hours[n-1].hour) < w.last/hour) {
			a.closed = a.hours[n-1].hour // judged before
		}
	}
}

// load counts a crossing in the hour that it was in.
func (a *agent) load(at int64, s *Seen) {
	h := int32(at / hour)
	i, found := slices.BinarySearchFunc(a.hours, h, func(b bucket, h int32) int { return int(b.hour) - int(h) })
	if !found {
		if len(a.hours) >= 2*keep {
			if a.hours = slices.Delete(a.hours, 0, keep); i < keep {
				return // older than all that is kept
			}
			i -= keep
		}
		a.hours = slices.Insert(a.hours, i, bucket{hour: h})
	}
	a.hours[i].count(s)
}
