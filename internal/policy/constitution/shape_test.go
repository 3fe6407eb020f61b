package constitution

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

const paySchema = `{"type":"object","required":["to","amount"],"properties":{
	"to":{"type":"string"},"amount":{"type":"number"},"urgent":{"type":"boolean"},
	"kind":{"type":"string","enum":["open","closed"]},
	"lines":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"count":{"type":"integer"}}}},
	"meta":{"type":"object","additionalProperties":true,"properties":{"a":{"type":"string"}}},
	"any":{},"either":{"anyOf":[{"type":"string"},{"type":"number"}]}}}`

func oneRule(on, boundary, when string) []Source {
	b, _ := json.Marshal(when)
	return []Source{{Name: "rules.yaml", Text: []byte(fmt.Sprintf("rules:\n  - id: r\n    on: %s\n    boundary: %s\n    when: %s\n    message: no\n", on, boundary, b))}}
}

// TestTyped_arguments: a rule that could never speak is refused when it is
// loaded, where the boundary's schema tells (004, "a rule silently never matches").
func TestTyped_arguments(t *testing.T) {
	pay := Boundary{Name: "mcp/bank/pay", Schema: json.RawMessage(paySchema)}
	for _, c := range []struct{ when, want string }{
		{`args.amount > 100.0`, ""},
		{`args.amount > 100`, ""},
		{`args.amount + 1 > 100`, ""},
		{`args.amout > 100`, `did you mean "amount"?`},
		{`args["amout"] > 100`, `did you mean "amount"?`},
		{`has(args.urgnt)`, `did you mean "urgent"?`},
		{`has(args.urgent) && args.urgent`, ""},
		{`args.amount == "100"`, "a number is compared with a text"},
		{`"100" != args.amount`, "a text is compared with a number"},
		{`args.urgent == "true"`, "true or false is compared with a text"},
		{`args.to == 3`, "a text is compared with a number"},
		{`args.to in ["a", "b"]`, ""},
		{`args.amount in ["1"]`, "a number is looked for where there is a text"},
		{`args.kind == "opne"`, `did you mean "open"?`},
		{`args.kind in ["open", "shut"]`, `it is never "shut"`},
		{`args.kind == "open"`, ""},
		{`args.lines.exists(l, l.cuont > 3)`, `did you mean "count"?`},
		{`args.lines.exists(l, l.count > 3)`, ""},
		{`args.lines.exists(l, l.count == "3")`, "a number is compared with a text"},
		{`args.lines[0].skew == "x"`, `there is no "skew"`},
		{`args.to.first == "x"`, `"first" is asked of what is a text`},
		{`args.meta.b == 1`, ""},
		{`args.any.b == 1`, ""},
		{`args.either == 1`, ""},
		{`args.lines.map(l, l.sku).exists(s, s == "x")`, ""},
	} {
		_, err := Load(oneRule("request", "mcp/bank/pay", c.when), pay)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.when, err)
		case c.want != "" && (err == nil || !strings.Contains(fmt.Sprintf("%v %s", err, hints(err)), c.want)):
			t.Errorf("%s: %v, want %q", c.when, err, c.want)
		case c.want != "" && !strings.Contains(err.Error(), "rules.yaml:5:"):
			t.Errorf("%s: no line: %v", c.when, err)
		}
	}
}

func hints(err error) string {
	var out []string
	for _, e := range letters(err) {
		out = append(out, e.Hint)
	}
	return strings.Join(out, " ")
}

