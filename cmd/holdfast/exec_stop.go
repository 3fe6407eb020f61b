package main

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// exitInterrupted is the exit code of a run that Ctrl-C stopped, as of any
// program.
const exitInterrupted = 130

// stopTime is how long what there is of a run is waited for after Ctrl-C.
const stopTime = 5 * time.Second

// silence is how long a run may take, one that may be in a VM, before people are
// told what it waits for.
const silence = 3 * time.Second

// ran runs x and waits for what came of it. Where this command is interrupted,
// the run is stopped, and what there is of it is still waited for.
func (a *app) ran(c *api.Client, x api.Execution) (*api.Executed, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.ctx))
	defer cancel()
	stop := context.AfterFunc(a.ctx, func() {
		late := time.AfterFunc(stopTime, cancel)
		defer late.Stop()
		// A request that still waits for its turn is not there to be stopped.
		for ctx.Err() == nil {
			if s, err := c.Stop(ctx, x.RequestID); err != nil || s.Runs > 0 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		<-ctx.Done()
	})
	defer stop()
	if !a.json && (x.Tier == posture.TierVM || x.Evidence != (posture.Evidence{})) {
		defer time.AfterFunc(silence, func() {
			a.say("still waiting: before the first run in a VM a guest is started, which can take a minute; later runs are copies of it")
		}).Stop()
	}
	got, err := c.Exec(ctx, x)
	if err != nil && a.ctx.Err() != nil {
		return nil, a.ctx.Err()
	}
	return got, err
}

// interrupted says whether the run ended because this command was.
func (a *app) interrupted(x *api.Executed) bool {
	return a.ctx.Err() != nil && x.Failure != nil && x.Failure.Kind == holdfast.KindCanceled
}
