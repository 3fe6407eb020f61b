package daemon

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// sayPast says how it stands with what rules ask the past, and which of them
// could never speak.
func (d *Daemon) sayPast(s *api.Status) {
	h := d.Kernel.Past().Status()
	if len(h.Past) > 0 {
		s.Past = &h
	}
	if !h.Ready {
		why := fmt.Sprintf("the ledger is being read for rules that ask the past, %d of %d leaves: they fail until it is read", h.Read, h.Of)
		if !h.Until.IsZero() {
			why += ", about " + h.Until.Format(time.RFC3339)
		}
		if h.Failed != "" {
			why = "the ledger cannot be read for rules that ask the past, and they fail: " + h.Failed
		}
		s.Problems = append(s.Problems, why)
	}
	for _, p := range h.Past {
		for _, tenant := range slices.Sorted(maps.Keys(p.Unreadable)) {
			s.Problems = append(s.Problems,
				fmt.Sprintf("the rule %s (%s) fails for tenant %s until %s: a crossing in the window of %s cannot be read",
					p.Rule, p.Where, tenant, p.Unreadable[tenant].UTC().Format(time.RFC3339), p.Text))
		}
	}
	for _, m := range d.tools.Misfits() {
		s.Problems = append(s.Problems, "every call is refused of "+m)
	}
}

// sayUnlisted says which rules are about a boundary that neither the configuration
// nor any server which was started lists.
func (d *Daemon) sayUnlisted(s *api.Status) {
	d.mu.Lock()
	l := d.loaded
	d.mu.Unlock()
	rules, ok := l.Policy.Rules.(*constitution.Set)
	if !ok || l.Path == "" {
		return
	}
	by := l.Config.RuleSetting()
	by.Names = l.Config.ListedBeside()
	for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
		by.Names = append(by.Names, gateway.Endpoint(name), gateway.Endpoint(name)+"/*")
	}
	s.Problems = append(s.Problems, rules.Unlisted(by)...)
}

// sayCounters says what of the counters of money and iterations was not what the
// ledger adds up to.
func (d *Daemon) sayCounters(s *api.Status) {
	c := d.recounter.Compared()
	if c.Failed != "" {
		s.Problems = append(s.Problems,
			"the counters of money and iterations cannot be compared with the ledger: "+c.Failed)
	}
	if n := len(c.Astray); n > 0 {
		a := c.Astray[0]
		s.Problems = append(s.Problems,
			fmt.Sprintf("at the start %d of the counters of money and iterations were not what the ledger adds up to, and the larger count holds: somebody may have written the store past holdfast (`holdfast ledger verify`); the first is %s of tenant %s, %d stored and %d by the ledger",
				n, a.Budget, a.Tenant, a.Stored, a.Ledger))
	}
}

// sayStops names the active stops, such as one for a part of Holdfast that failed.
func (d *Daemon) sayStops(s *api.Status) {
	stops := d.Kernel.Stops()
	for _, stop := range stops[:min(len(stops), maxStopsShown)] {
		of := "everything"
		switch {
		case stop.Agent != "":
			of = "the agent " + stop.Agent
		case stop.Tenant != "":
			of = "the tenant " + stop.Tenant
		}
		s.Problems = append(s.Problems, of+" is stopped since "+stop.Since.UTC().Format(time.RFC3339)+": "+stop.Why)
	}
	if n := len(stops) - maxStopsShown; n > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf("%d more stops are active", n))
	}
}

// maxStopsShown bounds the stops in a status.
const maxStopsShown = 20
