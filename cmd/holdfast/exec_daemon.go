package main

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// behindTime is how long a changed configuration may take to come into force,
// and a daemon with another one to end, before a run says so.
const behindTime = 10 * time.Second

// attended is act for runs of code. They last, and a state has one owner: where
// nobody listens a daemon is started, which ends a moment after its last client,
// so that several run at once, people can look, pause and halt meanwhile, and
// the next one finds everything warm. Where none can be started, this very
// process is the owner.
func (a *app) attended(do func(c *api.Client, s *api.Status) error) error {
	if err := a.enabled(); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		c, s, err := a.daemon(p, "")
		if err != nil {
			return a.reach(do) // which says what is wrong, if that is wrong there too
		}
		if a.matches(s) {
			return do(c, s)
		}
		a.hangUp() // so that it can end
		switch {
		case a.ctx.Err() != nil:
			return a.ctx.Err()
		case time.Since(start) > behindTime:
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "the daemon that owns the state has another configuration than the one named here",
				Hint: "end it, or leave --config and HOLDFAST_CONFIG out"}
		}
	}
}

// matches says whether the configuration that is in force is the one that this
// command names, as it is now. A daemon that a person started keeps its own.
func (a *app) matches(s *api.Status) bool {
	if !s.Lingers {
		return true
	}
	_, set := a.lookup("HOLDFAST_CONFIG")
	named, err := config.FindPath(a.config, a.lookup)
	if err == nil && (set || a.config != "") && !slices.Contains(s.Files, named) {
		return false
	}
	return !s.Conditions.Unapplied
}
