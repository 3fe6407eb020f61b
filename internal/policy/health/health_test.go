package health

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func score(v float64) *float64 { return &v }

// quiet is a day of one tenant on which everything is known and nothing is wrong.
func quiet() *Day {
	d := NewDay(noon)
	d.Tenant("local")
	d.Begins()
	d.Before(Event{Tenant: "local", Settings: &Settings{Budgets: map[string]int64{"": 50_000_000}, Snapshots: true, Watched: true}})
	d.Crossed(Crossing{Tenant: "local", Boundary: "snapshot/take", Began: true, Done: true})
	return d
}

func (d *Day) asks(id string) {
	d.Happened(Event{Tenant: "local", Name: "review_proposed", Subject: id})
}
func (d *Day) stop()          { d.Happened(Event{Tenant: "local", Name: "halted", Subject: Everything}) }
func (d *Day) finds(s string) { d.findsTimes(s, s+"_thing", 1) }
func (d *Day) answer(e, s string) {
	d.Happened(Event{Tenant: "local", Name: "review_" + e, Subject: s, Decision: "approved"})
}

func (d *Day) findsTimes(severity, condition string, n int64) {
	d.Happened(Event{Tenant: "local", Name: "anomaly_found", Severity: severity, Condition: condition, Times: n})
}

func (d *Day) acts(c Crossing) {
	c.Tenant, c.Began = "local", true
	d.Crossed(c)
}

// line is one line of the report.
func line(r Report, name string) string {
	for _, part := range r.Parts() {
		for _, l := range part.Lines {
			if l.Name == name {
				return l.Value
			}
		}
	}
	return "no such line"
}

