package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of what a report holds, however much happened.
const (
	maxReasons  = 20
	maxKinds    = 1000 // kinds of anomalies that are told apart
	maxPatterns = 20
	maxTenants  = 100
)

// Report is how a day went: of everything, and of each tenant in which something
// is recorded.
type Report struct {
	// Date is the day, YYYY-MM-DD, UTC. Over says that it has ended: until then the
	// report is of what was so far, at At, which is the day's end later.
	Date string    `json:"date"`
	Over bool      `json:"over"`
	At   time.Time `json:"at"`
	// Unread says that the ledger could not be read.
	Unread bool `json:"unread,omitempty"`
	Section
	// Tenants are at most 100, those of the worst health first; More is how many
	// others there are.
	Tenants []Section `json:"tenants,omitempty"`
	More    int       `json:"tenants_more,omitempty"`
	others  []Section // those, for Of
}

// Section is the report of one tenant, or of all together, by the document's
// layers and lines.
type Section struct {
	// Tenant is empty of everything.
	Tenant string `json:"tenant_id,omitempty"`

	// Layer 1: iterations, what was spent, and of the day's budget what it is, how
	// much remains of it, and that in hundredths.
	Iterations Count    `json:"iterations"`
	Cost       Count    `json:"cost_micro"`
	Budget     Count    `json:"budget_micro"`
	Remaining  Count    `json:"budget_remaining_micro"`
	Percent    *float64 `json:"budget_remaining_percent"`

	// Layer 2: actions that began without a person, questions to people, and the
	// mean confidence, in hundredths; Scored is of how many actions.
	Executed   Count    `json:"actions_auto_executed"`
	Escalated  Count    `json:"actions_escalated"`
	Confidence *float64 `json:"average_confidence_percent"`
	Scored     Count    `json:"confidence_asked"`

	// Layer 3: Snapshots is OK, MISSING, unknown or not configured.
	Commits   Count  `json:"commits"`
	Rollbacks Count  `json:"rollbacks"`
	Snapshots string `json:"state_snapshots"`

	// Layer 4: Waiting is at the end of the day, or now.
	Stops         Count `json:"emergency_stops"`
	Interventions Count `json:"manual_interventions"`
	Waiting       Count `json:"decision_queue_items"`

	// Layer 5: Severities are by the document's words.
	Anomalies  Count            `json:"anomalies"`
	Severities map[string]Count `json:"severities"`
	Patterns   []Pattern        `json:"patterns"`
	MoreFound  int              `json:"patterns_more,omitempty"`

	Health Level `json:"health"`
	// Because says why it is not GREEN, the gravest first.
	Because []string `json:"because,omitempty"`
}

// Pattern is a condition that was found, and how often.
type Pattern struct {
	Condition string `json:"condition"`
	Severity  string `json:"severity"`
	Times     int64  `json:"times"`
}

// Report is of everything that the day was told, as of at.
func (d *Day) Report(at time.Time) Report {
	if at.After(d.End()) {
		at = d.End()
	}
	r := Report{Date: d.start.Format("2006-01-02"), At: at.UTC(), Over: !at.Before(d.End()), Unread: len(d.all.unread) > 0}
	sections := make([]Section, 0, len(d.order))
	for _, name := range d.order {
		sections = append(sections, d.section(d.tenants[name]))
	}
	r.Section = d.whole(sections)
	slices.SortFunc(sections, func(a, b Section) int {
		return cmp.Or(cmp.Compare(a.Health, b.Health), cmp.Compare(b.Executed.N, a.Executed.N), cmp.Compare(a.Tenant, b.Tenant))
	})
	r.More = max(0, len(sections)-maxTenants)
	r.Tenants, r.others = sections[:len(sections)-r.More], sections[len(sections)-r.More:]
	return r
}

// Of is the report of one tenant alone, of whom nothing else is told; false where
// nothing is recorded of it, and of a report that was read from a file where it is none
// of those that are shown.
func (r Report) Of(tenant string) (Report, bool) {
	for _, list := range [...][]Section{r.Tenants, r.others} {
		for i := range list {
			if list[i].Tenant == tenant {
				r.Section, r.Tenants, r.others, r.More = list[i], nil, nil, 0
				return r, true
			}
		}
	}
	return r, false
}

// LeastRemaining is how many hundredths of its day's budget remain to the tenant with
// the least, shown or not; false where that is known of none.
func (r Report) LeastRemaining() (percent float64, known bool) {
	percent = 100
	for _, list := range [...][]Section{r.Tenants, r.others} {
		for i := range list {
			if part := list[i].Percent; part != nil {
				percent, known = min(percent, *part), true
			}
		}
	}
	return percent, known
}

