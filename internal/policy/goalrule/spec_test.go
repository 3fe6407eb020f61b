package goalrule

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// TestConfig_004: each field of the document's SafetyConfig has its default, and
// is what its rule measures by.
func TestConfig_004(t *testing.T) {
	d := Defaults()
	for _, c := range []struct {
		name   string
		is     bool
		change func(*Config)
		text   string
		spoke  string
	}{
		{"max_goal_description_len", d.MaxDescription == 2048, func(c *Config) { c.MaxDescription = 3 }, goalOf("four", "2", "x", ""), "SR-001 block"},
		{"allowed_capability_prefixes", slices.Equal(d.AllowedPrefixes, []string{"local:", "federation:"}), func(c *Config) { c.AllowedPrefixes = []string{"cloud"} }, aTask(`["local:x"]`), "SR-004 warn"},
		{"blocked_capability_patterns", slices.Equal(d.BlockedCapabilities, []string{"network:external", "exec:arbitrary"}), func(c *Config) { c.BlockedCapabilities = []string{"local:x"} }, aTask(`["local:x"]`), "SR-003 block"},
		{"max_subtasks_per_graph", d.MaxSubTasks == 128, func(c *Config) { c.MaxSubTasks = 2 }, graphOf(3), "SR-005 block"},
		{"max_priority_auto_escalate", d.AutoEscalate == High, func(c *Config) { c.AutoEscalate = Idle }, goalOf("d", "3", "x", ""), "SR-002 block"},
		{"pause_on_critical", d.PauseOnCritical, func(c *Config) { c.PauseOnCritical = false }, aGoal(""), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.is {
				t.Error("another default")
			}
			if got := verdicts(t, filter(t, nil), c.text, Caller{}, nil); spoke(got[0]) != "" {
				t.Errorf("by default it says %s", spoke(got[0]))
			}
			f := filter(t, c.change)
			if got := verdicts(t, f, c.text, Caller{}, nil); spoke(got[0]) != c.spoke {
				t.Errorf("says %s, not %s", spoke(got[0]), c.spoke)
			}
			if f.PausesOnCritical() == (c.name == "pause_on_critical") {
				t.Error("pauses otherwise")
			}
		})
	}
}