// Test001_Report_Lines: each line of the document's daily report, of what it counts.
func Test001_Report_Lines(t *testing.T) {
	for _, c := range []struct {
		line, want string
		happened   func(*Day)
	}{
		{"Total iterations today", "2", func(d *Day) {
			d.acts(Crossing{Boundary: "agent/step"})
			d.acts(Crossing{Boundary: "agent/step", Approved: true})
			d.acts(Crossing{Boundary: "goal/admit"})
			d.Crossed(Crossing{Tenant: "local", Boundary: "agent/step"}) // refused
		}},
		{"API cost today", "$1.26", func(d *Day) {
			d.acts(Crossing{Boundary: "llm/a", Cost: 1_250_000})
			d.acts(Crossing{Boundary: "llm/a", Cost: 1}) // a part of a cent is one
			d.Crossed(Crossing{Tenant: "local", Boundary: "llm/a", Cost: 9_000_000})
		}},
		{"Budget remaining", "$7.49 (74%)", func(d *Day) {
			d.acts(Crossing{Boundary: "llm/a", Cost: 1, Drew: true, Limit: 20_000_000, Used: 1})
			d.acts(Crossing{Boundary: "llm/a", Cost: 2_500_000, Drew: true, Limit: 10_000_000, Used: 2_500_000})
		}},
		{"Actions auto-executed", "1", func(d *Day) {
			d.acts(Crossing{Boundary: "mcp/a/b"})
			d.acts(Crossing{Boundary: "mcp/a/b", Approved: true})
			d.acts(Crossing{Boundary: "watch/pause", Done: true})
			d.Crossed(Crossing{Tenant: "local", Boundary: "mcp/a/b"})
		}},
		{"Actions escalated", "2", func(d *Day) {
			d.asks("rv_1")
			d.asks("rv_2")
			d.answer("decided", "rv_1")
		}},
		{"Average confidence", "62.5%", func(d *Day) {
			d.acts(Crossing{Boundary: "a/b", Confidence: score(0.5)})
			d.Crossed(Crossing{Tenant: "local", Boundary: "a/b", Confidence: score(0.75)}) // held
			d.acts(Crossing{Boundary: "a/b"})
		}},
		{"Commits today", "1", func(d *Day) {
			d.acts(Crossing{Boundary: "snapshot/commit", Done: true})
			d.acts(Crossing{Boundary: "snapshot/commit"})
		}},
		{"Rollbacks today", "1", func(d *Day) { d.acts(Crossing{Boundary: "snapshot/rollback", Done: true}) }},
		{"Rollbacks today", "1", func(d *Day) { d.Happened(Event{Tenant: "local", Name: "tree_rolled_back", Did: "snapshot/rollback"}) }},
		{"State snapshots", "OK", func(*Day) {}},
		{"State snapshots", "MISSING", func(d *Day) { d.findsTimes("MEDIUM", "snapshot_missing", 1) }},
		{"Emergency stops", "2", func(d *Day) {
			d.stop()
			d.Happened(Event{Tenant: "local", Name: "resumed", Subject: Everything, Signature: "s"})
			d.stop()
		}},
		{"Manual interventions", "4", func(d *Day) {
			// One statement that makes two events, two others, and a pause by hand;
			// Holdfast's own pause is none.
			d.Happened(Event{Tenant: "local", Name: "review_decided", Signature: "a", Decision: "approved"})
			d.Happened(Event{Tenant: "local", Name: "agent_unpaused", Signature: "a"})
			d.Happened(Event{Tenant: "local", Name: "trust_level_changed", Signature: "b"})
			d.Happened(Event{Tenant: "local", Name: "resumed", Subject: Everything, Signature: "c"})
			d.Happened(Event{Tenant: "local", Name: "agent_paused"})
			d.Happened(Event{Tenant: "local", Name: "agent_paused", Own: true})
			d.Happened(Event{Tenant: "local", Name: "policy_changed"})
		}},
		{"Decision queue items", "3", func(d *Day) {
			d.Before(Event{Tenant: "local", Name: "review_proposed", Subject: "rv_yesterday"})
			d.Waits("local", "rv_escape")
			for _, id := range []string{"rv_1", "rv_2", "rv_3", "rv_4"} {
				d.asks(id)
			}
			d.answer("decided", "rv_1")
			d.answer("expired", "rv_2")
			d.answer("voided", "rv_3")
			d.Happened(Event{Tenant: "local", Name: "review_decided", Subject: "rv_4", Decision: "deferred"})
		}},
		{"Anomalies detected", "4", func(d *Day) {
			d.finds("HIGH")
			d.findsTimes("LOW", "outlier", 3)
			d.Happened(Event{Tenant: "local", Name: "anomaly_found", Severity: "MEDIUM", Condition: "rapid_actions", Cause: "loop"})
			d.Happened(Event{Tenant: "local", Name: "anomaly_cleared", Severity: "HIGH", Condition: "loop"})
		}},
		{"Severity breakdown", "CRITICAL(1) HIGH(2) MEDIUM(1) LOW(0)", func(d *Day) {
			for _, s := range []string{"HIGH", "HIGH", "MEDIUM", "no severity that is known"} {
				d.finds(s)
			}
		}},
		{"Patterns observed", "loop x 2, rapid_actions", func(d *Day) {
			d.findsTimes("MEDIUM", "rapid_actions", 1)
			d.findsTimes("HIGH", "loop", 2)
		}},
	} {
		t.Run(c.line, func(t *testing.T) {
			d := quiet()
			c.happened(d)
			if got := line(d.Report(noon), c.line); got != c.want {
				t.Errorf("%s: %s, not %s", c.line, got, c.want)
			}
		})
	}
}

