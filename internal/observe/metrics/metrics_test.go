package metrics

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/prometheus/client_golang/prometheus"
)

// TestMetrics_names_are_bounded: reloads bring new rules and boundaries for ever;
// beyond the bound they are counted as others.
func TestMetrics_names_are_bounded(t *testing.T) {
	m := New()
	for i := range 3 * maxNames {
		m.Crossed(kernel.Crossed{Boundary: fmt.Sprintf("class%d/x", i),
			Verdict: holdfast.Deny, Gate: holdfast.K8, Outcome: "denied",
			Spoke: []constitution.Finding{{Rule: fmt.Sprint("rule", i), Severity: "block"}}})
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.GetMetric()); n > maxNames+len(goalrule.BuiltIn())+1 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
}

// BenchmarkMetrics is what one crossing pays for being counted.
func BenchmarkMetrics(b *testing.B) {
	m, c := New(), kernel.Crossed{Boundary: "mcp/bank/pay", Verdict: holdfast.Allow, Outcome: "done"}
	b.ReportAllocs()
	for b.Loop() {
		m.Crossed(c)
	}
}

// TestEgressIsPedantic: what is shown of the proxy is what a strict registry takes.
func TestEgressIsPedantic(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&egressMetrics{func() *Egress {
		return &Egress{
			Requests: []EgressRequests{{Domain: "a.example.com", N: 2}, {Kind: "denied", N: 1}},
			Stages:   []EgressStage{{Name: "parse", Count: 2, Seconds: 0.1, Under: map[float64]uint64{0.1: 1, 1: 2}}},
		}
	}})
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}