// TestBuiltIn_004 is the document's table: seven rules, each with its subject and
// its severity.
func TestBuiltIn_004(t *testing.T) {
	var got []string
	for _, r := range BuiltIn() {
		got = append(got, fmt.Sprintf("%s %s %s", r.ID, r.On, r.Severity))
		if r.Description == "" {
			t.Error(r.ID, "says nothing")
		}
	}
	want := []string{"SR-001 goal block", "SR-002 goal block", "SR-003 subtask block", "SR-004 subtask warn", "SR-005 graph block", "SR-006 goal warn", "SR-007 goal critical"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestVerdict_004: what a verdict and a violation hold, by the document's names.
func TestVerdict_004(t *testing.T) {
	got := verdicts(t, filter(t, nil), goalOf("d", "0", "exfiltrate_data", ""), Caller{}, nil)
	b, err := json.Marshal(got[0])
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Subject    *string `json:"subject_id"`
		Allowed    *bool   `json:"allowed"`
		At         *string `json:"evaluated_at"`
		Violations []map[string]any
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if v.Subject == nil || *v.Subject != "g" || v.Allowed == nil || *v.Allowed || v.At == nil || len(v.Violations) != 2 {
		t.Fatalf("%s", b)
	}
	for _, o := range v.Violations {
		for _, name := range []string{"rule_id", "severity", "subject_id", "subject_type", "message", "timestamp"} {
			if s, _ := o[name].(string); s == "" {
				t.Errorf("a violation without %s: %v", name, o)
			}
		}
	}
	if (&Verdict{}).Passes(false) || (&Verdict{Violations: []Violation{{Severity: "unheard"}}}).Passes(true) {
		t.Error("a verdict that says nothing, or what nobody knows, passes")
	}
}

// TestFinding_4_4_1_priorities_are_typed: SR-002 fires on the real Goal, whatever form its priority
// has: there a number is compared with a word, and it never does.
func TestFinding_4_4_1_priorities_are_typed(t *testing.T) {
	for _, p := range []string{"0", "0.0", "0e5", `"critical"`, `"Critical"`} {
		if got := verdicts(t, filter(t, nil), goalOf("d", p, "x", ""), Caller{}, nil); spoke(got[0]) != "SR-002 block" {
			t.Errorf("%s: %q", p, spoke(got[0]))
		}
	}
}

// TestFinding_4_4_2_types_are_members: goal_type and allow_critical are members of a Goal: one
// without a type is refused and not judged as if it had none.
func TestFinding_4_4_2_types_are_members(t *testing.T) {
	if _, err := read(t, `{"goal":{"goal_id":"g","description":"d","priority":2}}`); err == nil {
		t.Error("a goal without goal_type is read")
	}
	if got := verdicts(t, filter(t, nil), goalOf("d", "2", "self_modify_runtime", ""), Caller{}, nil); got[0].Worst() != SeverityCritical {
		t.Errorf("%+v", got[0])
	}
}

// TestFinding_4_4_3_subtasks_and_graphs_are_read: a sub-task and a graph in the form that the document's own
// planner makes them are judged, in either spelling, and end nothing by surprise.
func TestFinding_4_4_3_subtasks_and_graphs_are_read(t *testing.T) {
	const phase10 = `{"graph":{"goal_id":"g","sub_tasks":[{"id":"a","goal_id":"g","name":"n","capability_required":"exec:arbitrary","payload":{},"depends_on":[],"priority":50,"timeout_ms":30000}],"created_at_ms":1,"strategy_used":"linear"}}`
	got := verdicts(t, filter(t, nil), phase10, Caller{}, nil)
	if len(got) != 2 || !got[0].Allowed || got[1].Allowed || spoke(got[1]) != "SR-003 block, SR-004 warn" {
		t.Errorf("%+v", got)
	}
}

// TestFinding_4_4_4_rules_that_fail_refuse: a rule that fails refuses; one that says that it passes then
// is a violation that says so, and is not lost.
func TestFinding_4_4_4_rules_that_fail_refuse(t *testing.T) {
	for _, c := range []struct {
		onError string
		allowed bool
	}{{"deny", false}, {"pass", true}} {
		set, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte("rules:\n  - {id: fails, on: goal, when: 1 / int(goal.created_ms) == 0, severity: critical, on_error: " + c.onError + ", message: m}\n")}})
		if err != nil {
			t.Fatal(err)
		}
		got := verdicts(t, filter(t, nil), aGoal(""), Caller{}, set)
		if got[0].Allowed != c.allowed || len(got[0].Violations) != 1 || got[0].Violations[0].Passed != c.allowed {
			t.Errorf("%s: %+v", c.onError, got[0])
		}
	}
}

// TestFinding_4_4_6_capabilities_are_parsed: a capability is what it says, not how it is written.
func TestFinding_4_4_6_capabilities_are_parsed(t *testing.T) {
	for caps, want := range map[string]bool{
		"Network:External": false, "network :external": false, "net:external": false, "NETWORK:EXTERNAL": false,
		"federation:network:external": false, "local:exec:arbitrary": false,
		"local:network:external2": true, "federation:peer": true, "local:disk": true,
	} {
		if got := verdicts(t, filter(t, nil), aTask(`["`+caps+`"]`), Caller{}, nil); got[0].Allowed != want {
			t.Errorf("%s: allowed %v, %s", caps, got[0].Allowed, spoke(got[0]))
		}
	}
}

// TestFinding_4_4_7_the_bound_is_within: the bound is of characters, and itself within.
func TestFinding_4_4_7_the_bound_is_within(t *testing.T) {
	for n, want := range map[int]bool{2047: true, 2048: true, 2049: false} {
		for _, letter := range []string{"a", "ä", "語", "😀"} {
			if got := verdicts(t, filter(t, nil), goalOf(strings.Repeat(letter, n), "2", "x", ""), Caller{}, nil); got[0].Allowed != want {
				t.Errorf("%d of %s: %v", n, letter, got[0].Allowed)
			}
		}
	}
}

// TestTook: how long a subject took is measured by the clock that is given.
func TestTook(t *testing.T) {
	now := noon
	got := filter(t, nil).Check(context.Background(), mustRead(t, aGoal("")), Caller{}, nil, func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	})
	if got[0].Took != time.Millisecond {
		t.Error(got[0].Took)
	}
}