// Test001_Report_Markdown: the document's headings and lines, in its order.
func Test001_Report_Markdown(t *testing.T) {
	d := quiet()
	d.acts(Crossing{Boundary: "agent/step"})
	d.finds("HIGH")
	const want = `## Safety Net Daily Report - 2026-03-01

### Layer 1: Cooldowns & Limits
- Total iterations today: 1
- API cost today: $0.00
- Budget remaining: $50.00 (100%)

### Layer 2: Threshold Scores
- Actions auto-executed: 1
- Actions escalated: 0
- Average confidence: none was asked for

### Layer 3: Version History
- Commits today: 0
- Rollbacks today: 0
- State snapshots: OK

### Layer 4: Human Override
- Emergency stops: 0
- Manual interventions: 0
- Decision queue items: 0

### Layer 5: Anomaly Detection
- Anomalies detected: 1
- Severity breakdown: CRITICAL(0) HIGH(1) MEDIUM(0) LOW(0)
- Patterns observed: HIGH_thing

### Overall Health: YELLOW
- HIGH anomalies: 1
`
	if got := markdown(t, d.Report(d.End())); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := markdown(t, d.Report(noon)); !strings.Contains(got, "\n\nSo far, at 12:00 UTC.\n\n### Layer 1") {
		t.Errorf("of a day that is not over:\n%s", got)
	}
}

