package main

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

func resumeCommand() command {
	return command{name: "resume", about: "lift the halt; needs the operator key", run: resume, help: `
Lift the halt. It needs a person: the operator's passphrase is asked for, and
who resumed is in the ledger before anything goes on.

    holdfast resume [--reason TEXT]

` + personFlags + `
    $ holdfast resume --reason 'the rule is fixed'
    resumed
`}
}

func resume(a *app, args []string) error {
	fs, p := a.flags("resume"), person{}
	p.flags(fs)
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	return a.orElse(a.reach(func(c *api.Client, st *api.Status) error {
		if !st.Halted {
			a.say("it is not halted")
			return nil
		}
		sign, err := a.signer(p, st)
		if err != nil {
			return err
		}
		signed, err := sign(operator.Statement{Act: operator.Resume})
		if err != nil {
			return err
		}
		if err := c.Resume(a.ctx, api.PersonsWord{Tenant: a.tenant, Signed: signed}); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(map[string]any{"resumed": true})
		}
		_, err = fmt.Fprintln(a.out, "resumed")
		return err
	}))
}

// orElse adds the way out to an error that a broken configuration may be the
// cause of. Going on with the defaults is none: they may erase sooner than the
// configuration that cannot be read.
func (a *app) orElse(err error) error {
	var e *holdfast.Error
	if !errors.As(err, &e) {
		return err
	}
	path, broken := config.FindPath(a.config, a.lookup)
	if broken == nil {
		_, broken = config.Load(path)
	}
	if broken == nil || a.ctx.Err() != nil {
		return err
	}
	own := *e
	own.Why = textWithoutKind(err, e)
	own.Hint = e.Hint + prefixIf(e.Hint, "; ") + "mend the configuration, or resume under one that loads with `holdfast resume --config FILE`"
	return &own
}
