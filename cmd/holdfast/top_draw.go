package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

const (
	// plainRows is how many rows there are where no terminal says how many.
	plainRows = 60
	// leastRows is what is drawn at least, whatever a terminal says.
	leastRows = 16
	// maxBecause is how many reasons are said; --json has all.
	maxBecause = 3
	// maxAgentName is how wide an agent's name is shown, in columns.
	maxAgentName = 32
)

// printTop says once what goes on.
func (a *app) printTop(n *api.Now) {
	l := a.look()
	for _, line := range topLines(n, l, rowsOf(a.out)) {
		fmt.Fprintln(a.out, line)
	}
}

// topLines is what goes on as at most so many lines, each no wider than the
// terminal.
func topLines(n *api.Now, l look, rows int) []string {
	rows = max(rows, leastRows)
	head := topHead(n, l)
	alarms := topAlarms(n, l, max(2, (rows-len(head))/3))
	return append(append(head, alarms...), topAgents(n, l, rows-len(head)-len(alarms))...)
}

// topHead is the health, and how many of what there are.
func topHead(n *api.Now, l look) []string {
	mark := l.mark(holdfast.Deny)
	switch n.Health {
	case health.Green:
		mark = l.mark(holdfast.Allow)
	case health.Yellow:
		mark = l.mark(holdfast.Hold)
	}
	halted := ""
	if n.Halted {
		halted = "  HALTED: " + or(because(n.Halt, n.At), "for no reason that is known")
	}
	by := "by the daemon, process " + strconv.Itoa(n.PID)
	if n.PID == 0 {
		by = "by the ledger: no daemon answers"
	}
	out := []string{mark + " " + l.bold(n.Health.String()) + clipped(clean(halted), l.columns-10)}
	row := func(name, text string) {
		out = append(out, clipped("  "+name+strings.Repeat(" ", 9-len(name))+clean(text), l.columns))
	}
	row("at", n.At.UTC().Format("2006-01-02 15:04:05 UTC")+", "+by)
	if n.Tenant != "" {
		row("tenant", n.Tenant+" alone")
	}
	for _, why := range n.Because[:min(len(n.Because), maxBecause)] {
		row("because", why)
	}
	if more := len(n.Because) - maxBecause; more > 0 {
		row("because", fmt.Sprintf("%d more: `holdfast report daily`", more))
	}
	row("reviews", howMany(n.Waiting, "waits", "wait"))
	row("agents", howMany(n.Active, "was active", "were active")+" within the hour, "+howMany(n.Paused, "is paused", "are paused"))
	switch {
	case n.Alarms == nil:
		row("alarms", "unknown")
	default:
		row("alarms", story.Count(len(n.Alarms)+n.MoreAlarms, "holds", "hold"))
	}
	return out
}

// howMany is a count with its word, or that nobody knows.
func howMany(n *int, one, many string) string {
	if n == nil {
		return "unknown " + many
	}
	return story.Count(*n, one, many)
}

// topAlarms are the alarms that hold, in at most so many rows.
func topAlarms(n *api.Now, l look, rows int) []string {
	if len(n.Alarms) == 0 {
		return nil
	}
	list, more := fitting(n.Alarms, n.MoreAlarms, rows)
	var cells [][]string
	for _, x := range list {
		of := or(named(x.Tenant, x.Agent), or(prefix("tenant ", clean(x.Tenant)), "everything"))
		why := "since " + story.Short(n.At.Sub(x.Since))
		if x.Consequence {
			why += ", by what else holds"
		}
		cells = append(cells, []string{"  " + x.Severity, x.Condition, of, why})
	}
	return lined(cells, more, "alarms", l)
}

// topAgents are the agents, in at most so many rows; the most active are first.
func topAgents(n *api.Now, l look, rows int) []string {
	if len(n.Agents) == 0 {
		return nil
	}
	list, more := fitting(n.Agents, n.MoreAgents, rows-1)
	cells := [][]string{{"AGENT", "STATE", "ACTIONS/H", "STEPS/H", "COST/H", "ERRORS", "LAST", "ALARMS"}}
	for _, g := range list {
		state, errs := "running", "unknown"
		if g.Paused {
			state = "paused"
		}
		if g.ErrorRate != nil {
			errs = fmt.Sprintf("%.1f%%", 100**g.ErrorRate)
		}
		cells = append(cells, []string{named(g.Tenant, g.Agent), state, strconv.Itoa(g.Actions), strconv.Itoa(g.Steps), story.Dollars(g.Cost), errs,
			lastSeen(g.Last, n.At), or(strings.Join(g.Alarms, ", "), "-")})
	}
	return lined(cells, more, "agents", l)
}

// lastSeen is when an agent did something last; "-" where that is longer ago than
// anything is known of.
func lastSeen(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return story.Ago(t, now)
}

// named is an agent as it is shown; empty where none is meant.
func named(tenant, agent string) string {
	if agent == "" {
		return ""
	}
	name := clipped(clean(agent), maxAgentName)
	if tenant != holdfast.Local {
		name += " of " + clipped(clean(tenant), maxAgentName)
	}
	return name
}

// fitting are the first of a list that fit into so many rows, one of which says how
// many others there are, more among them.
func fitting[T any](list []T, more, rows int) ([]T, int) {
	if more == 0 && len(list) <= rows {
		return list, 0
	}
	n := min(len(list), max(rows-1, 1))
	return list[:n], more + len(list) - n
}

// lined are rows in columns, as lines that fit.
func lined(cells [][]string, more int, what string, l look) []string {
	out := strings.Split(strings.TrimSuffix(tabled(cells), "\n"), "\n")
	if more > 0 {
		out = append(out, fmt.Sprintf("  %d more %s", more, what))
	}
	for i := range out {
		out[i] = clipped(out[i], l.columns)
	}
	return out
}
