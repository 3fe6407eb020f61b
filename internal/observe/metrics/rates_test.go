package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// figures are what a collector shows now: by name, then by the values of its labels.
func figures(t *testing.T, c prometheus.Collector) map[string]map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	fs, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]float64{}
	for _, f := range fs {
		out[f.GetName()] = map[string]float64{}
		for _, m := range f.Metric {
			out[f.GetName()][labelsOf(m)] = m.GetGauge().GetValue()
		}
	}
	return out
}

func labelsOf(m *dto.Metric) string {
	var all []string
	for _, l := range m.Label {
		all = append(all, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(all, ",")
}

var watchedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// acting is a watch of agents that did something, and what shows it.
func acting(seen ...watch.Seen) (*watch.Watch, rateMetrics) {
	w := watch.New(watch.Limits{})
	for i, s := range seen {
		s.Tenant, s.At = "local", watchedAt.Add(time.Duration(i)*time.Second)
		w.Add(s)
	}
	return w, rateMetrics{watch: func() *watch.Watch { return w },
		now: func() time.Time { return watchedAt.Add(time.Hour / 2) }}
}

// Test001_Dashboard_Metrics: each row of "Metrics to Track" has its figure, and what
// is not known has none.
func Test001_Dashboard_Metrics(t *testing.T) {
	var seen []watch.Seen
	for i := range 24 {
		seen = append(seen, watch.Seen{Agent: "ann", Action: 7, Step: i < 3, Cost: 250_000, Failed: i < 6})
	}
	seen = append(seen, watch.Seen{Agent: "bob", Action: 1})
	w, m := acting(seen...)
	for i := range 24 {
		w.Committed("local", "ann", "", i, watchedAt.Add(time.Minute))
	}
	w.Committed("local", "bob", "", 31, watchedAt.Add(time.Minute))
	w.Committed("local", "bob", "", 30, watchedAt.Add(time.Minute))
	w.Committed("local", "nobody", "", 99, watchedAt)
	got := figures(t, m)
	for _, row := range []struct {
		name, metric, labels string
		want                 float64
	}{
		{"iterations per hour", "holdfast_agent_iterations_per_hour", "rank=1", 3},
		{"API cost per hour", "holdfast_agent_cost_dollars_per_hour", "rank=1", 6},
		{"time since last human check", "holdfast_human_check_age_seconds", "", 1800},
		{"error rate", "holdfast_agent_error_ratio", "rank=1", 0.25},
		{"files changed per commit", "holdfast_agent_commit_files", "rank=1", 31},
		{"repeated action count", "holdfast_agent_repeated_actions", "rank=1", 24},
	} {
		t.Run(row.name, func(t *testing.T) {
			if v, ok := got[row.metric][row.labels]; !ok || v != row.want {
				t.Errorf("%v (%v), not %v, of %v", v, ok, row.want, got[row.metric])
			}
		})
	}
	if v, ok := got["holdfast_agent_error_ratio"]["rank=2"]; ok {
		t.Errorf("an error rate of one action: %v", v)
	}
	if got := figures(t, rateMetrics{watch: func() *watch.Watch { return nil }}); len(got) != 0 {
		t.Errorf("nobody watches: %v", got)
	}
}

// Test001_Dashboard_MetricsAreBounded: 10,000 agents have ten series of a metric at
// most, the largest figures first, and none with a name.
func Test001_Dashboard_MetricsAreBounded(t *testing.T) {
	w := watch.New(watch.Limits{})
	for i := range 10_000 {
		w.Add(watch.Seen{Tenant: "local", Agent: fmt.Sprintf("agent-%d", i),
			At: watchedAt, Action: uint64(i), Cost: int64(i) * 1_000_000, Step: true})
	}
	_, m := acting()
	m.watch = func() *watch.Watch { return w }
	got := figures(t, m)
	for name, all := range got {
		if len(all) > maxRanks {
			t.Errorf("%s has %d series", name, len(all))
		}
		for labels := range all {
			if strings.Contains(labels, "agent") {
				t.Errorf("%s says %s", name, labels)
			}
		}
	}
	if all := got["holdfast_agent_cost_dollars_per_hour"]; all["rank=1"] != 9999 || all["rank=10"] != 9990 ||
		len(all) != maxRanks {
		t.Errorf("they spent %v", all)
	}
	if got["holdfast_agents_active"][""] != 10_000 {
		t.Errorf("%v are active", got["holdfast_agents_active"])
	}
}
