package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestGoals_004_every_severity: the document's table of what each severity does.
func TestGoals_004_every_severity(t *testing.T) {
	for _, c := range []struct {
		severity         string
		admitted, paused bool
	}{{"info", true, false}, {"warn", true, false}, {"block", false, false}, {"critical", false, true}} {
		t.Run(c.severity, func(t *testing.T) {
			w, seen := goalsWorld(t, t.TempDir(), "rules:\n  - {id: own, on: goal, when: \"true\", severity: "+c.severity+", message: so}\n")
			_, err := w.submit("alice", aGoal("g", "maintenance", ""))
			if (err == nil) != c.admitted || w.goals().Paused != c.paused {
				t.Errorf("%v, paused %v", err, w.goals().Paused)
			}
			got := w.since(time.Time{}, 9)
			if len(got) != 1 || len(got[0].Violations) != 1 || got[0].Allowed != c.admitted || string(got[0].Violations[0].Severity) != c.severity {
				t.Errorf("recorded %+v", got)
			}
			if len(seen.goals) != 1 || seen.passed[0] != c.admitted {
				t.Error("counted otherwise")
			}
		})
	}
}

// TestGoals_004_several_violations: the worst leads, and all are recorded (004,
// SafetyVerdict: SR-006 and SR-001 at once).
func TestGoals_004_several_violations(t *testing.T) {
	w, _ := goalsWorld(t, t.TempDir(), "")
	_, err := w.submit("alice", strings.Replace(aGoal("g", "maintenance", ""), "tidy up", "https://x "+strings.Repeat("a", 2048), 1))
	wants(t, err, holdfast.KindRule)
	got := w.since(time.Time{}, 9)
	if len(got) != 1 || got[0].Count != 2 || got[0].Violations[0].Rule != "SR-001" || got[0].Violations[1].Rule != "SR-006" || got[0].Allowed {
		t.Errorf("%+v", got)
	}
}

// TestGoals_004_10000_subtasks: what judging a graph costs grows with it and no
// faster, and the record stays of bounded size.
func TestGoals_004_10000_subtasks(t *testing.T) {
	conf := goalrule.Defaults()
	conf.MaxSubTasks = goalrule.MaxSubTasks
	f, err := goalrule.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := goalsWorld(t, t.TempDir(), "", func(c *kernel.Config, _ *world) { c.Policy.Sections = map[string]any{goal.Name: f} })
	testgrowth.Linear(t, goalrule.MaxSubTasks, func(n int) func() {
		text := chain(n)
		return func() {
			out, err := w.submit("alice", text)
			if err != nil || out.Verdict != holdfast.Allow {
				t.Fatal(n, err)
			}
		}
	})
	w.leaves(holdfast.Local, func(l ledger.Stored) {
		if len(l.Record) > 128<<10 {
			t.Errorf("a record of %d bytes", len(l.Record))
		}
	})
	_, err = w.submit("alice", chain(goalrule.MaxSubTasks+1))
	if err == nil {
		t.Error("more than the most")
	}
}

// chain is a graph of n sub-tasks, each of which needs the one before it and a
// capability that is warned of.
func chain(n int) string {
	var b strings.Builder
	b.WriteString(`{"graph":{"goal_id":"g","sub_tasks":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"t%d","required_caps":["cloud:disk"]`, i)
		if i > 0 {
			fmt.Fprintf(&b, `,"depends_on":["t%d"]`, i-1)
		}
		b.WriteByte('}')
	}
	b.WriteString(`]}}`)
	return b.String()
}

// TestGoals_finding_4_4_8_every_critical_waits: of critical violations that were judged at once none
// is lost: each opens its own line to be acknowledged, of one pause, and is told
// once. What blocks never pauses, however often, and each is recorded.
func TestGoals_finding_4_4_8_every_critical_waits(t *testing.T) {
	race := &meanwhile{}
	w, seen := goalsWorld(t, t.TempDir(), "", func(c *kernel.Config, w *world) {
		race.Set = c.Policy.Rules.(*constitution.Set)
		c.Policy.Rules = race
	})
	for i := range 10 {
		_, err := w.submit("alice", strings.Replace(aGoal(fmt.Sprint("b", i), "maintenance", ""), `"normal"`, "0", 1))
		wants(t, err, holdfast.KindRule)
	}
	if w.goals().Paused || len(w.since(time.Time{}, 20)) != 10 {
		t.Fatal("what blocks pauses, or is not recorded")
	}
	race.do = func() { w.pause() }
	_, err := w.submit("eve", aGoal("slow", "disable_safety_filter", ""))
	wants(t, err, holdfast.KindRule)
	p := w.goals()
	if p.Waiting() != 2 || p.Violations[0].Agent != "mallory" || p.Violations[1].Agent != "eve" || !p.Since.Equal(p.Violations[0].At) {
		t.Fatalf("%+v", p)
	}
	told := 0
	for _, n := range w.notices {
		if n.Event == "goals_paused" {
			told++
		}
	}
	if told != 2 || len(w.events(holdfast.Local, "goals_paused")) != 2 || len(seen.goals) != 12 {
		t.Errorf("told %d times, %d verdicts", told, len(seen.goals))
	}
	if err := w.ack(p.Violations[0].ID); err != nil {
		t.Fatal(err)
	}
	wants(t, w.goOn(), holdfast.KindConflict)
}

// TestGoals_finding_4_4_9_warnings_and_overrides: a warning is recorded and counted as what it is,
// though its goal is admitted; and who lifts a pause shows the operator's key,
// for this state, once.
func TestGoals_finding_4_4_9_warnings_and_overrides(t *testing.T) {
	w, seen := goalsWorld(t, t.TempDir(), "")
	if _, err := w.submit("alice", strings.Replace(aGoal("g", "maintenance", ""), "tidy up", "http://x", 1)); err != nil {
		t.Fatal(err)
	}
	if v := seen.goals[0]; !v.Allowed || len(v.Violations) != 1 || v.Violations[0].Severity != goalrule.SeverityWarn {
		t.Errorf("%+v", v)
	}
	id := w.pause().Violations[0].ID
	good := w.sign(operator.Statement{Act: operator.AckGoal, Subject: id, Reason: "seen"})
	forged := good
	forged.Signature = make([]byte, len(good.Signature))
	if _, err := goal.FromKernel(w.k).AckGoal("", forged); err == nil {
		t.Error("a forged statement acknowledges")
	}
	if err := goal.FromKernel(w.k).ResumeGoals("", operator.Signed{}); err == nil {
		t.Error("nobody resumes")
	}
	if w.waiting() != 1 {
		t.Fatal("acknowledged by nobody")
	}
	if _, err := goal.FromKernel(w.k).AckGoal("", good); err != nil {
		t.Fatal(err)
	}
	if err := w.goOn(); err != nil {
		t.Fatal(err)
	}
	w.pause()
	if _, err := goal.FromKernel(w.k).AckGoal("", good); err == nil || w.waiting() != 1 {
		t.Error("one statement acknowledges twice")
	}
}
