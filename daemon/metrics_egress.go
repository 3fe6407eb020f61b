package daemon

import (
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/prometheus/client_golang/prometheus"
)

// egressMetrics shows what the egress proxy counts by itself. Domains are those
// that are listed; a request to another is one of "none".
type egressMetrics struct{ site *egressSite }

func egressDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_egress_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector: without descriptions, for while no
// proxy runs there is nothing to collect.
func (*egressMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (e *egressMetrics) Collect(ch chan<- prometheus.Metric) {
	p := e.site.running()
	if p == nil {
		return
	}
	s := p.Snapshot()
	one := func(kind prometheus.ValueType, value int64, d *prometheus.Desc, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, float64(value), labels...)
	}
	requests := egressDesc("requests_total", "Requests by listed domain and kind of error.", "domain", "kind")
	for of, n := range s.Requests {
		one(prometheus.CounterValue, n, requests, orNone(of.Domain), orNone(of.Kind))
	}
	one(prometheus.GaugeValue, s.Open, egressDesc("connections_open", "Connections that are open."))
	one(prometheus.CounterValue, s.Crowded, egressDesc("connections_crowded_total", "Connections turned away because there were too many."))
	redacted := egressDesc("redacted_total", "Times that something was redacted.", "direction")
	one(prometheus.CounterValue, s.RedactedOut, redacted, "request")
	one(prometheus.CounterValue, s.RedactedIn, redacted, "response")
	questions := egressDesc("names_total", "Questions to the resolver.", "result")
	one(prometheus.CounterValue, s.Names, questions, "answered")
	one(prometheus.CounterValue, s.Malformed, questions, "dropped")
	e.stages(ch, s)
}

// stages are the times of the parts of a request's way.
func (*egressMetrics) stages(ch chan<- prometheus.Metric, s counters.Snapshot) {
	desc := egressDesc("stage_duration_seconds", "How long a part of a request's way took.", "stage")
	bounds := counters.Bounds()
	for i := range s.Stages {
		h := &s.Stages[i]
		under, sum := make(map[float64]uint64, len(bounds)), uint64(0)
		for b, bound := range bounds {
			sum += uint64(h.Under[b])
			under[bound.Seconds()] = sum
		}
		ch <- prometheus.MustNewConstHistogram(desc, uint64(h.Count), h.Sum.Seconds(), under, counters.Stage(i).String())
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
