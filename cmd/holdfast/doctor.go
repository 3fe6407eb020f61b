package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
)

func doctorCommand() command {
	return command{name: "doctor", about: "check that everything works, and that a refusal is a refusal", run: doctor, help: `
Look at everything Holdfast stands on, and prove that it refuses: it asks about
a boundary that nobody listed, and expects a no; it runs small programs in the
sandbox that try each of its walls, and one on a work tree, as ` + "`holdfast run`" + `
does; and it asks for each credential of the allowlist, of which it shows none.
The exit code is 1 when a check failed; each says what to do. A wall that
cannot stand on this system is a warning: what needs it is refused.

    holdfast doctor [--json]

    $ holdfast doctor
`}
}

// trySandbox tries the sandbox. Tests of the other checks leave it out.
var trySandbox = (*app).seeSandbox

// finding is the result of one check.
type finding struct {
	Check string `json:"check"`
	How   string `json:"result"` // ok, warn or FAIL
	Why   string `json:"why"`
	Hint  string `json:"hint,omitempty"`
}

func okay(why string, args ...any) finding { return finding{How: "ok", Why: fmt.Sprintf(why, args...)} }

func warn(hint, why string, args ...any) finding {
	return finding{How: "warn", Why: fmt.Sprintf(why, args...), Hint: hint}
}

func bad(err error) finding {
	var e *holdfast.Error
	if errors.As(err, &e) {
		return finding{How: "FAIL", Why: e.Why, Hint: e.Hint}
	}
	return finding{How: "FAIL", Why: err.Error()}
}

func doctor(a *app, args []string) error {
	if _, err := a.parse(a.flags("doctor"), args, 0, 0); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	owner := a.dialled(p)
	checks := []struct {
		name string
		do   func(daemon.Paths) finding
	}{
		{"state directory", a.seeState}, {"configuration", owner.seeConfig}, {"owner", owner.see},
		{"halt latch", a.seeLatch}, {"ledger", a.seeLedger}, {"counters", a.seeCounters}, {"ledger key", a.seeLedgerKey},
		{"operator key", a.seeOperator}, {"egress", a.seeEgress}, {"alerts", owner.seeAlerts}, {"snapshots", a.seeSnapshots}, {"disk", a.seeDisk}, {"clock", a.seeClock}, {"refusal", owner.seeRefusal},
	}
	var found []finding
	for _, c := range checks {
		f := c.do(p)
		f.Check = c.name
		found = append(found, f)
	}
	found = append(found, owner.seeCredentials()...)
	found = append(found, trySandbox(a, p)...)
	failed := slices.ContainsFunc(found, func(f finding) bool { return f.How == "FAIL" })
	if a.json {
		err = a.printJSON(map[string]any{"ok": !failed, "state": p.Dir, "checks": found})
	} else {
		a.sayFindings(found)
	}
	if err == nil && failed {
		return status(exitError)
	}
	return err
}

func (a *app) sayFindings(found []finding) {
	l := a.look()
	marks := map[string]holdfast.Verdict{"ok": holdfast.Allow, "warn": holdfast.Hold}
	for _, f := range found {
		a.printHanging(fmt.Sprintf("%s %-4s  %-15s  ", l.mark(marks[f.How]), f.How, f.Check), f.Why)
		if f.Hint != "" {
			fmt.Fprintf(a.out, "%25s%s\n", "", l.dim("hint: "+clean(f.Hint)))
		}
	}
}

// printHanging prints head and the first line of text, then its other lines, indented. A configuration has a line for
// each mistake.
func (a *app) printHanging(head, text string) {
	for line := range strings.Lines(strings.TrimSuffix(text, "\n") + "\n") {
		fmt.Fprintf(a.out, "%s%s\n", head, clean(strings.TrimSuffix(line, "\n")))
		head = strings.Repeat(" ", 25)
	}
}
