// Package metrics is what Prometheus scrapes.
package metrics

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/alert"
	"github.com/holdfast-dev/holdfast/internal/observe/anomaly"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapeTime bounds one scrape; scrapes is how many are answered at once.
const (
	scrapeTime = 5 * time.Second
	scrapes    = 2
)

// maxNames bounds how many names one label of one metric may have; what comes
// beyond is counted as "other". Names are those of loaded rules and listed
// boundaries, never of a request, but each reload may bring new ones.
const maxNames = 1000

// Metrics counts what happens (spec 004, D47). It is the kernel's Observer; what
// it counts it was told once it was durable.
type Metrics struct {
	registry *prometheus.Registry

	checks, violations, observed, passed *prometheus.CounterVec
	took                                 *prometheus.HistogramVec
	crossings, broken                    *prometheus.CounterVec

	rules, classes names
	anomalies      watchMetrics
}

// New makes the registry, with every metric that needs nothing else.
func New() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_" + name, Help: help}, labels)
	}
	m := &Metrics{
		registry:   prometheus.NewPedanticRegistry(),
		checks:     counter("safety_checks_total", "Goals, sub-tasks and graphs that the SafetyFilter judged.", "subject_type", "result"),
		violations: counter("safety_violations_total", "Violations that the SafetyFilter enforces.", "rule_id", "severity"),
		observed:   counter("rules_observed_total", "Violations of rules that only observe.", "rule_id", "severity"),
		passed:     counter("rules_passed_on_error_total", "Failures of rules that let pass what they could not judge (on_error: pass).", "rule_id"),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "holdfast_safety_check_duration_seconds", Help: "How long judging one subject took.",
			Buckets: []float64{5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 2.5e-2, 0.1, 1, 5}}, []string{"subject_type"}),
		crossings: counter("crossings_total", "Requests by the first part of their boundary's name, what became of them, and the gate that refused or held.", "class", "verdict", "gate", "outcome"),
		broken:    counter("rules_violations_total", "Violations of rules on requests and outputs that are enforced.", "rule_id", "severity"),
	}
	m.anomalies = newWatchMetrics(m.registry)
	m.registry.MustRegister(m.checks, m.violations, m.observed, m.passed, m.took, m.crossings, m.broken)
	// What an alert asks for is there before it first happens.
	for _, kind := range []goalrule.SubjectType{goalrule.SubjectGoal, goalrule.SubjectSubTask, goalrule.SubjectGraph} {
		m.checks.WithLabelValues(string(kind), "allowed")
		m.checks.WithLabelValues(string(kind), "blocked")
		m.took.WithLabelValues(string(kind))
	}
	for _, r := range goalrule.BuiltIn() {
		m.violations.WithLabelValues(r.ID, string(r.Severity))
	}
	return m
}

// GoalsJudged implements kernel.Observer.
func (m *Metrics) GoalsJudged(verdicts []goalrule.Verdict, admitted bool) {
	for i := range verdicts {
		v := &verdicts[i]
		result := "blocked"
		if v.Passes(admitted) {
			result = "allowed"
		}
		m.checks.WithLabelValues(string(v.SubjectType), result).Inc()
		m.took.WithLabelValues(string(v.SubjectType)).Observe(v.Took.Seconds())
		for n := range v.Violations {
			o := &v.Violations[n]
			m.spoke(m.violations, o.Rule, string(o.Severity), o.Observed, o.Passed)
		}
	}
}

// Escaped implements kernel.Observer.
func (m *Metrics) Escaped(string, string, string) {}

// Attended implements kernel.Observer.
func (m *Metrics) Attended(string, string) {}

// Crossed implements kernel.Observer.
func (m *Metrics) Crossed(c kernel.Crossed) {
	class, gate, outcome := "unlisted", "none", string(c.Outcome)
	if c.Boundary != "" {
		class, _, _ = strings.Cut(c.Boundary, "/")
		class = m.classes.of(class)
	}
	if c.Verdict != holdfast.Allow {
		gate = c.Gate.String()
	}
	if outcome == "" {
		outcome = "held"
	}
	m.crossings.WithLabelValues(class, c.Verdict.String(), gate, outcome).Inc()
	for i := range c.Spoke {
		f := &c.Spoke[i]
		m.spoke(m.broken, f.Rule, f.Severity, f.Observed, f.Passed)
	}
}

// spoke counts one rule that spoke: as what it only observed, as its own failure
// that it lets pass, or as what it enforces.
func (m *Metrics) spoke(enforced *prometheus.CounterVec, rule, severity string, observed, passed bool) {
	rule = m.rules.of(rule)
	switch {
	case passed:
		m.passed.WithLabelValues(rule).Inc()
	case observed:
		m.observed.WithLabelValues(rule, severity).Inc()
	default:
		enforced.WithLabelValues(rule, severity).Inc()
	}
}

// names are the values of one label, so many and no more.
type names struct {
	known sync.Map
	mu    sync.Mutex
	count int // guarded by mu
}

// of is name itself, or "other" where there are too many.
func (n *names) of(name string) string {
	if _, ok := n.known.Load(name); ok {
		return name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.known.Load(name); ok {
		return name
	}
	if n.count == maxNames {
		return "other"
	}
	n.count++
	n.known.Store(name, true)
	return name
}

// Sources are read at each scrape.
type Sources struct {
	Watcher     *anomaly.Watcher
	GoalsPaused func() bool
	Policy      func() *kernel.Policy
	Halted      func() bool
	// Egress returns the figures of the proxy, nil without one.
	Egress func() *Egress
	// Channels returns the channels of alerts.
	Channels func() []alert.Channel
	// Today returns how today goes, and how healthy it is with what holds at this moment.
	Today func(ctx context.Context, now time.Time) (health.Report, health.Level)
	// Reviews returns the number of questions that wait for a person.
	Reviews func(context.Context) (int, error)
}

// LookAt adds what is read at each scrape.
func (m *Metrics) LookAt(s Sources) {
	m.anomalies.lookAt(s.Watcher, m.registry)
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "holdfast_" + name, Help: help}, value))
	}
	gauge("safety_paused", "1 while the goals of any tenant are paused, or while nobody can say.",
		func() float64 { return one(s.GoalsPaused()) })
	gauge("safety_rules_registered", "Rules on goals, sub-tasks and graphs: built in and loaded.",
		func() float64 { return float64(registered(s.Policy())) })
	gauge("halted", "1 while everything is halted.", func() float64 { return one(s.Halted()) })
	gauge("weakened", "What is weakened, as status lists it.",
		func() float64 { return float64(len(s.Policy().Weakened)) })
	m.registry.MustRegister(&egressMetrics{s.Egress}, weakenedRules{s.Policy}, alertMetrics{s.Channels},
		rateMetrics{watch: func() *watch.Watch { return s.Watcher.Watch },
			now: time.Now}, healthMetrics{s.Today, s.Reviews})
}

// Answered counts what was done about a finding.
func (m *Metrics) Answered(f *watch.Finding, times int, err error) { m.anomalies.count(f, times, err) }

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// registered is how many rules the SafetyFilter asks.
func registered(p *kernel.Policy) int {
	n := len(goalrule.BuiltIn())
	loaded, ok := p.Rules.(interface{ Rules() []constitution.Info })
	if !ok {
		return n
	}
	for _, r := range loaded.Rules() {
		switch r.On {
		case constitution.OnGoal, constitution.OnSubtask, constitution.OnGraph:
			n++
		}
	}
	return n
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes, Timeout: scrapeTime, DisableCompression: true})
}
