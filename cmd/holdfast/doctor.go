package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/cli/early/buildinfo"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
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
		why, more, _ := strings.Cut(f.Why, "\n") // a configuration has a line for each mistake
		fmt.Fprintf(a.out, "%s %-4s  %-15s  %s\n", l.mark(marks[f.How]), f.How, f.Check, clean(why))
		for line := range strings.Lines(more) {
			fmt.Fprintf(a.out, "%25s%s\n", "", clean(strings.TrimSuffix(line, "\n")))
		}
		if f.Hint != "" {
			fmt.Fprintf(a.out, "%25s%s\n", "", l.dim("hint: "+clean(f.Hint)))
		}
	}
}

func (a *app) seeState(p daemon.Paths) finding {
	if !there(p.Dir) {
		return warn("`holdfast init` makes it", "%s is not there yet", p.Dir)
	}
	real, err := daemon.OpenState(p.Dir)
	if err != nil {
		return bad(err)
	}
	return okay("%s is yours alone", real.Dir)
}

// loads finds the configuration and loads it as a daemon would that starts here.
func (a *app) loads() (string, *daemon.Loaded, error) {
	config, err := daemon.FindConfig(a.config, a.lookup)
	if err != nil {
		return "", nil, err
	}
	l, err := daemon.LoadHere(config)
	return config, l, err
}

func (a *app) seeConfig(daemon.Paths) finding {
	config, l, err := a.loads()
	if err != nil {
		return bad(err)
	}
	if all := l.Policy.Weakened; len(all) > 0 {
		return warn("take back what is not meant, under `unsafe` or where the boundary or the host is listed", "weakened: %s", strings.Join(all, "; "))
	}
	if config == "" {
		return okay("none, the safe defaults govern")
	}
	return okay("%s loads, and only you can change it", config)
}

// seeConfig adds what the owner that runs has not taken up.
func (o *dialled) seeConfig(p daemon.Paths) finding {
	f := o.a.seeConfig(p)
	if o.err != nil || f.How == "FAIL" {
		return f
	}
	for _, why := range o.status.Problems {
		if strings.HasSuffix(why, "the daemon is started again") {
			return warn("end the daemon, and start it with `holdfast up`", "%s", why)
		}
	}
	return f
}

// dialled is the owner as it answered once: one that is stopped takes two
// seconds to be found out.
type dialled struct {
	a      *app
	client *api.Client
	status *api.Status
	err    error
}

func (a *app) dialled(p daemon.Paths) *dialled {
	c, s, err := a.dial(a.ctx, p)
	return &dialled{a, c, s, err}
}

func (o *dialled) see(p daemon.Paths) finding {
	switch {
	case o.err == nil:
		return okay("process %d answers", o.status.PID)
	case !errors.Is(o.err, api.ErrNobody):
		return bad(o.a.silent(p, o.err))
	case !there(p.Dir):
		return okay("nobody, and nothing to own")
	}
	lock, err := daemon.AcquireOwner(p.Dir, time.Now())
	if err != nil {
		return bad(err)
	}
	if err := lock.Release(); err != nil {
		return bad(err)
	}
	return okay("nobody; the lock can be taken")
}

func (a *app) seeLatch(p daemon.Paths) finding {
	if enabled, set := a.lookup("HOLDFAST_ENABLED"); !latch.Enabled(enabled, set) {
		return warn("unset it", "HOLDFAST_ENABLED is %q, so everything started here is halted", enabled)
	}
	if !there(p.Dir) {
		return okay("not set")
	}
	latch, err := latch.New(p.Halt)
	if err != nil {
		return bad(err)
	}
	s, err := latch.Read()
	switch {
	case err != nil:
		return finding{How: "FAIL", Why: "it cannot be read, so everything is halted: " + err.Error(), Hint: "look at " + p.Halt}
	case s.Halted:
		return warn("`holdfast resume` lifts it", "everything is halted by %s: %s", or(s.Who, "somebody"), s.Why)
	}
	return okay("readable, and not set")
}

// seeLedger looks at the end of every tree; `ledger verify` looks at all.
func (a *app) seeLedger(daemon.Paths) finding {
	var n int64
	err := a.read(func(_ daemon.Paths, s kernel.Store) error {
		if err := a.structure(s); err != nil {
			return err
		}
		trees, err := a.trees(s)
		if err != nil {
			return err
		}
		for _, t := range trees {
			from := max(0, t.head.Size-256)
			if err := a.view(s, func(tx kernel.Tx) error {
				return tx.Leaves(t.head.Tenant, from, t.head.Size, recordHash)
			}); err != nil {
				return fmt.Errorf("tenant %s: %w", t.head.Tenant, err)
			}
			n += t.head.Size
		}
		return nil
	})
	switch {
	case isNoState(err):
		return okay("none yet")
	case err != nil:
		return bad(err)
	}
	return okay("%s; the end of each tree is intact (`ledger verify` checks all)", story.Count(n, "leaf", "leaves"))
}