// section is one tenant's.
func (d *Day) section(t *tally) Section {
	s := Section{Tenant: t.name, Iterations: of(t.iterations), Cost: of(t.cost), Executed: of(t.executed), Escalated: of(t.escalated), Scored: of(t.scored),
		Stops: of(d.all.stops), Interventions: of(int64(len(t.said)) + t.acts), Waiting: of(int64(len(t.queue))), Severities: map[string]Count{}, Patterns: []Pattern{}}
	if s.Budget = d.settings.budget(t.name); t.drew {
		s.Budget = of(t.limit)
	}
	if s.Budget.State == Is {
		s.Remaining = of(max(0, s.Budget.N-t.used))
	}
	if t.scored > 0 {
		mean := 100 * t.score / float64(t.scored)
		s.Confidence = &mean
	}
	d.versions(t, &s)
	d.anomalies(t, &s)
	if d.all.vague() {
		s.forget()
	}
	s.judge(d, t.blocked)
	return s
}

// versions is layer 3.
func (d *Day) versions(t *tally, s *Section) {
	some := t.took+t.failed+t.commits+t.rollbacks > 0 || t.missing
	switch {
	case d.settings == nil && !some:
		s.Snapshots = "unknown"
		return
	case !some && (!d.settings.Snapshots || t.name != holdfast.Local): // work trees are this machine's
		s.Snapshots = notConfigured
		s.Commits, s.Rollbacks = Count{State: Off}, Count{State: Off}
		return
	case t.took > 0 && !t.missing:
		s.Snapshots = "OK"
	default:
		s.Snapshots = "MISSING"
	}
	s.Commits, s.Rollbacks = of(t.commits), of(t.rollbacks)
}

// anomalies is layer 5. What was not watched for is not known to be absent.
func (d *Day) anomalies(t *tally, s *Section) {
	if len(t.found) == 0 && (d.settings == nil || !d.settings.Watched) {
		for _, name := range Severities() {
			s.Severities[name] = Count{}
		}
		return
	}
	n := int64(0)
	for _, name := range Severities() {
		s.Severities[name] = of(0)
	}
	for p, times := range t.found {
		n = sum(n, times)
		s.Severities[p.severity] = s.Severities[p.severity].plus(of(times))
		s.Patterns = append(s.Patterns, Pattern{p.condition, p.severity, times})
	}
	s.Anomalies = of(n)
	s.bound()
}

// bound sorts the patterns, the gravest and most frequent first, and leaves out
// those beyond the bound.
func (s *Section) bound() {
	slices.SortFunc(s.Patterns, func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(slices.Index(Severities(), a.Severity), slices.Index(Severities(), b.Severity)), cmp.Compare(b.Times, a.Times), cmp.Compare(a.Condition, b.Condition))
	})
	if more := len(s.Patterns) - maxPatterns; more > 0 {
		s.Patterns, s.MoreFound = s.Patterns[:maxPatterns], s.MoreFound+more
	}
}

// forget is of a ledger that cannot be read: what was counted is no figure.
func (s *Section) forget() {
	for _, c := range []*Count{&s.Iterations, &s.Cost, &s.Budget, &s.Remaining, &s.Executed, &s.Escalated, &s.Scored, &s.Commits, &s.Rollbacks, &s.Stops, &s.Interventions, &s.Waiting, &s.Anomalies} {
		*c = Count{}
	}
	s.Percent, s.Confidence, s.Snapshots, s.Patterns, s.MoreFound = nil, nil, "unknown", []Pattern{}, 0
	for _, name := range Severities() {
		s.Severities[name] = Count{}
	}
}

// vague says that what was counted is no figure.
func (a *shared) vague() bool { return len(a.unread) > 0 || a.behind }

// whole is all sections together. Without any, nothing is known.
func (d *Day) whole(list []Section) Section {
	if len(list) == 1 {
		w := list[0]
		w.Tenant = ""
		return w
	}
	w := Section{Severities: map[string]Count{}, Patterns: []Pattern{}}
	if len(list) > 0 {
		w = d.together(list)
	}
	w.Stops = of(d.all.stops)
	if len(list) == 0 || d.all.vague() {
		w.forget()
	}
	w.judge(d, false)
	for i := range list {
		if s := &list[i]; s.Health < w.Health && len(w.Because) < maxReasons {
			w.Because = append(w.Because, fmt.Sprintf("tenant %s is %s", s.Tenant, s.Health))
		}
	}
	for i := range list {
		w.Health = min(w.Health, list[i].Health)
	}
	return w
}

