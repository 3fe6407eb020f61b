package metrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/prometheus/client_golang/prometheus"
)

// maxRanks is of how many agents a figure is shown, the largest first. They are
// told apart by their rank: a scrape needs no session, and no name that a request
// brings becomes a label; `holdfast report daily` and the ledger know who it is.
const maxRanks = 10

// rateMetrics shows the Safety Net's "Metrics to Track" (spec 001) as the watch has
// them. What is not known has no series.
type rateMetrics struct {
	// watch is what agents are watched by; nil while they are not.
	watch func() *watch.Watch
	now   func() time.Time
}

// Describe implements prometheus.Collector: without descriptions, for there may be
// no agent.
func (rateMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m rateMetrics) Collect(ch chan<- prometheus.Metric) {
	w := m.watch()
	if w == nil {
		return
	}
	now := m.now()
	rates := w.Rates(now)
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("holdfast_"+name, help, labels, nil)
	}
	for _, one := range []struct {
		desc *prometheus.Desc
		of   func(*watch.Rates) (float64, bool)
	}{
		{gauge("agent_iterations_per_hour", "Steps that an agent took within the last hour.", "rank"), func(r *watch.Rates) (float64, bool) { return r.StepsPerHour, true }},
		{gauge("agent_cost_dollars_per_hour", "What an agent spent within the last hour, with those within it.", "rank"), func(r *watch.Rates) (float64, bool) { return float64(r.CostPerHour) / 1e6, true }},
		{gauge("agent_error_ratio", "The share of an agent's last 100 actions that failed; none with fewer than 20.", "rank"), func(r *watch.Rates) (float64, bool) { return r.ErrorRate, r.Known }},
		{gauge("agent_commit_files", "Files that an agent's largest commit of the last hour changed.", "rank"), func(r *watch.Rates) (float64, bool) { return float64(r.Files), true }},
		{gauge("agent_repeated_actions", "How often an agent did the same again, at once or in turns; 0 below 5.", "rank"), func(r *watch.Rates) (float64, bool) { return float64(r.Repeated), true }},
	} {
		for i, v := range largest(rates, one.of) {
			ch <- prometheus.MustNewConstMetric(one.desc, prometheus.GaugeValue, v, strconv.Itoa(i+1))
		}
	}
	ch <- prometheus.MustNewConstMetric(gauge("agents_active", "Agents that did something within the last hour."), prometheus.GaugeValue, float64(len(rates)))
	oldest, any := now, false
	for _, since := range w.Unchecked() {
		if !any || since.Before(oldest) {
			oldest, any = since, true
		}
	}
	if any {
		ch <- prometheus.MustNewConstMetric(gauge("human_check_age_seconds", "How long ago somebody last looked after the agents of a tenant that acted since, the longest of all tenants; where nobody ever did, how long they act."),
			prometheus.GaugeValue, now.Sub(oldest).Seconds())
	}
}

// largest are the largest figures of all agents, the largest first.
func largest(rates []watch.Rates, of func(*watch.Rates) (float64, bool)) []float64 {
	var all []float64
	for i := range rates {
		if v, known := of(&rates[i]); known {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all[:min(len(all), maxRanks)]
}
