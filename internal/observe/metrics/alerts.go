package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/internal/observe/alert"
)

// alertMetrics shows how it stands with the channels of alerts, by their names.
type alertMetrics struct{ channels func() []alert.Channel }

// Describe implements prometheus.Collector: without descriptions, for without
// channels there is nothing to collect.
func (alertMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m alertMetrics) Collect(ch chan<- prometheus.Metric) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("holdfast_alert"+name, help, labels, nil)
	}
	tries, waiting := desc("s_total", "Tries to tell people through a channel.", "channel", "result"), desc("s_waiting", "Alerts that a channel was not told yet.", "channel")
	failing := desc("_channel_failing", "1 while a channel of alerts cannot be told.", "channel")
	for _, c := range m.channels() {
		ch <- prometheus.MustNewConstMetric(tries, prometheus.CounterValue, float64(c.Sent), c.Channel, "sent")
		ch <- prometheus.MustNewConstMetric(tries, prometheus.CounterValue, float64(c.Failed), c.Channel, "failed")
		ch <- prometheus.MustNewConstMetric(waiting, prometheus.GaugeValue, float64(c.Waiting), c.Channel)
		ch <- prometheus.MustNewConstMetric(failing, prometheus.GaugeValue, one(!c.Failing.IsZero()), c.Channel)
	}
}
