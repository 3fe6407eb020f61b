package metrics

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/prometheus/client_golang/prometheus"
)

// healthMetrics shows how today goes, by the daily report and what holds now.
type healthMetrics struct {
	today   func(context.Context, time.Time) (health.Report, health.Level)
	reviews func(context.Context) (int, error)
}

// Describe implements prometheus.Collector: without descriptions, for what is not
// known has no series.
func (healthMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m healthMetrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime/2)
	defer cancel()
	now := time.Now()
	r, level := m.today(ctx, now)
	gauge := func(name, help string, v float64) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc("holdfast_"+name, help, nil, nil), prometheus.GaugeValue, v)
	}
	gauge("health", "How healthy today is so far: 0 GREEN, 1 YELLOW, 2 RED.", float64(health.Green-level))
	if r.Budget.State == health.Is && r.Remaining.State == health.Is {
		gauge("budget_day_dollars", "What all tenants may spend today (UTC).", float64(r.Budget.N)/1e6)
		gauge("budget_day_remaining_dollars", "What of that remains.", float64(r.Remaining.N)/1e6)
	}
	if least, known := r.LeastRemaining(); known {
		gauge("budget_day_remaining_ratio", "The share of its day's budget that remains to the tenant with the least.", least/100)
	}
	if n, err := m.reviews(ctx); err == nil {
		gauge("reviews_waiting", "Questions that wait for a person.", float64(n))
	}
}
