package daemon

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/metrics"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

// scrapeTime bounds what is read of the store for one scrape.
const scrapeTime = 5 * time.Second

// metricSources returns what is read at each scrape.
func (d *Daemon) metricSources() metrics.Sources {
	return metrics.Sources{
		Watcher: d.watching, GoalsPaused: d.goalsPaused, Policy: d.Kernel.Policy, Egress: d.egress.figures,
		Halted:   func() bool { return d.pageState(context.Background(), false).Halted },
		Channels: d.alerts.ListChannels,
		Today: func(ctx context.Context, now time.Time) (health.Report, health.Level) {
			r := d.days.Today(ctx, now)
			return r, d.healthNow(&r, now, "").Health
		},
		Reviews: func(ctx context.Context) (n int, err error) {
			err = d.store.View(ctx, func(tx kernel.Tx) error { n, err = waiting(tx, ""); return err })
			return n, err
		},
	}
}

// figures returns what was counted since the proxy was made, nil without one.
func (s *egressSite) figures() *metrics.Egress {
	p := s.running()
	if p == nil {
		return nil
	}
	n := p.Snapshot()
	out := &metrics.Egress{
		Open: n.Open, Crowded: n.Crowded, RedactedOut: n.RedactedOut, RedactedIn: n.RedactedIn,
		Names: n.Names, Malformed: n.Malformed,
	}
	for of, count := range n.Requests {
		out.Requests = append(out.Requests, metrics.EgressRequests{Domain: of.Domain, Kind: of.Kind, N: count})
	}
	bounds := counters.Bounds()
	for i := range n.Stages {
		h := &n.Stages[i]
		under, sum := make(map[float64]uint64, len(bounds)), uint64(0)
		for b, bound := range bounds {
			sum += uint64(h.Under[b])
			under[bound.Seconds()] = sum
		}
		out.Stages = append(out.Stages, metrics.EgressStage{
			Name: counters.Stage(i).String(), Count: uint64(h.Count), Seconds: h.Sum.Seconds(), Under: under,
		})
	}
	return out
}

// goalsPaused says whether goals of anybody are paused. What cannot be read is
// paused, for then goals are refused.
func (d *Daemon) goalsPaused() bool {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	paused := true
	err := d.store.View(ctx, func(tx kernel.Tx) error {
		ps, err := kernel.PausedGoalsIn(tx)
		paused = len(ps) > 0
		return err
	})
	return paused || err != nil
}
