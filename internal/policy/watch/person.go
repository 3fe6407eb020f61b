package watch

import "time"

// Person says that somebody looked after a tenant's agents, with the operator key:
// answered a review, resumed, let go on, or looked at what there is.
func (w *Watch) Person(tenant string, at time.Time) []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock(at)
	w.people[tenant], w.looked[tenant] = now, true
	w.holds(w.agent(tenant, ""), owner{tenant: tenant}, atNoHumanCheck, 0, now, nil)
	return w.take()
}

// Forgive says that a person let an agent go on: what it did before is no pattern
// any more, and what held of it holds no more. Its hours stay.
func (w *Watch) Forgive(tenant, name string, at time.Time) []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock(at)
	w.people[tenant], w.looked[tenant] = now, true
	if a := w.agents[key{tenant, name}]; a != nil {
		a.acts, a.questions, a.below = endings{}, endings{}, endings{}
		if a.now != nil {
			a.now.forget()
		}
		for i := range a.alarms {
			if al := &a.alarms[i]; al.since != 0 {
				w.clear(al, owner{tenant: tenant, agent: name}, now)
			}
		}
	}
	out := w.take()
	for i := range out {
		out[i].Forgiven = true
	}
	return out
}
