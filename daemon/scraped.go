package daemon

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/frontend/overview"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/metrics"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

// scrapeTime bounds what is read of the store for one scrape.
const scrapeTime = 5 * time.Second

// metricSources returns what is read at each scrape.
func (d *Daemon) metricSources() metrics.Sources {
	return metrics.Sources{
		Watcher: d.watching, GoalsPaused: d.goalsPaused, Policy: d.Kernel.Policy, Egress: d.egress.Figures,
		Halted:   func() bool { return d.pageState(context.Background(), false).Halted },
		Channels: d.alerts.ListChannels,
		Today: func(ctx context.Context, now time.Time) (health.Report, health.Level) {
			r := d.days.Today(ctx, now)
			return r, overview.Health(d.overviewSource(), &r, now, "").Health
		},
		Reviews: func(ctx context.Context) (n int, err error) {
			err = d.store.View(ctx, func(tx kernel.Tx) error { n, err = overview.CountWaiting(tx, ""); return err })
			return n, err
		},
	}
}

// goalsPaused says whether goals of anybody are paused. What cannot be read is
// paused, for then goals are refused.
func (d *Daemon) goalsPaused() bool {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	paused := true
	err := d.store.View(ctx, func(tx kernel.Tx) error {
		ps, err := goal.ListPaused(tx)
		paused = len(ps) > 0
		return err
	})
	return paused || err != nil
}
