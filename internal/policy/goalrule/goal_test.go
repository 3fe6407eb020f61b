package goalrule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

func read(t *testing.T, text string) (*Submission, error) {
	t.Helper()
	doc, err := payload.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return Read(doc.Value())
}

func mustRead(t *testing.T, text string) *Submission {
	t.Helper()
	s, err := read(t, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func filter(t *testing.T, change func(*Config)) *Filter {
	t.Helper()
	c := Defaults()
	if change != nil {
		change(&c)
	}
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func verdicts(t *testing.T, f *Filter, text string, who Caller, rules Rules) []Verdict {
	t.Helper()
	who.Facts.Now = noon
	return f.Check(context.Background(), mustRead(t, text), who, rules, time.Now)
}

// spoke is the rules of a verdict with their severities.
func spoke(v Verdict) string {
	var out []string
	for _, o := range v.Violations {
		out = append(out, o.Rule+" "+string(o.Severity))
	}
	return strings.Join(out, ", ")
}

func aGoal(more string) string {
	return `{"goal":{"goal_id":"g","description":"tidy up","priority":"normal","goal_type":"maintenance"` + more + `}}`
}

func goalOf(description, priority, kind, more string) string {
	return fmt.Sprintf(`{"goal":{"goal_id":"g","description":%q,"priority":%s,"goal_type":%q%s}}`, description, priority, kind, more)
}

func aTask(caps string) string { return `{"sub_tasks":[{"id":"t","required_caps":` + caps + `}]}` }

func graphOf(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"t%d","required_caps":[]}`, i)
	}
	return `{"graph":{"goal_id":"g","sub_tasks":[` + b.String() + `]}}`
}

// TestRules is the document's table of the seven constitutional rules, each at
// its edge: findings.md 4.1, and 4.4 numbers 1, 2, 3, 6 and 7.
func TestRules(t *testing.T) {
	for _, c := range []struct{ name, text, spoke string }{
		{"nothing", aGoal(""), ""},

		{"SR-001 at 2048", goalOf(strings.Repeat("a", 2048), "2", "x", ""), ""},
		{"SR-001 at 2049", goalOf(strings.Repeat("a", 2049), "2", "x", ""), "SR-001 block"},
		{"SR-001 counts code points", goalOf(strings.Repeat("ä", 2048), "2", "x", ""), ""},

		{"SR-002 by number", goalOf("d", "0", "x", ""), "SR-002 block"},
		{"SR-002 by word", goalOf("d", `"critical"`, "x", ""), "SR-002 block"},
		{"SR-002 in upper case", goalOf("d", `"CRITICAL"`, "x", ""), "SR-002 block"},
		{"SR-002 written 0.0", goalOf("d", "0.0", "x", ""), "SR-002 block"},
		{"SR-002 high", goalOf("d", "1", "x", ""), ""},
		{"SR-002 by its own word", goalOf("d", "0", "x", `,"allow_critical":true`), "SR-002 block"},

		{"SR-003", aTask(`["network:external"]`), "SR-003 block, SR-004 warn"},
		{"SR-003 another case", aTask(`["Network:External"]`), "SR-003 block, SR-004 warn"},
		{"SR-003 room", aTask(`["network :external"]`), "SR-003 block, SR-004 warn"},
		{"SR-003 another name", aTask(`["net:external"]`), "SR-003 block, SR-004 warn"},
		{"SR-003 full width", aTask(`["ｎｅｔｗｏｒｋ：ｅｘｔｅｒｎａｌ"]`), "SR-003 block, SR-004 warn"},
		{"SR-003 nobody sees", aTask(`["net\u200bwork:external"]`), "SR-003 block, SR-004 warn"},
		{"SR-003 behind federation", aTask(`["federation:network:external"]`), "SR-003 block"},
		{"SR-003 going on", aTask(`["network:external:http"]`), "SR-003 block, SR-004 warn"},
		{"SR-003 look-alike letters", aTask(`["nеtwork:external"]`), "SR-003 block"},
		{"SR-003 no scheme", aTask(`["everything"]`), "SR-003 block"},
		{"SR-003 empty part", aTask(`["local::x"]`), "SR-003 block"},
		{"SR-003 other things", aTask(`["local:network:external2"]`), ""},
		{"SR-003 exec", aTask(`["exec:arbitrary"]`), "SR-003 block, SR-004 warn"},
		{"SR-003 as capability_required", `{"sub_tasks":[{"id":"t","capability_required":"exec:arbitrary"}]}`, "SR-003 block, SR-004 warn"},

		{"SR-004", aTask(`["cloud:storage"]`), "SR-004 warn"},
		{"SR-004 local", aTask(`["local:disk","federation:peer"]`), ""},

		{"SR-005 at 128", graphOf(128), ""},
		{"SR-005 at 129", graphOf(129), "SR-005 block"},

		{"SR-006", goalOf("see https://x", "2", "x", ""), "SR-006 warn"},
		{"SR-006 in upper case", goalOf("see HTTP://x", "2", "x", ""), "SR-006 warn"},
		{"SR-006 broken by what nobody sees", goalOf("see ht\u200btps://x", "2", "x", ""), "SR-006 warn"},
		{"SR-006 no address", goalOf("about https and such", "2", "x", ""), ""},

		{"SR-007", goalOf("d", "2", "exfiltrate_data", ""), "SR-007 critical"},
		{"SR-007 written otherwise", goalOf("d", "2", " Exfiltrate-Data", ""), "SR-007 critical"},
		{"SR-007 self", goalOf("d", "2", "self_modify_runtime", ""), "SR-007 critical"},
		{"SR-007 filter", goalOf("d", "2", "disable safety filter", ""), "SR-007 critical"},

		{"several at once", goalOf("see https://x"+strings.Repeat("a", 2048), "2", "x", ""), "SR-001 block, SR-006 warn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := verdicts(t, filter(t, nil), c.text, Caller{}, nil)
			if spoke(got[0]) != c.spoke {
				t.Errorf("%s, want %s", spoke(got[0]), c.spoke)
			}
			refused := strings.Contains(c.spoke, "block") || strings.Contains(c.spoke, "critical")
			if got[0].Allowed == refused {
				t.Errorf("allowed is %v with %s", got[0].Allowed, c.spoke)
			}
			for _, o := range got[0].Violations {
				if !o.At.Equal(noon) || o.Subject != got[0].Subject || o.SubjectType != got[0].SubjectType || o.Message == "" {
					t.Errorf("%+v", o)
				}
			}
		})
	}
}

// TestAllowCritical: the member counts only beside the permission, which is the
// token's.
func TestAllowCritical(t *testing.T) {
	yes := goalOf("d", "0", "x", `,"allow_critical":true`)
	if v := verdicts(t, filter(t, nil), yes, Caller{MayBeCritical: true}, nil); !v[0].Allowed {
		t.Error(spoke(v[0]))
	}
	if v := verdicts(t, filter(t, nil), goalOf("d", "0", "x", ""), Caller{MayBeCritical: true}, nil); v[0].Allowed {
		t.Error("critical without allow_critical")
	}
	if v := verdicts(t, filter(t, func(c *Config) { c.AutoEscalate = Low }), goalOf("d", `"normal"`, "x", ""), Caller{}, nil); v[0].Allowed {
		t.Error("normal above low")
	}
}

// TestGraph: every sub-task of a graph is judged, and so is the graph.
func TestGraph(t *testing.T) {
	got := verdicts(t, filter(t, nil), `{"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":["local:x"]},{"id":"b","required_caps":["exec:arbitrary"],"depends_on":["a"]}]}}`, Caller{}, nil)
	if len(got) != 3 || !got[0].Allowed || !got[1].Allowed || got[2].Allowed || got[2].Subject != "b" || got[2].SubjectType != SubjectSubTask {
		t.Errorf("%+v", got)
	}
}

// TestRead: what cannot be read is refused by name; nothing is judged as absent
// because it is misspelt.
func TestRead(t *testing.T) {
	for _, c := range []struct{ text, kind, why string }{
		{`{}`, "ValueError", "the submission is empty"},
		{`[]`, "TypeError", "the submission is not an object"},
		{`{"goals":[]}`, "ValueError", `unknown member "goals"`},
		{`{"goal":{}}`, "ValueError", `goal has no "goal_id"`},
		{`{"goal":{"goal_id":"g","description":"d","priority":2}}`, "ValueError", `goal has no "goal_type"`},
		{aGoal(`,"Priority":0`), "ValueError", `unknown member "Priority"`},
		{goalOf("d", "5", "x", ""), "ValueError", "no priority"},
		{goalOf("d", "-1", "x", ""), "ValueError", "no priority"},
		{goalOf("d", "0.5", "x", ""), "ValueError", "no priority"},
		{goalOf("d", `"urgent"`, "x", ""), "ValueError", "no priority"},
		{goalOf("d", `[0]`, "x", ""), "TypeError", "neither a word nor a number"},
		{goalOf("d", "2", "x", `,"allow_critical":"true"`), "TypeError", "neither true nor false"},
		{strings.Replace(aGoal(""), "maintenance", `x\u0001`, 1), "ValueError", "control character"},
		{`{"sub_tasks":[{"id":"t"}]}`, "ValueError", "which capabilities"},
		{`{"sub_tasks":[{"id":"t","required_caps":"local:x"}]}`, "TypeError", "not a list"},
		{`{"sub_tasks":[{"id":"t","required_caps":[1]}]}`, "TypeError", "not a text"},
		{`{"sub_tasks":[{"id":"t","required_caps":[]},{"id":"t","required_caps":[]}]}`, "ValueError", "there twice"},
		{`{"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":[],"depends_on":["b"]}]}}`, "ValueError", "which is not there"},
		{`{"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":[],"depends_on":["b"]},{"id":"b","required_caps":[],"depends_on":["a"]}]}}`, "ValueError", "circle"},
		{`{"goal":{"goal_id":"g","description":"d","priority":2,"goal_type":"x"},"graph":{"goal_id":"h","sub_tasks":[]}}`, "ValueError", "the graph is of goal"},
		{`{"sub_tasks":[{"id":"t","required_caps":["` + strings.Repeat("a", 300) + `"]}]}`, "ValueError", "more than 256"},
		{`{"graph":{"goal_id":"g","sub_tasks":null}}`, "ValueError", `no "sub_tasks"`},
	} {
		_, err := read(t, c.text)
		if err == nil || string(holdfast.KindOf(err)) != c.kind || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%.80s: %v, want %s %s", c.text, err, c.kind, c.why)
		}
	}
}

// TestConfig: a setting that makes a rule say nothing is refused.
func TestConfig(t *testing.T) {
	for _, c := range []struct {
		why    string
		change func(*Config)
	}{
		{"max_goal_description_len", func(c *Config) { c.MaxDescription = -1 }},
		{"max_goal_description_len", func(c *Config) { c.MaxDescription = 0 }},
		{"max_subtasks_per_graph", func(c *Config) { c.MaxSubTasks = 0 }},
		{"max_priority_auto_escalate", func(c *Config) { c.AutoEscalate = 9 }},
		{"blocked_capability_patterns", func(c *Config) { c.BlockedCapabilities = []string{"network"} }},
		{"allowed_capability_prefixes", func(c *Config) { c.AllowedPrefixes = []string{"a:b:"} }},
		{"denied_goal_types", func(c *Config) { c.DeniedTypes = []string{" - "} }},
	} {
		conf := Defaults()
		c.change(&conf)
		if _, err := New(conf); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%v, want %s", err, c.why)
		}
	}
	if v := (&Filter{}).Check(context.Background(), mustRead(t, aGoal("")), Caller{}, nil, time.Now); v[0].Allowed {
		t.Error("the zero filter allows")
	}
}

// TestWritten: rules that somebody wrote are for all three subjects (findings
// 4.1), see typed subjects, and a rule that fails refuses unless it says that it
// passes then (4.4, number 4), which is recorded.
func TestWritten(t *testing.T) {
	set, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte(`rules:
  - {id: g, on: goal, when: goal.priority_name == "high" && goal.goal_type == "deploy", severity: block, message: no deploys in a hurry}
  - {id: s, on: subtask, when: 'subtask.required_caps.exists(c, c == "local:printer")', severity: warn, message: paper}
  - {id: p, on: graph, when: graph.sub_tasks.size() > 1, severity: critical, message: too many}
  - {id: fails, on: subtask, when: subtask.payload.missing == 1, severity: info, message: never}
  - {id: passes, on: graph, when: 1 / int(graph.created_at_ms) == 0, severity: critical, on_error: pass, message: never}
  - {id: watches, on: goal, when: "true", mode: observe, severity: critical, message: seen}
  - {id: asks, on: goal, when: 'goal.tags.exists(t, t == "ask")', severity: hold, message: a person must see it}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	got := verdicts(t, filter(t, nil), goalOf("d", `"HIGH"`, "Deploy", ""), Caller{}, set)
	if spoke(got[0]) != "g block, watches critical" || got[0].Allowed || got[0].Worst() != SeverityBlock || !got[0].Violations[1].Observed {
		t.Errorf("%+v", got)
	}
	got = verdicts(t, filter(t, nil), aTask(`["Local:Printer"]`), Caller{}, set)
	if spoke(got[0]) != "s warn, fails block" || got[0].Allowed {
		t.Errorf("%+v", got)
	}
	got = verdicts(t, filter(t, nil), `{"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":[],"payload":{"missing":2}}]}}`, Caller{}, set)
	if spoke(got[0]) != "passes critical" || !got[0].Allowed || !got[0].Violations[0].Passed || !got[1].Allowed {
		t.Errorf("%+v", got)
	}
	got = verdicts(t, filter(t, nil), aGoal(`,"tags":["ask"]`), Caller{}, set)
	if got[0].Allowed || got[0].Worst() != "" || !got[0].Held() {
		t.Errorf("%+v", got)
	}
}

