package metrics

import (
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/prometheus/client_golang/prometheus"
)

// weakenedRules shows the rules in force that do not stop what they forbid, each
// from the moment it is loaded and not from when it first speaks (D3).
type weakenedRules struct{ policy func() *kernel.Policy }

// Describe implements prometheus.Collector: without descriptions, for there may be
// no such rule.
func (weakenedRules) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (w weakenedRules) Collect(ch chan<- prometheus.Metric) {
	loaded, ok := w.policy().Rules.(interface{ Rules() []constitution.Info })
	if !ok {
		return
	}
	desc := prometheus.NewDesc("holdfast_rules_weakened", "1 for each rule that only observes, or that lets pass what it cannot judge.", []string{"rule_id", "how"}, nil)
	for _, r := range loaded.Rules() {
		if r.Mode == "observe" {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, r.ID, "observe")
		}
		if r.OnError == "pass" {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, r.ID, "on_error_pass")
		}
	}
}
