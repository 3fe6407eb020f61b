package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// The exit codes (D36).
const (
	exitYes     = 0
	exitError   = 1
	exitUsage   = 2
	exitRefused = 3
	exitHeld    = 4
	exitHalted  = 5
)

// status ends the program with a code after everything was said.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// errUsage marks a mistake in the command line.
var errUsage = errors.New("usage")

func usage(hint, format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf(format, args...), Hint: hint, Err: errUsage}
}

// fail is an error with a hint.
func fail(hint, format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindInternal, Why: fmt.Sprintf(format, args...), Hint: hint}
}

// exitCode returns the exit code of an error.
func exitCode(err error) int {
	var s status
	switch {
	case err == nil:
		return exitYes
	case errors.As(err, &s):
		return int(s)
	case errors.Is(err, errUsage):
		return exitUsage
	}
	return errorcode.Lookup(holdfast.KindOf(err)).Exit
}

// verdictCode returns the exit code of what the gates said: a denial of any kind but a halt is refused.
func verdictCode(v holdfast.Verdict, kind holdfast.Kind) int {
	switch {
	case kind == holdfast.KindHalted:
		return errorcode.Lookup(kind).Exit
	case v == holdfast.Allow && kind == "":
		return exitYes
	case v == holdfast.Allow:
		return exitError
	case v == holdfast.Hold:
		return exitHeld
	}
	return exitRefused
}

// finish says what went wrong, and returns the exit code.
func (a *app) finish(err error) int {
	code := exitCode(err)
	var s status
	if err == nil || errors.As(err, &s) {
		return code
	}
	a.complain(err)
	if a.touched != "" && code == exitError && !asked(holdfast.KindOf(err)) {
		fmt.Fprintf(a.err, "state: %s\n", clean(a.touched))
	}
	return code
}

// asked says whether an error is about what was asked for, which no state has a
// part in.
func asked(k holdfast.Kind) bool {
	switch k {
	case holdfast.KindLanguage, holdfast.KindLimit, holdfast.KindCodeSize, holdfast.KindProtocol,
		holdfast.KindValue, holdfast.KindType, holdfast.KindPayloadTooLarge:
		return true
	}
	return false
}

// complain says an error and its hint.
func (a *app) complain(err error) {
	var e *holdfast.Error
	switch {
	case errors.Is(err, context.Canceled) && a.ctx.Err() != nil:
		a.say("interrupted")
	case errors.As(err, &e):
		a.sayLines(textWithoutKind(err, e))
		if e.Hint != "" {
			a.hint("%s", e.Hint)
		}
	default:
		a.sayLines(err.Error())
	}
}

// textWithoutKind returns the text of err with that of e, which err wraps, reduced to its Why: the kind is for
// programs.
func textWithoutKind(err error, e *holdfast.Error) string {
	return strings.Replace(err.Error(), e.Error(), e.Why, 1)
}

// sayLines says a text of several lines without losing its line ends.
func (a *app) sayLines(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		a.say("%s", strings.TrimRight(line, "\n"))
	}
}