// together adds sections up.
func (d *Day) together(list []Section) Section {
	w := list[0]
	w.Tenant, w.Because, w.Percent, w.Confidence = "", nil, nil, nil
	w.Severities = map[string]Count{}
	found, score := map[pattern]int64{}, 0.0
	for i := range list {
		s := &list[i]
		for _, pair := range [][2]*Count{{&w.Iterations, &s.Iterations}, {&w.Cost, &s.Cost}, {&w.Budget, &s.Budget}, {&w.Remaining, &s.Remaining}, {&w.Executed, &s.Executed}, {&w.Escalated, &s.Escalated},
			{&w.Scored, &s.Scored}, {&w.Commits, &s.Commits}, {&w.Rollbacks, &s.Rollbacks}, {&w.Interventions, &s.Interventions}, {&w.Waiting, &s.Waiting}, {&w.Anomalies, &s.Anomalies}} {
			if i > 0 {
				*pair[0] = pair[0].plus(*pair[1])
			}
		}
		for _, name := range Severities() {
			if old, there := w.Severities[name]; there {
				w.Severities[name] = old.plus(s.Severities[name])
			} else {
				w.Severities[name] = s.Severities[name]
			}
		}
		w.Snapshots = worse(w.Snapshots, s.Snapshots)
		if s.Confidence != nil {
			score += *s.Confidence * float64(s.Scored.N)
		}
		if i > 0 {
			w.MoreFound += s.MoreFound
		}
		for _, p := range s.Patterns {
			found[pattern{p.Severity, p.Condition}] += p.Times
		}
	}
	if w.Scored.State == Is && w.Scored.N > 0 {
		mean := score / float64(w.Scored.N)
		w.Confidence = &mean
	}
	w.Patterns = []Pattern{}
	for p, times := range found {
		w.Patterns = append(w.Patterns, Pattern{p.condition, p.severity, times})
	}
	w.bound()
	return w
}

// worse is the worse of two words on snapshots.
func worse(a, b string) string {
	order := []string{"MISSING", "unknown", "OK", notConfigured}
	return order[min(slices.Index(order, a), slices.Index(order, b))]
}

// judge says how healthy it is, and why not (D41b).
func (s *Section) judge(d *Day, blocked bool) {
	if s.Budget.State == Is && s.Remaining.State == Is && s.Budget.N > 0 {
		part := 100 * float64(s.Remaining.N) / float64(s.Budget.N)
		s.Percent = &part
	}
	s.Health, s.Because = Green, nil
	because := func(l Level, format string, args ...any) {
		s.Health = min(s.Health, l)
		if len(s.Because) < maxReasons {
			s.Because = append(s.Because, fmt.Sprintf(format, args...))
		}
	}
	switch {
	case d.all.halted:
		because(Red, "everything is halted")
	case d.all.was:
		because(Red, "everything was halted")
	}
	for _, why := range d.all.unread {
		because(Red, "the ledger cannot be read: %s", why)
	}
	for _, why := range d.all.critical {
		because(Red, "%s", why)
	}
	if n := s.Severities["CRITICAL"]; n.N > 0 {
		because(Red, "CRITICAL anomalies: %d", n.N)
	}
	if blocked || s.Budget.N > 0 && s.Remaining.State == Is && s.Remaining.N <= 0 {
		because(Red, "the day's budget is spent")
	}
	for _, name := range []string{"HIGH", "MEDIUM"} {
		if n := s.Severities[name]; n.N > 0 {
			because(Yellow, "%s anomalies: %d", name, n.N)
		}
	}
	if s.Snapshots == "MISSING" {
		because(Yellow, "state snapshots are missing")
	}
	for _, why := range d.all.doubts {
		because(Yellow, "%s", why)
	}
	if d.all.behind {
		because(Yellow, "the ledger is still being read")
	}
	for _, line := range s.unknown(d) {
		because(Yellow, "%s: unknown", line)
	}
}

// unknown are the lines whose figure nobody knows.
func (s *Section) unknown(d *Day) (out []string) {
	for _, x := range []struct {
		name string
		is   Count
	}{{"total iterations", s.Iterations}, {"API cost", s.Cost}, {"budget remaining", s.Remaining}, {"actions auto-executed", s.Executed}, {"actions escalated", s.Escalated},
		{"commits", s.Commits}, {"rollbacks", s.Rollbacks}, {"emergency stops", s.Stops}, {"manual interventions", s.Interventions}, {"decision queue items", s.Waiting}, {"anomalies", s.Anomalies}} {
		if x.is.State == Unknown {
			out = append(out, x.name)
		}
	}
	if s.Snapshots == "unknown" {
		out = append(out, "state snapshots")
	}
	if d.all.unknown {
		out = append(out, "whether everything was halted when the day began")
	}
	return out
}
