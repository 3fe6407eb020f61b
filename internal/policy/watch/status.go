package watch

import (
	"cmp"
	"slices"
	"time"
)

// State is one condition of one owner: whether it holds, or that nobody knows.
type State struct {
	Tenant, Agent string
	Condition     Name
	Severity      Severity
	Since         time.Time
	// Consequence says that it is kept back behind another.
	Consequence bool
	// Response is what is done about it where Done says that something was.
	Response Response
	Done     bool
}

// Hold are the conditions that hold, the worst first.
func (w *Watch) Hold() []State {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []State
	for k, a := range w.agents {
		for _, al := range a.alarms {
			if al.since == 0 {
				continue
			}
			c := w.conditions[al.which]
			out = append(out, State{Tenant: k.tenant, Agent: k.agent, Condition: c.Name, Severity: c.Severity,
				Since: w.when(al.since), Consequence: al.kept, Response: w.response(&c), Done: al.done})
		}
	}
	slices.SortFunc(out, func(x, y State) int {
		return cmp.Or(cmp.Compare(y.Severity, x.Severity), x.Since.Compare(y.Since), cmp.Compare(x.Tenant, y.Tenant),
			cmp.Compare(x.Agent, y.Agent), cmp.Compare(x.Condition, y.Condition))
	})
	return out
}

// Rates are an agent's figures now (spec 001, "Metrics to Track").
type Rates struct {
	Tenant, Agent string
	// Actions is about how many crossings the last hour had, its sub-agents' among
	// them: of the hour of the clock before this one so much is counted as the last
	// hour holds of it.
	Actions      int
	StepsPerHour float64
	CostPerHour  int64 // micro-dollars
	// ErrorRate is of the last Judged actions, at most 100; with fewer than 20 it is
	// not known.
	ErrorRate float64
	Judged    int
	Known     bool
	// Repeated is how many of the last actions are the same, in turns or not.
	Repeated int
	// Files is how many files its largest commit of the last hour changed, 65,535 at
	// most.
	Files int
	Last  time.Time
	// Hours are those in which it did something; fewer than eleven make nothing
	// usual, and outliers are not known.
	Hours int
	// UsualSteps and UsualCost are what its past makes usual at most, where Learned.
	UsualSteps float64
	UsualCost  int64
	Learned    bool
}

// Rates are those of every agent that did something within the hour before now,
// the dearest first.
func (w *Watch) Rates(now time.Time) []Rates {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := max(w.last, now.UnixNano()+w.ahead)
	var out []Rates
	for k, a := range w.agents {
		if k.agent == "" || a.now == nil {
			continue
		}
		r := Rates{Tenant: k.tenant, Agent: k.agent, Last: w.when(a.last), Hours: len(a.hours)}
		r.CostPerHour, r.StepsPerHour = a.now.hourly(at)
		r.Actions, r.Files = a.lastHour(at), a.now.largest(at)
		r.ErrorRate, r.Judged, r.Known = a.errorRate()
		r.Repeated, _ = a.now.turns.loop()
		if a.span[1].known {
			r.Learned, r.UsualSteps, r.UsualCost = true, a.span[1].high, int64(a.span[2].high)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(x, y Rates) int {
		return cmp.Or(cmp.Compare(y.CostPerHour, x.CostPerHour), cmp.Compare(y.StepsPerHour, x.StepsPerHour), cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.Agent, y.Agent))
	})
	return out
}

// Looked is when somebody last looked after a tenant's agents; false where nobody
// did as far as is known.
func (w *Watch) Looked(tenant string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.when(w.people[tenant]), w.looked[tenant]
}

// Unchecked are the tenants whose agents acted since somebody looked after them,
// with when that was; where nobody ever did, with when the first acted.
func (w *Watch) Unchecked() map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]time.Time{}
	for tenant, looked := range w.people {
		if w.acted(tenant, looked) || !w.looked[tenant] {
			out[tenant] = w.when(looked)
		}
	}
	return out
}

// Watched is how many agents are.
func (w *Watch) Watched() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.agents {
		if k.agent != "" {
			n++
		}
	}
	return n
}

// Forgotten is how many agents made room for others.
func (w *Watch) Forgotten() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forgotten
}
