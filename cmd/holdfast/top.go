package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

func topCommand() command {
	return command{name: "top", about: "what agents do now: rates, cost, errors, alarms, and the day's health", run: showTop, help: `
Show what goes on: today's health (GREEN, YELLOW or RED, and why), whether
everything is halted, how many questions wait for a person, the alarms that hold,
and the agents of the last hour, the most active first: how many actions and steps
they made, what they cost, how many of their last actions failed. On a terminal it
shows it anew each second, until q. Where standard output is no terminal, or with
--once, it says it once, and the exit code is 5 when everything is halted.

With --tenant it is of that tenant alone, and of what is everybody's, such as a
halt; else of all together.

Without a daemon it reads the ledger, once; which alarms hold nobody knows then.

    holdfast top [--once] [--tenant NAME] [--json]

    $ holdfast top --once
`}
}

func showTop(a *app, args []string) error {
	fs := a.flags("top")
	once := fs.Bool("once", false, "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	tenant := a.oneTenant(fs)
	n, err := a.now(p, tenant)
	if n == nil {
		return err
	}
	dumb, _ := a.lookup("TERM")
	switch {
	case a.json:
		err = errors.Join(a.printJSON(n), err)
	case n.PID > 0 && !*once && dumb != "dumb" && isTerminal(a.out):
		return a.topLive(p, n, tenant)
	default:
		a.printTop(n)
	}
	if err == nil && n.Halted {
		return status(exitHalted)
	}
	return err
}

// topWait bounds one question to the daemon.
const topWait = 15 * time.Second

// now asks the owner what goes on, and looks for itself where there is none or it
// does not answer: then the error says that it was so. Of a state that cannot be
// read there is an answer too, beside the error.
func (a *app) now(p daemon.Paths, tenant string) (*api.Now, error) {
	n, err := a.askNow(p, tenant)
	if err == nil || holdfast.KindOf(err) == holdfast.KindNotFound {
		return n, err
	}
	var silent error
	if !errors.Is(err, api.ErrNobody) {
		silent = a.silent(p, err)
	}
	n, err = a.lookNow(p, tenant)
	if n != nil {
		a.haltedHere(&n.Halt)
	}
	return n, errors.Join(silent, err)
}

// askNow asks the owner alone.
func (a *app) askNow(p daemon.Paths, tenant string) (*api.Now, error) {
	ctx, cancel := context.WithTimeout(a.ctx, topWait)
	defer cancel()
	c, _, err := a.dial(ctx, p)
	if err != nil {
		return nil, err
	}
	n, err := c.Now(ctx, tenant)
	if err != nil {
		if ctx.Err() != nil {
			err = &holdfast.Error{Kind: holdfast.KindTimeout, Why: "the daemon does not answer", Hint: "look at it, then continue it or end it", Err: err}
		}
		return nil, err
	}
	a.haltedHere(&n.Halt)
	return n, nil
}

// lookNow reads it from the state.
func (a *app) lookNow(p daemon.Paths, tenant string) (n *api.Now, err error) {
	err = a.read(func(_ daemon.Paths, s kernel.Store) error {
		n, err = daemon.LookNow(a.ctx, p, s, "", tenant)
		return err
	})
	if err == nil || isNoState(err) || holdfast.KindOf(err) == holdfast.KindNotFound || a.ctx.Err() != nil {
		return n, err
	}
	why := err.Error()
	if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		why = e.Why
	}
	if n == nil || n.Health != health.Red {
		var bad error
		n, bad = daemon.LookNow(a.ctx, p, nil, why, tenant)
		err = errors.Join(err, bad)
	}
	return n, err
}
