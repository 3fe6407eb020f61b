package metrics

import "github.com/prometheus/client_golang/prometheus"

// Egress are the figures of the proxy.
type Egress struct {
	Requests    []EgressRequests
	Open        int64 // connections
	Crowded     int64 // connections that were turned away
	RedactedOut int64 // times, in requests
	RedactedIn  int64 // times, in answers
	Names       int64 // questions that the resolver answered
	Malformed   int64 // questions that it dropped
	Stages      []EgressStage
}

// EgressRequests is the number of requests to one domain with one kind of error.
type EgressRequests struct {
	Domain string
	Kind   string
	N      int64
}

// EgressStage is the duration of one part of a request's way took. Under counts those up to each bound in seconds.
type EgressStage struct {
	Name    string
	Count   uint64
	Seconds float64
	Under   map[float64]uint64
}

// egressMetrics shows what the egress proxy counts by itself. Domains are those
// that are listed; a request to another is one of "none".
type egressMetrics struct{ figures func() *Egress }

func egressDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_egress_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector: without descriptions, for while no
// proxy runs there is nothing to collect.
func (*egressMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (e *egressMetrics) Collect(ch chan<- prometheus.Metric) {
	s := e.figures()
	if s == nil {
		return
	}
	one := func(kind prometheus.ValueType, value int64, d *prometheus.Desc, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, float64(value), labels...)
	}
	requests := egressDesc("requests_total", "Requests by listed domain and kind of error.", "domain", "kind")
	for _, r := range s.Requests {
		one(prometheus.CounterValue, r.N, requests, orNone(r.Domain), orNone(r.Kind))
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

// stages shows how long the parts of a request's way took.
func (*egressMetrics) stages(ch chan<- prometheus.Metric, s *Egress) {
	desc := egressDesc("stage_duration_seconds", "How long a part of a request's way took.", "stage")
	for i := range s.Stages {
		h := &s.Stages[i]
		ch <- prometheus.MustNewConstHistogram(desc, h.Count, h.Seconds, h.Under, h.Name)
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
