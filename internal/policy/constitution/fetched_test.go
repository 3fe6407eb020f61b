package constitution

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/outputcheck"
)

func declaredFacts() Setting {
	return Setting{Facts: []Fact{{Name: "peers", Where: "holdfast.yaml:7"}, {Name: "busy", Where: "holdfast.yaml:8"},
		{Name: "limits", Where: "holdfast.yaml:9", Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"max":{"type":"number"},"mode":{"enum":["open","shut"]}}}`)}}}
}

// TestFacts_named: which facts are read is known when a rule is loaded, and what
// nobody declares is an error with its line.
func TestFacts_named(t *testing.T) {
	for _, c := range []struct{ when, want string }{
		{`args.to in facts.peers`, ""},
		{`!(args.to in facts["peers"]) && facts.busy == true`, ""},
		{`facts.peers.exists(p, p == args.to)`, ""},
		{`has(facts.limits.max) && args.n > facts.limits.max`, ""},
		{`args.to in facts.peer`, `did you mean "peers"?`},
		{`args.to in facts.zzz`, "declare it under rules: facts:"},
		{`args.l.exists(x, x in facts.nobody.list)`, `there is no fact "nobody"`},
		{`facts[args.to] == 1`, "which fact is read must be written out"},
		{`facts["pe" + "ers"].size() > 1`, "which fact is read must be written out"},
		{`facts == args`, "all facts together cannot be read"},
		{`"peers" in facts`, "all facts together cannot be read"},
		{`facts.exists(k, k == "a")`, "all facts together cannot be read"},
		{`[facts].size() == 1`, "all facts together cannot be read"},
		{`has(facts.peers)`, "has() of a fact is always true"},
		{`args.l.exists(facts, facts.peers == 1)`, "a macro's variable cannot be called facts"},
		{`args.l.exists(x, .facts.nobody == x)`, `there is no fact "nobody"`},
		{`past("mcp/*", "1h").where(args.to in facts.peers).happened()`, "facts are not known here"},
		{`past("mcp/*", "1h").same(facts.busy).happened()`, "facts are not known here"},
		{`facts.limits.mxa > 1`, `did you mean "max"?`},
		{`facts.limits.mode == "opne"`, `did you mean "open"?`},
		{`facts.limits.max == "1"`, "a number is compared with a text"},
	} {
		_, err := declaredFacts().Load(oneRule("request", "mcp/bank/pay", c.when))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.when, err)
		case c.want != "" && (err == nil || !strings.Contains(fmt.Sprintf("%v %s", err, hints(err)), c.want)):
			t.Errorf("%s: %v, want %q", c.when, err, c.want)
		case c.want != "" && !strings.Contains(err.Error(), "rules.yaml:5:"):
			t.Errorf("%s: no line: %v", c.when, err)
		}
	}
	if _, err := CompileScore("facts.busy ? 1.0 : 0.0", "x:1"); err == nil || !strings.Contains(err.Error(), "facts are not known here") {
		t.Errorf("a score: %v", err)
	}
}

// TestFacts_needed: only the facts of the rules that judge a boundary, on what is
// asked, are needed; one that no rule names is told of by Check.
func TestFacts_needed(t *testing.T) {
	rules := []Source{{Name: "rules.yaml", Text: []byte(`rules:
  - {id: a, on: request, boundary: mcp/bank/*, when: 'args.to in facts.peers', message: m}
  - {id: b, on: output, boundary: mcp/bank/*, when: facts.busy == true, message: m}
  - {id: c, on: goal, when: 'facts.busy == true || facts.peers == []', message: m}
  - {id: d, on: request, boundary: mcp/mail/send, when: args.n > 1, message: m}
`)}}
	set, err := declaredFacts().Load(rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		boundary string
		on       []On
		want     []string
	}{
		{"mcp/bank/pay", []On{OnRequest}, []string{"peers"}},
		{"mcp/bank/pay", []On{OnOutput}, []string{"busy"}},
		{"mcp/mail/send", []On{OnRequest, OnOutput}, nil},
		{"goal/admit", []On{OnRequest, OnGoal, OnSubtask}, []string{"busy", "peers"}},
	} {
		if got := set.Facts(c.boundary, c.on...); !slices.Equal(got, c.want) {
			t.Errorf("%s %v: %v, want %v", c.boundary, c.on, got, c.want)
		}
	}
	if p, _ := set.Predicate("b"); !slices.Equal(p.Facts, []string{"busy"}) {
		t.Errorf("as a predicate: %v", p.Facts)
	}
	report, err := declaredFacts().Check(rules)
	if err != nil || !slices.Equal(report.Warnings, []string{"holdfast.yaml:9: no rule names the fact limits"}) || !slices.Equal(report.Rules[0].Facts, []string{"peers"}) {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestFacts_that_are_not_there: a rule answers by its on_error though its condition
// would not come to the fact; nothing is read as absent.
func TestFacts_that_are_not_there(t *testing.T) {
	set, err := declaredFacts().Load([]Source{{Name: "rules.yaml", Text: []byte(`rules:
  - {id: lazy, on: request, when: 'false && args.to in facts.peers', message: m}
  - {id: free, on: request, when: args.n > 1, message: m}
  - {id: waved, on: goal, on_error: pass, when: '"a" in facts.peers', message: m}
  - {id: after, on: output, when: facts.busy == true, message: m}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	f := Facts{Boundary: "x", Payload: map[string]any{"n": json.Number("1"), "to": "a"}}
	for name, fetched := range map[string]map[string]Fetched{
		"nothing": nil, "another": {"busy": {Value: true}}, "an error": {"peers": {Err: errors.New("the program failed")}},
	} {
		f.Fetched = fetched
		got := set.Judge(t.Context(), OnRequest, f)
		if len(got) != 1 || got[0].Rule != "lazy" || got[0].Verdict != holdfast.Deny || !errors.Is(got[0].Err,
			failure.ErrFact) || !errors.Is(got[0].Err, failure.ErrEval) || !strings.Contains(got[0].Message,
			"peers") {
			t.Errorf("%s: %+v", name, got)
		}
		if got := set.Judge(t.Context(), OnGoal, f); len(got) != 1 || !got[0].Passed {
			t.Errorf("%s: on_error pass: %+v", name, got)
		}
	}
	f.Fetched = map[string]Fetched{"peers": {Value: []any{"a"}}, "busy": {Value: "true"}}
	if got := set.Judge(t.Context(), OnRequest, f); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := set.Judge(t.Context(), OnGoal, f); len(got) != 1 || got[0].Err != nil {
		t.Errorf("%+v", got)
	}
	// A text is no truth, and a fact is compared as strictly as an argument.
	if got := set.Judge(t.Context(), OnOutput, f); len(got) != 1 || got[0].Err == nil {
		t.Errorf("%+v", got)
	}
	p, _ := set.Predicate("after")
	f.Fetched["busy"] = Fetched{Value: true}
	if ok, _, err := p.Check(t.Context(), f, outputcheck.Context{}); ok || err != nil {
		t.Errorf("as a predicate: %v %v", ok, err)
	}
	f.Fetched = nil
	if ok, _, err := p.Check(t.Context(), f, outputcheck.Context{}); ok || !errors.Is(err, failure.ErrFact) {
		t.Errorf("as a predicate: %v %v", ok, err)
	}
}