// TestSubjectSchema: what rules see is what the schema, by which they are
// checked, says: neither more nor less.
func TestSubjectSchema(t *testing.T) {
	s := mustRead(t, `{"goal":{"goal_id":"g","description":"d","priority":2,"goal_type":"x"},"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":[]}]}}`)
	for on, subject := range map[constitution.On]seen{constitution.OnGoal: s.Goal, constitution.OnSubtask: &s.Graph.SubTasks[0], constitution.OnGraph: s.Graph} {
		doc, err := payload.Parse(constitution.SubjectSchema(on))
		if err != nil {
			t.Fatal(err)
		}
		said := doc.Value().(map[string]any)["properties"].(map[string]any)
		is := subject.tree().(map[string]any)
		if a, b := keys(said), keys(is); !slices.Equal(a, b) {
			t.Errorf("%s: the schema has %v, the tree %v", on, a, b)
		}
	}
}

// TestARuleCanNameWhatItSees: a capability and a type, as rules see them, load in
// a rule that compares with them, which then speaks; as they were written before,
// they are refused with what they are there.
func TestARuleCanNameWhatItSees(t *testing.T) {
	for _, written := range []string{"net:external", "Federation : Local:x", "local:read", "EXEC:Any", "loc:net", "local:a.b/c-d_e"} {
		seen, err := ParseCapability(written)
		if err != nil {
			t.Fatal(err)
		}
		load := func(on, when string) (*constitution.Set, error) {
			return constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte("rules:\n- {id: sees, on: " + on + ", message: m, when: '" + when + "'}\n")}})
		}
		set, err := load("subtask", `"`+seen.String()+`" in subtask.required_caps`)
		if err != nil {
			t.Fatal(err)
		}
		got := verdicts(t, filter(t, nil), aTask(`["`+written+`"]`), Caller{}, set)
		if !strings.Contains(spoke(got[0]), "sees") {
			t.Errorf("%s: %+v", written, got[0])
		}
		if _, err := load("subtask", `"`+written+`" in subtask.required_caps`); (err == nil) != (written == seen.String()) {
			t.Errorf("%s: %v", written, err)
		}
	}
	for _, written := range []string{"Deploy It", "deploy", "self-modify", "a__b"} {
		set, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte("rules:\n- {id: sees, on: goal, message: m, when: 'goal.goal_type == \"" + plainType(written) + "\"'}\n")}})
		if err != nil {
			t.Fatal(err)
		}
		got := verdicts(t, filter(t, nil), goalOf("d", "2", written, ""), Caller{}, set)
		if !strings.Contains(spoke(got[0]), "sees") {
			t.Errorf("%s: %+v", written, got[0])
		}
	}
}

func keys(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{aGoal(""), aTask(`["a:b"]`), graphOf(3), `{"goal":{"priority":0}}`} {
		f.Add(s)
	}
	flt, err := New(Defaults())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := payload.Parse([]byte(text))
		if err != nil {
			return
		}
		s, err := Read(doc.Value())
		if err != nil {
			if holdfast.KindOf(err) == holdfast.KindInternal {
				t.Error(err)
			}
			return
		}
		for _, v := range flt.Check(context.Background(), s, Caller{}, nil, time.Now) {
			if v.Allowed == (v.Worst() != "") {
				t.Errorf("%+v", v)
			}
		}
	})
}

func BenchmarkGoal(b *testing.B) {
	doc, err := payload.Parse([]byte(goalOf(strings.Repeat("tidy the workshop up ", 50), "2", "maintenance", "")))
	if err != nil {
		b.Fatal(err)
	}
	flt, err := New(Defaults())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := Read(doc.Value())
		if err != nil {
			b.Fatal(err)
		}
		flt.Check(context.Background(), s, Caller{}, nil, time.Now)
	}
}
