package daemon

import (
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/prometheus/client_golang/prometheus"
)

// status is how the watch stands.
func (w *watching) status() *api.Watched {
	s := &api.Watched{Holds: w.holds(), Agents: w.watch.Watched(), Forgotten: w.watch.Forgotten()}
	_, s.Unknown = w.known()
	if s.More = len(s.Holds) - api.MaxHolds; s.More > 0 {
		s.Holds = s.Holds[:api.MaxHolds]
	}
	s.More = max(s.More, 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Waiting, s.Lost = len(w.order), w.lost
	return s
}

// holds are the conditions that hold, the worst first.
func (w *watching) holds() []story.Anomaly {
	out := []story.Anomaly{}
	for _, s := range w.watch.Hold() {
		out = append(out, story.Holds(s))
	}
	return out
}

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

func (m watchMetrics) count(f *waitingFinding, err error) {
	carried := "yes"
	if err != nil {
		carried = "no"
	}
	m.answered.WithLabelValues(f.Response.String(), carried).Inc()
	if !f.Cleared && f.Cause == "" {
		m.found.WithLabelValues(string(f.Condition), f.Severity.String()).Add(float64(f.times))
	}
}

// look adds what is looked at when somebody scrapes.
func (w *watching) look(r *prometheus.Registry) {
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "holdfast_" + name, Help: help}, value))
	}
	gauge("agents_watched", "Agents whose behaviour is watched.", func() float64 { return float64(w.watch.Watched()) })
	gauge("agents_forgotten", "Agents that made room for others in the watch since the start.", func() float64 { return float64(w.watch.Forgotten()) })
	gauge("anomalies_waiting", "Findings that wait for their answer.", func() float64 { return float64(w.status().Waiting) })
	gauge("anomalies_lost", "Findings for which there was no room since the start.", func() float64 { return float64(w.status().Lost) })
	gauge("watch_learned", "1 where what is usual of agents was learned from the ledger, 0 while it is not known.", func() float64 {
		if ok, _ := w.known(); ok {
			return 1
		}
		return 0
	})
}
