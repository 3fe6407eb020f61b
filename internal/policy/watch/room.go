package watch

import (
	"cmp"
	"slices"
)

// agent is what is kept of one; a new one has room made for it.
func (w *Watch) agent(tenant, name string) *agent {
	k := key{tenant, name}
	if a := w.agents[k]; a != nil {
		return a
	}
	if len(w.agents) >= w.room {
		w.makeRoom()
	}
	a := &agent{}
	w.agents[k] = a
	return a
}

// makeRoom forgets a tenth of the agents, those that did nothing for longest and
// of whom nothing holds first. While a tenant has more than its share they are its
// own, so that nobody's flood of names makes another's agents forgotten.
func (w *Watch) makeRoom() {
	type old struct {
		key         key
		over, holds bool
		last        int64
	}
	of := map[string]int{}
	for k := range w.agents {
		of[k.tenant]++
	}
	all := make([]old, 0, len(w.agents))
	for k, a := range w.agents {
		if k.agent != "" {
			all = append(all, old{k, of[k.tenant] > w.room/len(of), slices.ContainsFunc(a.alarms, func(al alarm) bool { return al.since != 0 }), a.last})
		}
	}
	slices.SortFunc(all, func(x, y old) int {
		return cmp.Or(-compare(x.over, y.over), compare(x.holds, y.holds), cmp.Compare(x.last, y.last))
	})
	for _, o := range all[:min(len(all), w.room/10)] {
		delete(w.agents, o.key)
		w.forgotten++
	}
}

// compare puts false before true.
func compare(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}

// chain is an agent, its tenant and everything.
func (w *Watch) chain(a *agent, o owner) [3]*agent {
	return [3]*agent{a, w.agents[key{o.tenant, ""}], w.agents[key{}]}
}
