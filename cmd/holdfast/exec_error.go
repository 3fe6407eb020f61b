package main

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// early is an error before anything ran. Where --json was asked for it is told as
// a refusal is, on standard output, and the exit code stays what it would be.
func (a *app) early(err error) error {
	var h *helpWanted
	var s status
	if err == nil || errors.As(err, &h) || errors.As(err, &s) || errors.Is(err, flag.ErrHelp) || !a.json {
		return err
	}
	if bad := a.printJSON(&api.Executed{Failure: a.failure(err)}); bad != nil {
		return bad
	}
	return status(exitCode(err))
}

// wantsJSON says whether --json stands among arguments of which one may be at
// fault, so that they were not read to their end.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.ContainsFunc(args, func(s string) bool {
		name, value, given := strings.Cut(strings.TrimPrefix(s, "-"), "=")
		return (name == "-json" || name == "json" && strings.HasPrefix(s, "-")) && (!given || value == "true")
	})
}

// failure is an error as refusals hold it.
func (a *app) failure(err error) *api.Failure {
	f := &api.Failure{Kind: holdfast.KindOf(err), Why: untold(err.Error()), State: posture.StateOf(err)}
	var e *holdfast.Error
	switch {
	case errors.Is(err, context.Canceled) && a.ctx.Err() != nil:
		f.Kind, f.Why = holdfast.KindCanceled, "interrupted"
	case errors.As(err, &e):
		f.Why = untold(textWithoutKind(err, e))
		f.Hint, f.Rule, f.Crossing = untold(e.Hint), e.Rule, e.Crossing
		if e.Gate != 0 {
			f.Gate = e.Gate.String()
		}
	}
	return f
}