func (a *app) seeLedgerKey(p daemon.Paths) finding {
	if !there(p.DB) {
		return okay("none yet")
	}
	v, err := daemon.LedgerKey(p)
	if err != nil {
		return bad(err)
	}
	return okay("%s", v.Runtime())
}

func (a *app) seeOperator(p daemon.Paths) finding {
	if !there(p.OperatorPub) {
		return warn("make one with `holdfast init`", "there is none: nobody can approve or resume")
	}
	keys, err := operatorKeys(p)
	if err != nil {
		return bad(err)
	}
	if len(keys) == 0 {
		return bad(fail("make one with `holdfast init`", "%s holds no key", p.OperatorPub))
	}
	var who []string
	for _, k := range keys {
		who = append(who, k.ID()+prefix(" ", k.Name()))
	}
	all := strings.Join(who, ", ")
	if _, err := readPrivate(p.OperatorKey, operator.MaxSealed); err != nil {
		return warn("it may be kept elsewhere on purpose", "%s, and the sealed key is not beside it: %v", all, err)
	}
	return okay("%s", all)
}

// leastDisk is how much room there should be, in bytes.
const leastDisk = 256 << 20

func (a *app) seeDisk(p daemon.Paths) finding {
	dir := p.Dir
	if !there(dir) {
		return okay("nothing is stored yet")
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return bad(err)
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	if free < leastDisk {
		return warn("make room: on a full disk everything is refused", "only %s free", bytesOf(free))
	}
	return okay("%s free", bytesOf(free))
}

// seeClock compares the clock with the program's own age and the newest record.
func (a *app) seeClock(daemon.Paths) finding {
	now := time.Now()
	if built, err := time.Parse(time.RFC3339, buildinfo.Read().Time); err == nil && now.Before(built.Add(-24*time.Hour)) {
		return finding{How: "FAIL", Why: fmt.Sprintf("it says %s, before this program was built", now.UTC().Format(time.RFC3339)), Hint: "set the clock: tokens and windows depend on it"}
	}
	var newest time.Time
	err := a.read(func(_ daemon.Paths, s kernel.Store) error {
		trees, err := a.trees(s)
		if err != nil {
			return err
		}
		return a.view(s, func(tx kernel.Tx) error {
			for _, t := range trees {
				if t.head.Size == 0 {
					continue
				}
				l, err := tx.Leaf(t.head.Tenant, t.head.Size-1)
				if err != nil {
					return err
				}
				if l.At.After(newest) {
					newest = l.At
				}
			}
			return nil
		})
	})
	if err != nil && !isNoState(err) {
		return warn("", "the newest record cannot be read: %s", bad(err).Why)
	}
	if newest.After(now.Add(time.Minute)) {
		return finding{How: "FAIL", Why: fmt.Sprintf("the newest record is %s ahead of it", story.Short(newest.Sub(now))), Hint: "set the clock: tokens and windows depend on it"}
	}
	return okay("%s, not before the newest record", now.UTC().Format(time.RFC3339))
}

// nobodys is a boundary that no configuration should list.
const nobodys = "doctor/nobody-listed-this"

// seeRefusal proves that what is not listed is refused.
func (o *dialled) seeRefusal(p daemon.Paths) finding {
	if err := daemon.StoreGone(p); err != nil {
		return bad(err)
	}
	if !there(p.DB) {
		return warn("`holdfast init` makes the state, then ask again", "not asked: there is no state yet")
	}
	var f finding
	ask := func(c *api.Client, _ *api.Status) error {
		ans, err := c.Check(o.a.ctx, api.Ask{Boundary: nobodys, Payload: []byte(`{}`), Agent: "doctor"})
		if err != nil {
			return err
		}
		switch code := answerCode(ans); code {
		case exitRefused, exitHalted:
			f = okay("a boundary that nobody listed is refused")
		default:
			f = finding{How: "FAIL", Why: fmt.Sprintf("a boundary that nobody listed is not refused (exit code %d)", code), Hint: "does the configuration list a pattern that covers everything?"}
		}
		return nil
	}
	err := o.err
	switch {
	case err == nil:
		err = ask(o.client, o.status)
	case errors.Is(err, api.ErrNobody):
		err = o.a.reach(ask)
	default:
		return warn("end its owner, then ask again", "not asked: the owner of the state does not answer")
	}
	if err != nil {
		return bad(err)
	}
	return f
}

// recordHash checks that a leaf's hash is its record's.
func recordHash(l ledger.Stored) error {
	if ledger.LeafHash(l.Record) != l.Hash {
		return fmt.Errorf("leaf %d is not what was written", l.Seq)
	}
	return nil
}
