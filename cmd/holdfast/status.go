package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

func statusCommand() command {
	return command{name: "status", about: "how Holdfast is; exit code 5 when it is halted", run: showStatus, help: `
Say how Holdfast is: whether it is halted, who runs it, what waits for a
person, and how large the ledger is. It works without a daemon, and changes
nothing. The exit code is 5 when everything is halted, and 1 when no daemon
could start because the configuration does not load, or the state cannot be read.

    holdfast status [--json]

    $ holdfast status
`}
}

func isNoState(err error) bool { return errors.Is(err, errNoState) }

func isNotFound(err error) bool {
	return errors.Is(err, kernel.ErrNotFound) || holdfast.KindOf(err) == holdfast.KindNotFound && !isNoState(err)
}

func showStatus(a *app, args []string) error {
	if _, err := a.parse(a.flags("status"), args, 0, 0); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	s, up, unread := a.howIsIt(p)
	if s == nil {
		return unread
	}
	a.haltedHere(&s.Halt)
	a.tightest(s, up)
	if a.json {
		err = a.printJSON(s)
	} else {
		a.sayStatus(s, up, unread != nil)
	}
	switch {
	case err != nil:
		return err
	case s.Halted:
		return status(exitHalted)
	}
	return unread
}

// haltedHere adds that HOLDFAST_ENABLED of this very process halts it (D35).
func (a *app) haltedHere(s *api.Halt) {
	if enabled, set := a.lookup("HOLDFAST_ENABLED"); !latch.Enabled(enabled, set) && !s.Halted {
		s.Halted, s.HaltWhy = true, fmt.Sprintf("HOLDFAST_ENABLED is %q here", clean(enabled))
	}
}

// howIsIt asks the owner, and looks for itself where there is none or it does
// not answer. The error says what could not be learned; up is whether the
// owner said it.
func (a *app) howIsIt(p daemon.Paths) (s *api.Status, up bool, err error) {
	_, s, dialled := a.dial(a.ctx, p)
	if dialled == nil {
		return s, true, nil
	}
	s, err = a.still(p)
	err = errors.Join(err, a.couldStart(p, s))
	if errors.Is(dialled, api.ErrNobody) {
		return s, false, err
	}
	return s, false, errors.Join(a.silent(p, dialled), err)
}

// couldStart adds to the problems what a daemon that is started now would meet:
// a configuration that does not load, which is an error, and no operator key.
func (a *app) couldStart(p daemon.Paths, s *api.Status) error {
	if s == nil {
		return nil
	}
	switch keys, err := operatorKeys(p); {
	case err != nil:
		s.Problems = append(s.Problems, "the operators' keys cannot be read: "+err.Error())
	case len(keys) == 0:
		s.Problems = append(s.Problems, "there is no operator key: nobody can approve or resume; make one with `"+a.forState("holdfast init")+"`")
	}
	_, l, err := a.loads()
	if err != nil {
		s.Problems = append(s.Problems, "the configuration does not load, and so everything that acts is refused")
		return err
	}
	for _, m := range daemon.MissingCredentials(a.ctx, l, false) {
		s.Problems = append(s.Problems, m.String()+" ("+m.Hint+")")
	}
	return nil
}

// still is the status of a state that nobody owns now.
func (a *app) still(p daemon.Paths) (s *api.Status, err error) {
	ctx, cancel := context.WithTimeout(a.ctx, 30*time.Second)
	defer cancel()
	err = a.read(func(_ daemon.Paths, st kernel.Store) error {
		s, err = daemon.Look(ctx, p, st)
		return err
	})
	if err == nil {
		return s, nil
	}
	// What can be known without the store is said all the same.
	why := err.Error()
	if isNoState(err) {
		why = "there is no ledger yet: nothing has crossed"
	} else if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		why = e.Why
	}
	s, lerr := daemon.Look(ctx, p, nil)
	if lerr == nil && len(s.Problems) == 0 {
		s.Problems = append(s.Problems, why)
	}
	if isNoState(err) {
		err = nil
	}
	return s, errors.Join(lerr, err)
}

// maxSpent is how many lines say what was spent; --json has all.
const maxSpent = 5

// spendLines say what was spent on models today, the dearest of all tenants first.
func spendLines(s *api.Spend) []string {
	if s == nil {
		return nil
	}
	sum := func(list []kernel.Spend) (micro int64) {
		for i := range list {
			micro += list[i].Micro
		}
		return micro
	}
	out := []string{fmt.Sprintf("on models: %s today, %s this month", story.Dollars(sum(s.Today)), story.Dollars(sum(s.ThisMonth)))}
	trees := kernel.SpentByTrees(s.Today)
	for i := range trees[:min(len(trees), maxSpent)] {
		x := &trees[i]
		out = append(out, fmt.Sprintf("%s and those within it: %s, %s", clean(x.Agent), story.Dollars(x.Micro), story.Count(int(x.Calls), "call", "calls")))
	}
	for i := range s.Today[:min(len(s.Today), maxSpent)] {
		x := &s.Today[i]
		of := ""
		if x.Tenant != holdfast.Local {
			of = " of " + clean(x.Tenant)
		}
		line := fmt.Sprintf("%s%s on %s%s: %s, %s", clean(x.Agent), of, clean(x.Model), prefix(" for ", clean(x.Intent)), story.Dollars(x.Micro), story.Count(int(x.Calls), "call", "calls"))
		if x.Unpriced > 0 {
			line += fmt.Sprintf(", %d of them without a price", x.Unpriced)
		}
		out = append(out, line)
	}
	if more := len(s.Today) - maxSpent; more > 0 {
		out = append(out, fmt.Sprintf("%d more, %s together: `holdfast status --json`", more, story.Dollars(sum(s.Today[maxSpent:]))))
	}
	return out
}