// TestTyped_whichBoundaries: a rule is held against the boundaries it is for,
// and against none where there may be one that nobody knows.
func TestTyped_whichBoundaries(t *testing.T) {
	pay := Boundary{Name: "mcp/bank/pay", Schema: json.RawMessage(paySchema)}
	all := Boundary{Name: "mcp/bank/*", Schema: json.RawMessage(`{"type":"object","properties":{"note":{"type":"string"}}}`)}
	const when = `args.note == "x"`
	for _, c := range []struct {
		boundary string
		known    []Boundary
		fits     bool
	}{
		{"mcp/bank/pay", nil, true},
		{"mcp/bank/pay", []Boundary{pay}, false},
		{"mcp/bank/pay", []Boundary{all, pay}, false},
		{"mcp/bank/*", []Boundary{pay}, true}, // other tools may come
		{"mcp/bank/*", []Boundary{pay, all}, true},
		{"mcp/bank/other", []Boundary{pay, all}, true},
		{"mcp/*", []Boundary{pay, all}, true},
		{"mcp/bank/other", []Boundary{{Name: "mcp/bank/*", Schema: json.RawMessage(paySchema)}}, false},
		{"mcp/bank/*", []Boundary{{Name: "mcp/*", Schema: json.RawMessage(paySchema)}}, false},
	} {
		if _, err := Load(oneRule("request", `"`+c.boundary+`"`, when), c.known...); (err == nil) != c.fits {
			t.Errorf("%s against %v: %v", c.boundary, c.known, err)
		}
	}
}

// TestTyped_seenLater: of a tool that shows its schema after the rules were
// loaded it can be said which rules do not fit it.
func TestTyped_seenLater(t *testing.T) {
	set, err := Load(oneRule("request", "mcp/bank/pay", `has(args.amout) && args.amout > 3`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := set.Misfits(Boundary{Name: "mcp/bank/pay", Schema: json.RawMessage(paySchema)})
	if err != nil || len(got) == 0 || !strings.Contains(got[0], `rule r: there is no "amout" here; did you mean "amount"?`) {
		t.Errorf("%v %v", got, err)
	}
	if got, err := set.Misfits(Boundary{Name: "mcp/bank/other", Schema: json.RawMessage(paySchema)}); err != nil || got != nil {
		t.Errorf("another boundary: %v %v", got, err)
	}
	if _, err := (*Set)(nil).Misfits(Boundary{}); err == nil {
		t.Error("no set fits everything")
	}
}

// TestTyped_subjects: rules on goals see typed goals (findings 4.4, 1 to 3).
func TestTyped_subjects(t *testing.T) {
	for _, c := range []struct{ on, when, want string }{
		{"goal", `goal.priority < 2`, ""},
		{"goal", `goal.priority == "critical"`, "a number is compared with a text"},
		{"goal", `goal.priority_name == "critical"`, ""},
		{"goal", `goal.priority_name == "CRITICAL"`, `it is never "CRITICAL"`},
		{"goal", `goal.desciption.size() > 3`, `did you mean "description"?`},
		{"goal", `goal.payload == 3`, `there is no "payload"`},
		{"goal", `subtask.id == "x"`, `there is no "subtask"`},
		{"subtask", `subtask.required_caps.exists(c, c.startsWith("local:"))`, ""},
		{"subtask", `subtask.subtask_id == "x"`, `there is no "subtask_id"`},
		{"subtask", `subtask.payload.x == 3`, ""},
		{"graph", `graph.sub_tasks.size() > 3`, ""},
		{"graph", `graph.sub_tasks.exists(s, s.prioritty > 3)`, `did you mean "priority"?`},
		{"graph", `graph.edges.size() > 3`, `there is no "edges"`},
		{"request", `goal.priority < 2`, `there is no "goal"`},
	} {
		_, err := Load(oneRule(c.on, `"*"`, c.when))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(fmt.Sprintf("%v %s", err, hints(err)), c.want)) {
			t.Errorf("%s %s: %v %s, want %q", c.on, c.when, err, hints(err), c.want)
		}
	}
}

// letters are the errors that Load joined.
func letters(err error) []*holdfast.Error {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var out []*holdfast.Error
	for _, e := range many.Unwrap() {
		var l *holdfast.Error
		if errors.As(e, &l) {
			out = append(out, l)
		}
	}
	return out
}
