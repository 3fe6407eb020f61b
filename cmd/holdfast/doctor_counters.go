package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

// countersTime bounds how long the ledger is added up for.
const countersTime = 2 * time.Minute

// seeCounters adds up the ledger and compares the counters of money and iterations.
func (a *app) seeCounters(daemon.Paths) finding {
	ctx, cancel := context.WithTimeout(a.ctx, countersTime)
	defer cancel()
	var c kernel.Counted
	p := a.progress(nil)
	defer p.end()
	err := a.read(func(_ daemon.Paths, s kernel.Store) (err error) {
		c, err = kernel.CheckCounters(ctx, s, p.upTo)
		return err
	})
	switch {
	case isNoState(err):
		return okay("none yet")
	case errors.Is(err, context.DeadlineExceeded):
		return warn("", "not compared: %s added up within %s, and there are more", story.Count(int(c.Leaves), "leaf was", "leaves were"), countersTime)
	case err != nil:
		return bad(err)
	case len(c.Astray) > 0:
		first := c.Astray[0]
		return finding{How: "FAIL", Why: story.Count(len(c.Astray), "counter is", "counters are") + " not what the ledger adds up to; the first is " + first.Budget + " of tenant " + first.Tenant,
			Hint: "somebody may have written the store past holdfast: `holdfast ledger verify`"}
	}
	return okay("%s of money and iterations, each what the ledger adds up to", story.Count(c.Counters, "counter", "counters"))
}