func markdown(t *testing.T, r Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Markdown(&b, strings.TrimSpace); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestD41b_Health: what makes a day RED, YELLOW and GREEN, the worst of it all.
func TestD41b_Health(t *testing.T) {
	yes := true
	for _, c := range []struct {
		name     string
		want     Level
		because  string
		happened func(*Day)
	}{
		{"nothing happened", Green, "", func(*Day) {}},
		{"a LOW anomaly", Green, "", func(d *Day) { d.finds("LOW") }},
		{"a MEDIUM anomaly", Yellow, "MEDIUM anomalies: 1", func(d *Day) { d.finds("MEDIUM") }},
		{"a HIGH anomaly", Yellow, "HIGH anomalies: 1", func(d *Day) { d.finds("HIGH") }},
		{"a CRITICAL anomaly", Red, "CRITICAL anomalies: 1", func(d *Day) { d.finds("CRITICAL") }},
		{"verification failed", Red, "CRITICAL anomalies: 1", func(d *Day) { d.findsTimes("CRITICAL", "verification_failed", 1) }},
		{"halted", Red, "everything is halted", (*Day).stop},
		{"halted since before", Red, "everything is halted", func(d *Day) { d.Before(Event{Halted: &yes}) }},
		{"halted and resumed", Red, "everything was halted", func(d *Day) {
			d.stop()
			d.Happened(Event{Tenant: "local", Name: "resumed", Subject: Everything})
		}},
		{"resumed before the day", Green, "", func(d *Day) {
			d.Before(Event{Name: "halted"})
			d.Before(Event{Name: "resumed", Subject: Everything})
		}},
		{"halted by HOLDFAST_ENABLED", Red, "everything was halted", func(d *Day) {
			no := false
			d.Happened(Event{Tenant: "local", Name: "started", Halted: &no, Disabled: true})
		}},
		{"halted by HOLDFAST_ENABLED before the day", Green, "", func(d *Day) {
			no := false
			d.Before(Event{Tenant: "local", Name: "started", Halted: &no, Disabled: true})
		}},
		{"goals resumed while halted", Red, "everything is halted", func(d *Day) {
			d.stop()
			d.Happened(Event{Tenant: "local", Name: "goals_resumed", Subject: "goals"})
		}},
		{"the latch was removed", Red, "the halt latch was removed", func(d *Day) { d.Happened(Event{Tenant: "local", Name: "halt_latch_removed"}) }},
		{"the ledger failed", Red, "the ledger failed to write", func(d *Day) { d.Happened(Event{Tenant: "local", Name: "refused_while_poisoned"}) }},
		{"the ledger cannot be read", Red, "the ledger cannot be read: leaf 7", func(d *Day) { d.Unread("leaf 7") }},
		{"the day's budget is spent to the last", Red, "the day's budget is spent", func(d *Day) { d.acts(Crossing{Boundary: "a", Drew: true, Limit: 10, Used: 10}) }},
		{"all but one of it", Green, "", func(d *Day) { d.acts(Crossing{Boundary: "a", Drew: true, Limit: 10, Used: 9}) }},
		{"the tenant is blocked", Red, "the day's budget is spent", func(d *Day) { d.Happened(Event{Tenant: "local", Name: "tenant_blocked"}) }},
		{"snapshots are missing", Yellow, "MEDIUM anomalies: 1", func(d *Day) { d.findsTimes("MEDIUM", "snapshot_missing", 1) }},
		{"a snapshot failed, another did not", Green, "", func(d *Day) { d.acts(Crossing{Boundary: "snapshot/take"}) }},
		{"still being read", Yellow, "the ledger is still being read", func(d *Day) { d.Behind(true) }},
		{"the clock is doubted", Yellow, "ahead", func(d *Day) { d.Doubt("ahead of the clock") }},
		{"nobody watches", Yellow, "anomalies: unknown", func(d *Day) {
			d.Happened(Event{Tenant: "local", Name: "policy_changed", Settings: &Settings{Budgets: map[string]int64{"": 1}}})
		}},
		{"no budget is known", Yellow, "budget remaining: unknown", func(d *Day) {
			d.Happened(Event{Tenant: "local", Name: "policy_changed", Settings: &Settings{Watched: true}})
		}},
		{"RED over YELLOW", Red, "MEDIUM anomalies: 1", func(d *Day) { d.finds("MEDIUM"); d.finds("CRITICAL") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := quiet()
			c.happened(d)
			r := d.Report(noon)
			if r.Health != c.want || !strings.Contains(strings.Join(r.Because, "; "), c.because) || (c.want == Green) != (len(r.Because) == 0) {
				t.Errorf("%s because of %q, not %s because of %q", r.Health, r.Because, c.want, c.because)
			}
		})
	}
}

// TestD41b_UnknownIsNoZero: a day of which nothing is known has no figure, and is
// not GREEN; nor has one whose ledger cannot be read.
func TestD41b_UnknownIsNoZero(t *testing.T) {
	unread := quiet()
	unread.acts(Crossing{Boundary: "agent/step", Cost: 1})
	unread.Unread("the disk is gone")
	for name, d := range map[string]*Day{"nothing is known": NewDay(noon), "it cannot be read": unread} {
		r := d.Report(noon)
		for _, part := range r.Parts() {
			for _, l := range part.Lines {
				if !strings.Contains(l.Value, "unknown") || strings.ContainsAny(l.Value, "0123456789") {
					t.Errorf("%s: %s: %s", name, l.Name, l.Value)
				}
			}
		}
		if r.Health == Green {
			t.Errorf("%s: GREEN", name)
		}
	}
	if r := unread.Report(noon); r.Health != Red || !r.Unread {
		t.Errorf("%v", r.Because)
	}
	// A settings event older than this version's says nothing of snapshots.
	d := NewDay(noon)
	d.Tenant("local")
	if got := line(d.Report(noon), "State snapshots"); got != "unknown" {
		t.Errorf("snapshots: %s", got)
	}
	d.Before(Event{Settings: &Settings{}})
	if got := line(d.Report(noon), "Commits today"); got != "not configured" {
		t.Errorf("commits: %s", got)
	}
}

// TestReport_Tenants: all together are the sum of each, and as bad as the worst;
// one's own report tells nothing of another.
func TestReport_Tenants(t *testing.T) {
	d := quiet()
	d.acts(Crossing{Boundary: "agent/step", Cost: 1_000_000, Drew: true, Limit: 50_000_000, Used: 1_000_000, Confidence: score(1)})
	for range 3 {
		d.Crossed(Crossing{Tenant: "acme", Boundary: "agent/step", Began: true, Cost: 2_000_000, Drew: true, Limit: 6_000_000, Used: 2_000_000, Confidence: score(0.5)})
	}
	d.Happened(Event{Tenant: "acme", Name: "anomaly_found", Severity: "HIGH", Condition: "secret_plan", Times: 1})
	r := d.Report(noon)
	for name, want := range map[string]string{"Total iterations today": "4", "API cost today": "$7.00", "Budget remaining": "$49.00 (87%)", "Average confidence": "62.5%",
		"Anomalies detected": "1", "State snapshots": "OK", "Commits today": "0"} {
		if got := line(r, name); got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
	if r.Health != Red || !slices.Contains(r.Because, "tenant acme is RED") || len(r.Tenants) != 2 || r.Tenants[0].Tenant != "acme" {
		t.Errorf("%s: %q", r.Health, r.Because)
	}
	own, ok := r.Of("local")
	if !ok || own.Health != Green {
		t.Errorf("%v: %s %q", ok, own.Health, own.Because)
	}
	b, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	if text := markdown(t, own) + string(b); strings.Contains(text, "acme") || strings.Contains(text, "secret_plan") {
		t.Errorf("it tells of another tenant:\n%s", text)
	}
	if _, ok := r.Of("nobody"); ok {
		t.Error("nobody has a report")
	}
}

// TestReport_Bounds: however much happens, the report is bounded, and says how much
// it leaves out.
func TestReport_Bounds(t *testing.T) {
	d := quiet()
	for i := range 10_000 {
		d.Crossed(Crossing{Tenant: fmt.Sprintf("tenant-%d", i), Boundary: "agent/step", Began: true, Cost: 1<<63 - 1})
		d.Doubt(fmt.Sprint("doubt ", i))
		d.findsTimes("HIGH", fmt.Sprint("condition-", i), 1<<62)
	}
	r := d.Report(noon)
	text := markdown(t, r)
	if len(text) > 200_000 || !strings.Contains(text, "tenants are not shown") || !strings.Contains(text, "more\n") {
		t.Errorf("%d bytes", len(text))
	}
	if own, ok := r.Of("local"); !ok || own.Tenant != "local" {
		t.Error("there is no report of a tenant that is not shown")
	}
	for _, i := range []int{0, 5000, 9999} {
		name := fmt.Sprintf("tenant-%d", i)
		if own, ok := r.Of(name); !ok || own.Tenant != name || own.Iterations.N != 1 || strings.Contains(markdown(t, own), "not shown") {
			t.Errorf("of %s: %v %+v", name, ok, own.Section)
		}
	}
	if r.Cost.N != 1<<63-1 || r.Anomalies.N != 1<<63-1 {
		t.Errorf("%d, %d", r.Cost.N, r.Anomalies.N)
	}
}

// TestReport_LeastRemaining: a tenant that is healthier than a hundred others may have
// the least that remains.
func TestReport_LeastRemaining(t *testing.T) {
	if _, known := NewDay(noon).Report(noon).LeastRemaining(); known {
		t.Error("of nobody something remains")
	}
	d := quiet()
	d.acts(Crossing{Boundary: "agent/step", Drew: true, Limit: 100, Used: 97})
	for i := range 2 * maxTenants {
		d.Happened(Event{Tenant: fmt.Sprint("tenant-", i), Name: "anomaly_found", Severity: "MEDIUM", Condition: "haste", Times: 1})
	}
	if least, known := d.Report(noon).LeastRemaining(); !known || least != 3 {
		t.Errorf("%v %v", least, known)
	}
}

// TestReport_JSON: what is written is read again, and unknown is no number.
func TestReport_JSON(t *testing.T) {
	d := quiet()
	d.acts(Crossing{Boundary: "agent/step"})
	d.Happened(Event{Tenant: "local", Name: "policy_changed", Settings: &Settings{}})
	for _, want := range []Report{d.Report(noon), NewDay(noon).Report(noon)} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Report
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Section, want.Section) {
			t.Errorf("got %+v\nwant %+v", got.Section, want.Section)
		}
	}
	if b, _ := json.Marshal(Count{}); string(b) != "null" {
		t.Errorf("%s", b)
	}
	var l Level
	if l.UnmarshalText([]byte("green")) == nil || l != Red {
		t.Errorf("%s", l)
	}
}
