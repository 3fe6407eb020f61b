package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

func haltCommand() command {
	return command{name: "halt", about: "stop everything, now", run: haltAll, help: `
Stop everything: the latch is written first, by this command itself, so that it
works without a daemon, without a configuration and with a broken one. Then the
daemon, where there is one, is told, and cuts every crossing in flight. Then the
halt_hooks of the configuration run, once: by the daemon, or else by this command.
Anybody may halt; only a person with the operator key can resume.

A file of the name HALT in the state directory halts too, whoever makes it: an empty
one says whose it is and since when, but not why. So does HOLDFAST_ENABLED what is
started with it set to anything but true, 1, yes or on.

    holdfast halt [REASON] [--who NAME]

    $ holdfast halt 'it deletes the wrong files'
    halted
`}
}

func haltAll(a *app, args []string) error {
	fs := a.flags("halt")
	who := fs.String("who", "", "")
	rest, err := a.parse(fs, args, 0, -1)
	if err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := os.MkdirAll(filepath.Dir(p.Halt), 0o700); err != nil {
		return err
	}
	latch, err := latch.New(p.Halt)
	if err != nil {
		return err
	}
	first, err := latch.SetFirst(untold(a.who(*who)), untold(or(strings.Join(rest, " "), "halted from the command line")), start)
	if err != nil && !latch.Halted() {
		return fail("end the daemon instead: `kill` it", "the latch could not be set: %v", err)
	}
	if err != nil {
		a.say("halted, but the latch is not complete: %v", err)
	}
	cut, perr := a.poke(p)
	took := time.Since(start)
	if a.json {
		answer := map[string]any{"halted": true, "first": first, "state": p.Dir, "daemon": cut, "micros": took.Microseconds()}
		if errors.Is(perr, api.ErrNobody) {
			answer["halt_hooks"] = a.haltHooks()
		} else if perr != nil {
			answer["daemon_problem"] = clean(perr.Error()) // it will see the latch by itself
		}
		return a.printJSON(answer)
	}
	word := "halted"
	if !first && err == nil {
		word = "halted already"
	}
	if _, err := fmt.Fprintln(a.out, word); err != nil {
		return err
	}
	switch {
	case errors.Is(perr, api.ErrNobody):
		a.say("no daemon runs; nothing will start until `%s`", a.forState("holdfast resume"))
		for _, r := range a.haltHooks() {
			a.say("halt hook %s", hookLine(&r))
		}
	case perr != nil:
		a.say("the latch is set, and the daemon, which does not answer, will see it by itself: %v", perr)
	default:
		a.say("%s cut in %s", story.Count(cut.Cut, "crossing", "crossings"), took.Round(time.Microsecond))
		if cut.Waiting > 0 {
			a.say("%s ignored it and still run", story.Count(cut.Waiting, "crossing", "crossings"))
		}
	}
	return nil
}

// poke tells the daemon, where there is one, that the latch was written.
func (a *app) poke(p daemon.Paths) (*api.Cutting, error) {
	c, _, err := a.dial(a.ctx, p)
	if err != nil {
		return nil, err
	}
	return c.Poke(a.ctx)
}

// because is why everything is halted, by whom and since when.
func because(s api.Halt, now time.Time) string {
	when := ""
	if !s.HaltWhen.IsZero() {
		when = ", " + story.Ago(s.HaltWhen, now)
	}
	return s.HaltWhy + prefix(", by ", s.HaltWho) + when
}

// sayHalt adds to the refusal of a run what `holdfast status` prints about the halt. The refusal itself also goes to
// agents: it names no one, and gives a reason only if HOLDFAST_ENABLED is it.
func (a *app) sayHalt(kind holdfast.Kind) {
	if kind != holdfast.KindHalted {
		return
	}
	p, err := a.paths()
	if err != nil {
		return // the refusal has been said, and this is beside it
	}
	_, s, err := a.dial(a.ctx, p)
	if err != nil {
		s, err = daemon.Look(a.ctx, p, nil)
	}
	if err == nil && s.Halted && s.HaltWhy != "" && !s.Conditions.Disabled {
		a.say("halted because: %s", clean(because(s.Halt, time.Now())))
	}
}
