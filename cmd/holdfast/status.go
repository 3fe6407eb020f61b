package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/service"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
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
	for _, m := range service.MissingCredentials(a.ctx, l.Domains, false) {
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
