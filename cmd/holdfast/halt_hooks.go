package main

import (
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

// haltHooks runs the halt hooks where no daemon does, as the owner of the state
// for that long (D48). The latch stands already: whatever fails here is said, and
// keeps nobody halted any less. Without hooks in the configuration nothing is
// opened, and one that does not load has none.
func (a *app) haltHooks() []api.HookRun {
	_, l, err := a.loads()
	if err != nil {
		a.say("halt hooks are not known: %v", err)
		return nil
	}
	if len(l.Config.Alerts.HaltHooks) == 0 {
		return nil
	}
	log, closeLog := a.ownLog()
	defer closeLog()
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		d, err := a.open(log, "")
		if err == nil {
			ran := d.RunHaltHooks(a.ctx)
			if err := d.Close(); err != nil {
				a.say("after the halt hooks: %v", err)
			}
			return ran
		}
		if !errors.Is(err, daemon.ErrOwned) || time.Since(start) > patience || a.ctx.Err() != nil {
			a.say("the halt hooks run when the next daemon starts: %v", err)
			return nil
		}
	}
}

// hookLine says how a halt hook went.
func hookLine(r *api.HookRun) string {
	if r.Error != "" {
		return clean(r.Name) + " FAILED: " + clean(r.Error)
	}
	return clean(r.Name) + " done in " + story.Short(time.Duration(r.Millis)*time.Millisecond)
}
