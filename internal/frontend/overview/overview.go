// Package overview puts together what `holdfast top` shows: how today goes, the alarms that hold, and the agents.
package overview

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
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
)

// lookTime limits the reading of the ledger's last hour.
const lookTime = 10 * time.Second

// Source is what an overview of a running Holdfast is made of.
type Source struct {
	Halt api.Halt
	// Watch is nil while agents are not watched.
	Watch *anomaly.Watcher
	// Witness is what is wrong with the newest signed head of the ledger, "" if nothing is.
	Witness string
}

// Live returns what happens now in a running Holdfast, by today's report r: for one tenant, or for all if tenant is
// empty. A tenant of which nothing is recorded is a NotFoundError.
func Live(tx kernel.Tx, src Source, r health.Report, now time.Time, tenant string) (*api.Now, error) {
	r, err := selectTenant(r, tenant)
	if err != nil {
		return nil, err
	}
	n := Health(src, &r, now, tenant)
	var rates []watch.Rates
	if src.Watch != nil {
		rates = selectRates(src.Watch.Watch.Rates(now), tenant)
	}
	return n, addAgents(tx, n, rates)
}

// Health returns what Live does, without the agents.
func Health(src Source, r *health.Report, now time.Time, tenant string) *api.Now {
	n := &api.Now{At: now.UTC(), Tenant: tenant, PID: os.Getpid(), Halt: src.Halt}
	n.Health, n.Because = r.Health, slices.Clone(r.Because)
	if src.Watch != nil {
		addAlarms(n, slices.DeleteFunc(src.Watch.Watch.Hold(), func(s watch.State) bool {
			return tenant != "" && s.Tenant != "" && s.Tenant != tenant
		}))
		if known, why := src.Watch.Known(); !known {
			addUnknown(n, "what is usual is not known: "+why)
		}
		if src.Witness != "" {
			addUnknown(n, src.Witness)
		}
	} else {
		addUnwatched(n)
	}
	if n.Halted && n.Health != health.Red {
		worsen(n, health.Red, "everything is halted")
	}
	return n
}

// Read returns what happens now in a state that no process owns: s is the store open for
// reading, nil if it cannot be read because of why. It reads the figures of the last hour from the ledger; which
// alarms hold is unknown. tenant is as in Live.
func Read(ctx context.Context, h api.Halt, s kernel.Store, why, tenant string) (*api.Now, error) {
	now := time.Now()
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
	r, err := selectTenant(whole, tenant)
	if err != nil {
		return nil, err
	}
	n.Health, n.Because = r.Health, r.Because
	if n.Halted && n.Health != health.Red {
		worsen(n, health.Red, "everything is halted")
	}
	addUnwatched(n)
	rates, err := readLastHour(ctx, s, now)
	seen := s.View(ctx, func(tx kernel.Tx) error { return addAgents(tx, n, selectRates(rates, tenant)) })
	if err != nil {
		n.Active = nil
	}
	return n, errors.Join(err, seen)
}

// selectTenant returns the report of one tenant; the whole if none is named, and
// if nothing could be read.
func selectTenant(r health.Report, tenant string) (health.Report, error) {
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

// selectRates returns those of one tenant's agents; all if none is named.
func selectRates(all []watch.Rates, tenant string) []watch.Rates {
	return slices.DeleteFunc(all, func(r watch.Rates) bool { return tenant != "" && r.Tenant != tenant })
}

// readLastHour returns the rates of agents by what the ledger has of the hour before now.
func readLastHour(ctx context.Context, s kernel.Store, now time.Time) ([]watch.Rates, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	w := anomaly.New(anomaly.Options{}, watch.Limits{})
	err := report.ReadSince(ctx, s, now.Add(-time.Hour), func(l *ledger.Stored) error { return w.Replay(l, now) })
	if err != nil {
		return nil, err
	}
	return w.Watch.Rates(now), nil
}

// worsen lowers the health to that level at most, and puts why before the other reasons.
func worsen(n *api.Now, to health.Level, why string) {
	n.Health, n.Because = min(n.Health, to), append([]string{why}, n.Because...)
}

// addUnknown adds a sentence about something unknown (D41b).
func addUnknown(n *api.Now, why string) {
	n.Health, n.Because = min(n.Health, health.Yellow), append(n.Because, why)
}

func addUnwatched(n *api.Now) { addUnknown(n, "which alarms hold: unknown, for no daemon watches") }

// addAlarms adds the conditions that hold, also those that began on another day.
func addAlarms(n *api.Now, hold []watch.State) {
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

// addAgents adds what the store knows, and the agents: the most active first, and
// after them those that are paused and did nothing.
func addAgents(tx kernel.Tx, n *api.Now, rates []watch.Rates) error {
	count, err := CountWaiting(tx, n.Tenant)
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
	rankAgents(n)
	return nil
}

// rankAgents sorts the agents and leaves out those beyond the bound.
func rankAgents(n *api.Now) {
	slices.SortFunc(n.Agents, func(a, b api.AgentNow) int {
		return cmp.Or(cmp.Compare(b.Actions, a.Actions), cmp.Compare(b.Cost, a.Cost), b.Last.Compare(a.Last), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Agent, b.Agent))
	})
	n.MoreAgents = max(0, len(n.Agents)-api.MaxNow)
	n.Agents = n.Agents[:len(n.Agents)-n.MoreAgents]
}

// CountWaiting returns the number of reviews that wait for a person: of one tenant, or of all if tenant is empty.
func CountWaiting(tx kernel.Tx, tenant string) (n int, err error) {
	for _, state := range []review.State{review.Pending, review.Deferred} {
		rs, err := tx.Reviews(tenant, state, 1000)
		if err != nil {
			return 0, err
		}
		n += len(rs)
	}
	return n, nil
}
