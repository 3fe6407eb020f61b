package metrics

import (
	"github.com/holdfast-dev/holdfast/internal/observe/anomaly"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/prometheus/client_golang/prometheus"
)

// watchMetrics are what Prometheus is told of the watch.
type watchMetrics struct {
	found, answered *prometheus.CounterVec
}

func newWatchMetrics(r *prometheus.Registry) watchMetrics {
	m := watchMetrics{
		found: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_anomalies_total",
			Help: "Conditions that were found to be out of the ordinary, but for consequences of others."}, []string{"condition", "severity"}),
		answered: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_anomaly_responses_total",
			Help: "What was done about what is out of the ordinary, and whether it could be carried out."}, []string{"response", "carried_out"}),
	}
	r.MustRegister(m.found, m.answered)
	// What an alert asks for is there before it first happens.
	for _, c := range watch.Conditions() {
		m.found.WithLabelValues(string(c.Name), c.Severity.String())
	}
	for r := watch.Record; r <= watch.Halt; r++ {
		m.answered.WithLabelValues(r.String(), "yes")
		m.answered.WithLabelValues(r.String(), "no")
	}
	return m
}

func (m watchMetrics) count(f *watch.Finding, times int, err error) {
	carried := "yes"
	if err != nil {
		carried = "no"
	}
	m.answered.WithLabelValues(f.Response.String(), carried).Inc()
	if !f.Cleared && f.Cause == "" {
		m.found.WithLabelValues(string(f.Condition), f.Severity.String()).Add(float64(times))
	}
}

// lookAt adds what is read at each scrape.
func (m watchMetrics) lookAt(w *anomaly.Watcher, r *prometheus.Registry) {
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "holdfast_" + name, Help: help}, value))
	}
	gauge("agents_watched", "Agents whose behaviour is watched.", func() float64 { return float64(w.Watch.Watched()) })
	gauge("agents_forgotten", "Agents that made room for others in the watch since the start.",
		func() float64 { return float64(w.Watch.Forgotten()) })
	gauge("anomalies_waiting", "Findings that wait for their answer.", func() float64 {
		n, _ := w.Waiting()
		return float64(n)
	})
	gauge("anomalies_lost", "Findings for which there was no room since the start.", func() float64 {
		_, n := w.Waiting()
		return float64(n)
	})
	gauge("watch_learned", "1 where what is usual of agents was learned from the ledger, 0 while it is not known.", func() float64 {
		if ok, _ := w.Known(); ok {
			return 1
		}
		return 0
	})
}
