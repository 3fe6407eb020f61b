package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

// statusTable is the text form of a status: rows of a name and a value.
type statusTable struct {
	a    *app
	s    *api.Status
	now  time.Time
	rows [][]string
}

// sayStatus prints s. Without an owner up is false; broken means that an error follows.
func (a *app) sayStatus(s *api.Status, up, broken bool) {
	a.sayHeadline(s, broken)
	t := &statusTable{a: a, s: s, now: time.Now()}
	t.addHalt()
	t.addOwner(up)
	t.addAgents()
	t.addPauses()
	t.addWork()
	t.addMoney()
	t.addServers()
	t.addRules()
	t.addLedger()
	t.addProblems()
	table(a.out, t.rows)
}

// sayHeadline prints in one word whether everything works.
func (a *app) sayHeadline(s *api.Status, broken bool) {
	l := a.look()
	head, mark := "ready", l.mark(holdfast.Allow)
	switch {
	case s.Halted:
		head, mark = "HALTED", l.mark(holdfast.Deny)
	case broken:
		head, mark = "NOT READY", l.mark(holdfast.Deny)
	case len(s.Problems) > 0 || len(s.Goals) > 0:
		mark = l.mark(holdfast.Hold)
	}
	fmt.Fprintf(a.out, "%s %s\n", mark, l.bold(head))
}

// addRow adds a row: its name, and its value from a format.
func (t *statusTable) addRow(name, format string, args ...any) {
	t.rows = append(t.rows, []string{"  " + name, fmt.Sprintf(format, args...)})
}

func (t *statusTable) addHalt() {
	if t.s.Halted {
		t.addRow("because", "%s", because(t.s.Halt, t.now))
	}
	for i := range t.s.HaltHooks {
		t.addRow("halt hook", "%s", hookLine(&t.s.HaltHooks[i]))
	}
}

func (t *statusTable) addOwner(up bool) {
	s := t.s
	if up {
		t.addRow("daemon", "process %d, %s, since %s", s.PID, s.Version, s.Since.Format(time.RFC3339))
	} else {
		t.addRow("daemon", "none answers")
	}
	if s.DiskUsed == 0 && s.DiskFree == 0 { // without a state directory no disk was measured
		t.addRow("state", "%s", s.State)
	} else {
		t.addRow("state", "%s, %s used, %s free", s.State, bytesOf(s.DiskUsed), bytesOf(s.DiskFree))
	}
	if up {
		t.addRow("policy", "%s%s", s.Policy[:min(12, len(s.Policy))], prefix(" from ", strings.Join(s.Files, ", ")))
		t.addRow("operators", "%s", or(strings.Join(s.Operator, ", "), "none"))
	}
}

func (t *statusTable) addAgents() {
	s := t.s
	t.addRow("reviews", "%s", story.Count(s.Waiting, "waits", "wait"))
	within := ""
	if s.Within > 0 {
		within = fmt.Sprintf(", and %d within them", s.Within)
	}
	t.addRow("agents", "%d%s%s", s.Agents, within, prefix(", paused: ", strings.Join(s.Paused, ", ")))
	for _, name := range slices.Sorted(maps.Keys(s.PausedWhy)) {
		t.addRow("paused", "%s: %s", name, s.PausedWhy[name])
	}
	t.a.rowsOfWatch(t.addRow, s.Watch)
}

// addPauses adds what is refused beyond single agents: goals, tenants and chains.
func (t *statusTable) addPauses() {
	s := t.s
	for _, g := range s.Goals {
		t.addRow("goals", "%s", pausedGoals(&g))
	}
	for _, b := range s.Blocked {
		until := "until a person lifts it"
		if !b.Until.IsZero() {
			until = "until " + b.Until.Format(time.RFC3339)
		}
		t.addRow("blocked", "every agent of tenant %s, %s: %s; `%s` lifts it", clean(b.Tenant), until, clean(b.Budget),
			t.a.forState("holdfast budget unblock"))
	}
	if s.ChainsEnded > 0 {
		t.addRow("chains", "%d ended by a spent budget", s.ChainsEnded)
	}
}

// addWork adds the crossings in flight, and the parts of the daemon that act for them.
func (t *statusTable) addWork() {
	s := t.s
	for _, f := range s.Flights {
		t.addRow("in flight", "%s by %s, %s", f.Boundary, f.Agent, story.Short(t.now.Sub(f.Since)))
	}
	if s.Executor != "" {
		t.addRow("executor", "%s, code over gRPC", s.Executor)
	}
	for _, p := range s.Sandboxes {
		t.addRow("sandbox", "%s", tierWords(p))
	}
	if e := s.Egress; e != nil {
		t.addRow("egress", "%s listed, %s served", story.Count(e.Domains, "domain", "domains"),
			story.Count(e.Runs, "workspace", "workspaces"))
		for _, x := range e.Listeners {
			t.addRow("egress", "%s speaks for %s%s", x.Address, x.Agent, prefix(", kind ", x.Kind))
		}
	}
	for _, c := range s.Alerts {
		t.addRow("alerts", "%s", alertLine(c))
	}
}

func (t *statusTable) addMoney() {
	if t.s.Tightest != nil {
		t.addRow("budgets", "%s", tightestLine(t.s.Tightest, t.now))
	}
	for _, line := range spendLines(t.s.Spend) {
		t.addRow("spent", "%s", line)
	}
}

func (t *statusTable) addServers() {
	for _, name := range slices.Sorted(maps.Keys(t.s.Servers)) {
		t.addRow("mcp", "%s %s", name, t.s.Servers[name])
	}
}

// addRules adds the progress of reading the history that rules ask for.
func (t *statusTable) addRules() {
	past := t.s.Past
	if past == nil {
		return
	}
	for _, p := range past.Past {
		how := story.Count(int(p.Entries), "crossing", "crossings") + " within its window"
		if !p.Ready {
			how = fmt.Sprintf("being read, %d of %d leaves", past.Read, past.Of)
			if !past.Until.IsZero() {
				how += ", ready about " + past.Until.Format(time.RFC3339)
			}
		}
		t.addRow("past", "%s (rule %s): %s", p.Text, p.Rule, how)
	}
}

func (t *statusTable) addLedger() {
	for _, tree := range t.s.Ledger {
		signed := "none signed yet"
		if !tree.At.IsZero() {
			signed = fmt.Sprintf("the first %d signed %s", tree.Signed, story.Ago(tree.At, t.now))
		}
		t.addRow("ledger", "%s: %s, %s", treeName(tree.Tenant), story.Count(tree.Leaves, "leaf", "leaves"), signed)
	}
}

func (t *statusTable) addProblems() {
	for _, w := range t.s.Weakened {
		t.addRow("weakened", "%s", w)
	}
	for _, w := range t.s.Problems {
		t.addRow("problem", "%s", w)
	}
}

// pausedGoals says that a tenant's goals are paused, and what for.
func pausedGoals(g *goal.Paused) string {
	of := ""
	if g.Tenant != holdfast.Local {
		of = " of " + clean(g.Tenant)
	}
	if g.Unread {
		return "refused" + of + ": whether they are paused cannot be read"
	}
	return fmt.Sprintf("PAUSED%s since %s; %s to be acknowledged", of, g.Since.Format(time.RFC3339), story.Count(g.Waiting, "violation waits", "violations wait"))
}