func (a *app) sayStatus(s *api.Status, up, broken bool) {
	l, now := a.look(), time.Now()
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
	var rows [][]string
	row := func(name, format string, args ...any) {
		rows = append(rows, []string{"  " + name, fmt.Sprintf(format, args...)})
	}
	if s.Halted {
		row("because", "%s", because(s.Halt, now))
	}
	for i := range s.HaltHooks {
		row("halt hook", "%s", hookLine(&s.HaltHooks[i]))
	}
	if up {
		row("daemon", "process %d, %s, since %s", s.PID, s.Version, s.Since.Format(time.RFC3339))
	} else {
		row("daemon", "none answers")
	}
	if s.DiskUsed == 0 && s.DiskFree == 0 { // it is not there yet: its disk was not asked
		row("state", "%s", s.State)
	} else {
		row("state", "%s, %s used, %s free", s.State, bytesOf(s.DiskUsed), bytesOf(s.DiskFree))
	}
	if up {
		row("policy", "%s%s", s.Policy[:min(12, len(s.Policy))], prefix(" from ", strings.Join(s.Files, ", ")))
		row("operators", "%s", or(strings.Join(s.Operator, ", "), "none"))
	}
	row("reviews", "%s", story.Count(s.Waiting, "waits", "wait"))
	within := ""
	if s.Within > 0 {
		within = fmt.Sprintf(", and %d within them", s.Within)
	}
	row("agents", "%d%s%s", s.Agents, within, prefix(", paused: ", strings.Join(s.Paused, ", ")))
	for _, name := range slices.Sorted(maps.Keys(s.PausedWhy)) {
		row("paused", "%s: %s", name, s.PausedWhy[name])
	}
	a.rowsOfWatch(row, s.Watch)
	for _, g := range s.Goals {
		row("goals", "%s", pausedGoals(&g))
	}
	for _, b := range s.Blocked {
		until := "until a person lifts it"
		if !b.Until.IsZero() {
			until = "until " + b.Until.Format(time.RFC3339)
		}
		row("blocked", "every agent of tenant %s, %s: %s; `%s` lifts it", clean(b.Tenant), until, clean(b.Budget), a.forState("holdfast budget unblock"))
	}
	if s.ChainsEnded > 0 {
		row("chains", "%d ended by a spent budget", s.ChainsEnded)
	}
	for _, f := range s.Flights {
		row("in flight", "%s by %s, %s", f.Boundary, f.Agent, story.Short(now.Sub(f.Since)))
	}
	if s.Executor != "" {
		row("executor", "%s, code over gRPC", s.Executor)
	}
	for _, p := range s.Sandboxes {
		row("sandbox", "%s", tierWords(p))
	}
	if e := s.Egress; e != nil {
		row("egress", "%s listed, %s served", story.Count(e.Domains, "domain", "domains"), story.Count(e.Runs, "workspace", "workspaces"))
		for _, x := range e.Listeners {
			row("egress", "%s speaks for %s%s", x.Address, x.Agent, prefix(", kind ", x.Kind))
		}
	}
	for _, c := range s.Alerts {
		row("alerts", "%s", alertLine(c))
	}
	if s.Tightest != nil {
		row("budgets", "%s", tightestLine(s.Tightest, now))
	}
	for _, line := range spendLines(s.Spend) {
		row("spent", "%s", line)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
		row("mcp", "%s %s", name, s.Servers[name])
	}
	if s.Past != nil {
		for _, p := range s.Past.Past {
			how := story.Count(int(p.Entries), "crossing", "crossings") + " within its window"
			if !p.Ready {
				how = fmt.Sprintf("being read, %d of %d leaves", s.Past.Read, s.Past.Of)
				if !s.Past.Until.IsZero() {
					how += ", ready about " + s.Past.Until.Format(time.RFC3339)
				}
			}
			row("past", "%s (rule %s): %s", p.Text, p.Rule, how)
		}
	}
	for _, t := range s.Ledger {
		signed := "none signed yet"
		if !t.At.IsZero() {
			signed = fmt.Sprintf("the first %d signed %s", t.Signed, story.Ago(t.At, now))
		}
		row("ledger", "%s: %s, %s", treeName(t.Tenant), story.Count(t.Leaves, "leaf", "leaves"), signed)
	}
	for _, w := range s.Weakened {
		row("weakened", "%s", w)
	}
	for _, w := range s.Problems {
		row("problem", "%s", w)
	}
	table(a.out, rows)
}

// pausedGoals says that a tenant's goals are paused, and what for.
func pausedGoals(g *kernel.PausedGoals) string {
	of := ""
	if g.Tenant != holdfast.Local {
		of = " of " + clean(g.Tenant)
	}
	if g.Unread {
		return "refused" + of + ": whether they are paused cannot be read"
	}
	return fmt.Sprintf("PAUSED%s since %s; %s to be acknowledged", of, g.Since.Format(time.RFC3339), story.Count(g.Waiting, "violation waits", "violations wait"))
}
