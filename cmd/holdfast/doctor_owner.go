package main

import (
	"errors"
	"fmt"
	"github.com/holdfast-dev/holdfast/internal/store/statedir"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// dialled is the owner as it answered once: one that is stopped takes two
// seconds to be found out.
type dialled struct {
	a      *app
	client *api.Client
	status *api.Status
	err    error
}

func (a *app) dialled(p daemon.Paths) *dialled {
	c, s, err := a.dial(a.ctx, p)
	return &dialled{a, c, s, err}
}

// seeConfig adds what the owner that runs has not taken up.
func (o *dialled) seeConfig(p daemon.Paths) finding {
	f := o.a.seeConfig(p)
	if o.err != nil || f.How == "FAIL" {
		return f
	}
	if need := o.status.Conditions.NeedRestart; len(need) > 0 {
		return warn("end the daemon, and start it with `holdfast up`", "%s", need[0])
	}
	return f
}

func (o *dialled) see(p daemon.Paths) finding {
	switch {
	case o.err == nil:
		return okay("process %d answers", o.status.PID)
	case !errors.Is(o.err, api.ErrNobody):
		return bad(o.a.silent(p, o.err))
	case !there(p.Dir):
		return okay("nobody, and nothing to own")
	}
	lock, err := statedir.AcquireOwner(p.Dir, time.Now())
	if err != nil {
		return bad(err)
	}
	if err := lock.Release(); err != nil {
		return bad(err)
	}
	return okay("nobody; the lock can be taken")
}

// nobodys is a boundary that no configuration should list.
const nobodys = "doctor/nobody-listed-this"

// seeRefusal proves that what is not listed is refused.
func (o *dialled) seeRefusal(p daemon.Paths) finding {
	if err := statedir.StoreGone(p); err != nil {
		return bad(err)
	}
	if !there(p.DB) {
		return warn("`holdfast init` makes the state, then ask again", "not asked: there is no state yet")
	}
	var f finding
	ask := func(c *api.Client, _ *api.Status) error {
		ans, err := c.Check(o.a.ctx, api.Ask{Boundary: nobodys, Payload: []byte(`{}`), Agent: "doctor"})
		if err != nil {
			return err
		}
		switch code := answerCode(ans); code {
		case exitRefused, exitHalted:
			f = okay("a boundary that nobody listed is refused")
		default:
			f = finding{How: "FAIL", Why: fmt.Sprintf("a boundary that nobody listed is not refused (exit code %d)", code), Hint: "does the configuration list a pattern that covers everything?"}
		}
		return nil
	}
	err := o.err
	switch {
	case err == nil:
		err = ask(o.client, o.status)
	case errors.Is(err, api.ErrNobody):
		err = o.a.reach(ask)
	default:
		return warn("end its owner, then ask again", "not asked: the owner of the state does not answer")
	}
	if err != nil {
		return bad(err)
	}
	return f
}
