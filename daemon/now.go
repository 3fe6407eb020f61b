package daemon

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/observe/anomaly"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
)

// lookTime bounds how long the ledger's last hour is read for what goes on.
const lookTime = 10 * time.Second

// Now says what goes on at this moment: with one tenant alone, or, where that is
// empty, with everything. A tenant of which nothing is recorded is a NotFoundError.
func (d *Daemon) Now(ctx context.Context, tenant string) (*api.Now, error) {
	now := time.Now()
	r, err := ofTenant(d.days.Today(ctx, now), tenant)
	if err != nil {
		return nil, err
	}
	n := d.healthNow(&r, now, tenant)
	var rates []watch.Rates
	if w := d.watched(); w != nil {
		rates = ratesOf(w.Rates(now), tenant)
	}
	return n, d.store.View(ctx, func(tx kernel.Tx) error { return present(tx, n, rates) })
}

// healthNow is what goes on but for the agents: how today goes by its report r, with
// the alarms that hold, and what nobody knows at this moment.
func (d *Daemon) healthNow(r *health.Report, now time.Time, tenant string) *api.Now {
	n := &api.Now{At: now.UTC(), Tenant: tenant, PID: os.Getpid(), Halt: d.halted()}
	n.Health, n.Because = r.Health, slices.Clone(r.Because)
	if w := d.watched(); w != nil {
		alarmed(n, slices.DeleteFunc(w.Hold(), func(s watch.State) bool { return tenant != "" && s.Tenant != "" && s.Tenant != tenant }))
		if known, why := d.watching.Known(); !known {
			unknown(n, "what is usual is not known: "+why)
		}
		if why := d.witness.Trouble(); why != "" {
			unknown(n, why)
		}
	} else {
		unwatched(n)
	}
	if n.Halted && n.Health != health.Red {
		worsen(n, health.Red, "everything is halted")
	}
	return n
}

// LookNow says what goes on in a state that nobody owns: s is the store open for
// reading, nil where it cannot be read for the reason why. The figures of the last
// hour are read from the ledger; which alarms hold nobody knows. A tenant is as of
// Daemon.Now.
func LookNow(ctx context.Context, p Paths, s kernel.Store, why, tenant string) (*api.Now, error) {
	now := time.Now()
	h, err := lookHalt(p)
	if err != nil {
		return nil, err
	}
	n := &api.Now{At: now.UTC(), Tenant: tenant, Halt: h}
	if s == nil {
		day := health.NewDay(now)
		day.Unread(why)
		r := day.Report(now)
		n.Health, n.Because = r.Health, r.Because
		return n, nil
	}
	whole, err := report.ReadDay(ctx, s, now, now)
	if err != nil {
		return nil, err
	}
	r, err := ofTenant(whole, tenant)
	if err != nil {
		return nil, err
	}
	n.Health, n.Because = r.Health, r.Because
	if n.Halted && n.Health != health.Red {
		worsen(n, health.Red, "everything is halted")
	}
	unwatched(n)
	rates, err := lastHour(ctx, s, now)
	seen := s.View(ctx, func(tx kernel.Tx) error { return present(tx, n, ratesOf(rates, tenant)) })
	if err != nil {
		n.Active = nil
	}
	return n, errors.Join(err, seen)
}

// ofTenant is the report of one tenant alone; the whole where none is named, and
// where nothing of any could be read.
func ofTenant(r health.Report, tenant string) (health.Report, error) {
	if tenant == "" || r.Unread {
		return r, nil
	}
	one, there := r.Of(tenant)
	if !there {
		return r, &holdfast.Error{Kind: holdfast.KindNotFound, Why: "nothing is recorded of tenant " + excerpt.Word(
			tenant,
		), Hint: "`holdfast report daily` names those of whom there is something"}
	}
	return one, nil
}

// ratesOf are those of one tenant's agents; all where none is named.
func ratesOf(all []watch.Rates, tenant string) []watch.Rates {
	return slices.DeleteFunc(all, func(r watch.Rates) bool { return tenant != "" && r.Tenant != tenant })
}

