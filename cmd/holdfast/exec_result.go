package main

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// executed shows what came of a run, and ends with its exit code.
func (a *app) executed(x *api.Executed, asked api.Execution, out string) error {
	if a.json {
		if err := a.printJSON(x); err != nil {
			return err
		}
	}
	if x.Result == nil && a.interrupted(x) {
		a.say("stopped by you before it began")
		return status(exitInterrupted)
	}
	if x.Result == nil {
		return a.unrun(x)
	}
	if !a.json {
		a.sayRun(x, asked)
	}
	if err := a.bringOut(x.Result, out); err != nil {
		return err
	}
	if a.interrupted(x) {
		return status(exitInterrupted)
	}
	return ranTo(x)
}

// unrun says why nothing ran, and ends with what the gates came to.
func (a *app) unrun(x *api.Executed) error {
	ans := &api.Answer{Outcome: x.Outcome, Failure: x.Failure}
	if !a.json {
		if err := a.sayRefusal(ans); err != nil {
			return err
		}
	}
	return ended(ans)
}

// ranTo ends with the exit code of what ran (D36): the program's own, or, where
// that is 0 and its result was refused, what that came to.
func ranTo(x *api.Executed) error {
	if x.Result.ExitCode != 0 {
		return status(x.Result.ExitCode)
	}
	if x.Failure != nil {
		return ended(&api.Answer{Outcome: x.Outcome, Failure: x.Failure})
	}
	return nil
}

// sayRefusal is sayAnswer on standard error: standard output is the program's.
// What the gates let in and then did not come about has failed.
func (a *app) sayRefusal(ans *api.Answer) error {
	own := *a
	own.out = a.err
	if o := ans.Outcome; o != nil && o.Verdict == holdfast.Allow && ans.Failure != nil {
		a.say("%s failed, crossing %s", o.Boundary, o.Crossing)
		a.sayLines(ans.Failure.Why + gate(ans.Failure.Gate))
		a.sayHalt(ans.Failure.Kind)
		a.hints(ans.Failure.Hint)
		for _, w := range o.Weakened {
			a.say("weakened: %s", w)
		}
		return nil
	}
	err := own.sayAnswer(ans)
	switch {
	case ans.Failure != nil:
		a.sayHalt(ans.Failure.Kind)
	case ans.Outcome != nil:
		op := ans.Outcome.Deciding()
		a.sayHalt(op.Kind)
	}
	return err
}

// sayRun writes the program's output where it belongs, and what Holdfast has to
// say behind it.
func (a *app) sayRun(x *api.Executed, asked api.Execution) {
	r := x.Result
	a.sayOutput(r)
	a.sayEnd(x, asked)
	a.sayBeside(r)
	for _, name := range slices.Sorted(maps.Keys(r.Skipped)) {
		a.say("the file %s stays behind: %s", name, r.Skipped[name])
	}
	a.sayCrossing(x)
}
