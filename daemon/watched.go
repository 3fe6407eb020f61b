package daemon

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/anomaly"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// newWatcher returns what watches agents.
func (d *Daemon) newWatcher() *anomaly.Watcher {
	return anomaly.New(anomaly.Options{
		Store: d.store, Latch: d.latch, Log: d.log, Mask: d.maskText, Guard: d.guarded,
		Kernel: func() anomaly.Kernel { return watchKernel{d.Kernel, respond.FromKernel(d.Kernel)} },
		Token: func() (holdfast.Secret, error) {
			token, _, err := d.mint(holdfast.Identity{Agent: anomaly.Agent, Kind: "watch", Principal: "holdfast"},
				localTTL)
			return token, err
		},
		Answered: d.metrics.Answered, Alert: d.alerts.TakeFinding, Notify: d.notice,
	}, d.loaded.Config.WatchLimits())
}

// watchKernel is the kernel with the feature that answers findings.
type watchKernel struct {
	*kernel.Kernel
	*respond.Responses
}

// watchStatus returns how the watch stands.
func (d *Daemon) watchStatus() *api.Watched {
	w := d.watching
	s := &api.Watched{Holds: w.Holds(), Agents: w.Watch.Watched(), Forgotten: w.Watch.Forgotten()}
	_, s.Unknown = w.Known()
	if s.More = len(s.Holds) - api.MaxHolds; s.More > 0 {
		s.Holds = s.Holds[:api.MaxHolds]
	}
	s.More = max(s.More, 0)
	s.Waiting, s.Lost = w.Waiting()
	return s
}

// condition tells of what was found elsewhere: of an agent, a tenant (agent is
// empty) or everything (both are). It may be told again and again, and waits for
// nobody.
func (d *Daemon) condition(tenant, agent string, name watch.Name, holds bool, why string) {
	d.watching.Take(d.watching.Watch.Set(tenant, agent, name, holds, time.Now(), d.maskText(why)))
}