// lastHour are the rates of agents by what the ledger has of the hour before now.
func lastHour(ctx context.Context, s kernel.Store, now time.Time) ([]watch.Rates, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	w := anomaly.New(anomaly.Options{}, watch.Limits{})
	err := report.ReadSince(ctx, s, now.Add(-time.Hour), func(l *ledger.Stored) error { return w.Replay(l, now) })
	if err != nil {
		return nil, err
	}
	return w.Watch.Rates(now), nil
}

// worsen makes the health that level at best, and says why before all else.
func worsen(n *api.Now, to health.Level, why string) {
	n.Health, n.Because = min(n.Health, to), append([]string{why}, n.Because...)
}

// unknown is of what nobody knows (D41b), as a whole sentence.
func unknown(n *api.Now, why string) {
	n.Health, n.Because = min(n.Health, health.Yellow), append(n.Because, why)
}

func unwatched(n *api.Now) { unknown(n, "which alarms hold: unknown, for no daemon watches") }

// alarmed adds the conditions that hold. One that began on another day is no less
// an alarm today.
func alarmed(n *api.Now, hold []watch.State) {
	n.Alarms = []api.Alarm{}
	n.MoreAlarms = max(0, len(hold)-api.MaxNow)
	for _, s := range hold[:len(hold)-n.MoreAlarms] {
		n.Alarms = append(n.Alarms, api.Alarm{Tenant: s.Tenant, Agent: s.Agent, Condition: string(s.Condition), Severity: s.Severity.String(),
			Since: s.Since.UTC(), Consequence: s.Consequence})
	}
	if len(hold) == 0 {
		return
	}
	switch worst := hold[0].Severity; { // they are the worst first
	case worst >= watch.Critical && n.Health != health.Red:
		worsen(n, health.Red, "an alarm that is CRITICAL holds")
	case worst >= watch.Medium && n.Health == health.Green:
		worsen(n, health.Yellow, "an alarm that is "+worst.String()+" holds")
	}
}

// present adds what the store knows, and the agents: the most active first, and
// those that are paused and did nothing after them.
func present(tx kernel.Tx, n *api.Now, rates []watch.Rates) error {
	count, err := waiting(tx, n.Tenant)
	if err != nil {
		return err
	}
	known, err := tx.Agents(n.Tenant)
	if err != nil {
		return err
	}
	active, paused := len(rates), 0
	n.Waiting, n.Active, n.Paused = &count, &active, &paused
	n.Agents = make([]api.AgentNow, 0, len(rates))
	at := map[[2]string]int{}
	for i := range rates {
		r := &rates[i]
		at[[2]string{r.Tenant, r.Agent}] = i
		g := api.AgentNow{Tenant: r.Tenant, Agent: r.Agent, Actions: r.Actions, Steps: int(r.StepsPerHour), Cost: r.CostPerHour, Last: r.Last.UTC()}
		if r.Known {
			g.ErrorRate = &r.ErrorRate
		}
		n.Agents = append(n.Agents, g)
	}
	for i := range known {
		if known[i].State == holdfast.AgentRunning {
			continue
		}
		paused++
		k := [2]string{known[i].Tenant, known[i].Name}
		if _, there := at[k]; !there {
			at[k] = len(n.Agents)
			n.Agents = append(n.Agents, api.AgentNow{Tenant: k[0], Agent: k[1]})
		}
		n.Agents[at[k]].Paused = true
	}
	for _, a := range n.Alarms {
		if i, there := at[[2]string{a.Tenant, a.Agent}]; there {
			n.Agents[i].Alarms = append(n.Agents[i].Alarms, a.Condition)
		}
	}
	rank(n)
	return nil
}

// rank sorts the agents and leaves out those beyond the bound.
func rank(n *api.Now) {
	slices.SortFunc(n.Agents, func(a, b api.AgentNow) int {
		return cmp.Or(cmp.Compare(b.Actions, a.Actions), cmp.Compare(b.Cost, a.Cost), b.Last.Compare(a.Last), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Agent, b.Agent))
	})
	n.MoreAgents = max(0, len(n.Agents)-api.MaxNow)
	n.Agents = n.Agents[:len(n.Agents)-n.MoreAgents]
}
