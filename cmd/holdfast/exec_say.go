package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// sayOutput writes what the program wrote where it belongs, every byte of it.
func (a *app) sayOutput(r *posture.Document) {
	for _, o := range []struct {
		to    io.Writer
		text  string
		bytes []byte
	}{{a.out, r.Stdout, r.StdoutBytes}, {a.err, r.Stderr, r.StderrBytes}} {
		if len(o.bytes) > 0 && !isTerminal(o.to) {
			o.to.Write(o.bytes)
			continue
		}
		io.WriteString(o.to, forTerminal(o.to, o.text))
	}
}

// sayEnd says in Holdfast's own lines how a run ended where the program did not
// end it, and what would let it go on. What the document words, which a program
// can write too, stands in standard error already.
func (a *app) sayEnd(x *api.Executed, asked api.Execution) {
	r := x.Result
	escaped := x.Failure != nil && x.Failure.Kind == holdfast.KindEscape // whose words name the call
	if r.Syscall != nil && !escaped {
		a.say("%s: the call %s (%d, %s) is not allowed", r.State, r.Syscall.Name, r.Syscall.Nr, r.Syscall.Arch)
	}
	switch {
	case a.interrupted(x):
		a.say("stopped by you after %s", time.Duration(r.WallTime).Round(10*time.Millisecond))
	case x.Failure != nil && r.State == posture.SpawnError: // standard error says why
		a.hints(x.Failure.Hint)
	case x.Failure != nil:
		why := x.Failure.Why
		if escaped {
			why += "; what it printed and wrote is withheld"
		}
		a.sayLines(why)
		a.sayHalt(x.Failure.Kind)
		a.hints(x.Failure.Hint)
	}
	limits := sandbox.LimitsOf(r.Posture.Tier)
	switch r.Reason {
	case posture.ReasonWall:
		limit := asked.Timeout
		if limit == 0 {
			limit = limits.Timeout
		}
		a.say("%s: it was ended after its %s by the wall clock", r.State, limit)
		a.hint("--timeout gives it more, at most %s", strings.TrimSuffix(limits.MaxTimeout.String(), "0m0s"))
	case posture.ReasonOOM:
		limit := asked.MemoryMB
		if limit == 0 {
			limit = limits.MemoryMB
		}
		a.say("%s: it was ended at its %d MB of memory", r.State, limit)
		a.hint("--memory gives it more, at most %d", limits.MaxMemoryMB)
	case posture.ReasonOutput, posture.ReasonRefused:
		a.say("%s", r.ErrorMessage)
	}
}

// sayBeside says what was refused, cut and left behind of a run that went on.
func (a *app) sayBeside(r *posture.Document) {
	var calls []string
	for _, c := range r.Refused {
		// ENOSYS is what libraries try first, and do without.
		if c.Errno != "ENOSYS" {
			calls = append(calls, fmt.Sprintf("%s (%s) %s", c.Name, c.Errno, story.Count(c.Count, "time", "times")))
		}
	}
	if n := len(calls) - maxNamed; n > 0 {
		calls = append(calls[:maxNamed], fmt.Sprintf("and %d more, which --json lists", n))
	}
	if len(calls) > 0 {
		a.say("refused, and it went on: %s", strings.Join(calls, ", "))
	}
	for _, name := range r.Cut {
		a.say("its %s was cut: 1 MB is kept", name)
	}
}

// sayCrossing says what weakened a run, and, where it is wanted, which it was.
func (a *app) sayCrossing(x *api.Executed) {
	if x.Outcome == nil {
		return
	}
	if back := x.Outcome.PutBack; back != "" && (x.Failure == nil || !x.Failure.PutBack) {
		a.say("it failed, and %s", clean(back))
	}
	for _, w := range x.Outcome.Weakened {
		a.say("weakened: %s", w)
	}
	if r := x.Result; r != nil && r.Chosen != "" && (a.verbose || r.Posture.Tier > posture.TierProcess) {
		a.say("tier %s", clean(r.Chosen))
	}
	if a.verbose {
		a.say("crossing %s of %s", x.Outcome.Crossing, clean(x.Outcome.Boundary))
	}
}

// maxNamed is how many files, calls or ids are named at once.
const maxNamed = 8

// sayLeft says which files nobody asked for.
func (a *app) sayLeft(names []string) {
	if len(names) == 0 || a.json {
		return
	}
	shown := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if n := len(names) - maxNamed; n > 0 {
		shown += fmt.Sprintf(" and %d more", n)
	}
	a.say("the program wrote %s: %s", story.Count(len(names), "file", "files"), shown)
	a.hint("--out DIR brings %s out", map[bool]string{true: "it", false: "them"}[len(names) == 1])
}
