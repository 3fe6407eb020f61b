package constitution

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
)

const head = "rules:\n- id: a\n  on: request\n  message: m\n  when: "

func loadErrors(t *testing.T, text string) []*holdfast.Error {
	t.Helper()
	s, err := Load([]Source{{Name: "r.yaml", Text: []byte(text)}})
	if err == nil {
		t.Fatalf("loaded: %q", text)
	}
	if s != nil {
		t.Fatal("an error came with a set")
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("not joined: %T", err)
	}
	var out []*holdfast.Error
	for _, e := range joined.Unwrap() {
		var h *holdfast.Error
		if errors.As(e, &h) {
			if h.Kind != holdfast.KindPredicateParse || h.Gate != holdfast.K8 {
				t.Errorf("kind %s, gate %s", h.Kind, h.Gate)
			}
			out = append(out, h)
		}
	}
	return out
}

// TestLoadRefuses is K8's failure predicate 2, a malformed predicate: every
// row names where it is wrong and what to do.
func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, where, why, hint string }{
		"K8_FP2_empty":                        {"", "r.yaml:1:1", "empty", "rules: []"},
		"K8_FP2_only_a_comment":               {"# nothing\n", "r.yaml:1:1", "empty", ""},
		"K8_FP2_no_rules":                     {"{}\n", "r.yaml:1:1", "no `rules:`", "rules: []"},
		"K8_FP2_not_yaml":                     {"rules: [\n", "r.yaml:2:1", "not YAML", ""},
		"K8_FP2_truncated":                    {"rules:\n- id: \"a\n", "r.yaml:", "not YAML", ""},
		"K8_FP2_tab":                          {"rules:\n\t- id: a\n", "r.yaml:2:1", "not YAML", ""},
		"K8_FP2_two_documents":                {"rules: []\n---\nrules: []\n", "r.yaml:1:1", "more than one document", ""},
		"K8_FP2_list_root":                    {"- a\n", "r.yaml:1:1", "not a mapping", ""},
		"K8_FP2_rules_no_list":                {"rules: 5\n", "r.yaml:1:8", "not a list", ""},
		"K8_FP2_rule_no_mapping":              {"rules:\n- 7\n", "r.yaml:2:3", "not a mapping", ""},
		"K8_FP2_null_rule":                    {"rules:\n-\n", "r.yaml:2:", "not a mapping", ""},
		"K8_FP2_alias":                        {"rules: &r []\nx: *r\n", "r.yaml:1:8", "anchor", "write the value out"},
		"K8_FP2_tag":                          {"rules: !!binary aGk=\n", "r.yaml:1:8", "a tag", ""},
		"K8_FP2_invalid_utf8":                 {"rules:\n- id: \xff\xfe\n", "r.yaml:2:7", "not UTF-8", ""},
		"K8_FP2_NUL":                          {"rules:\n- id: a\x00b\n", "r.yaml:2:8", "NUL", ""},
		"K8_FP2_unknown_top_key":              {"rulez: []\n", "r.yaml:1:1", `unknown key "rulez"`, `did you mean "rules"`},
		"K8_FP2_unknown_key":                  {head + "'true'\n  sevrity: warn\n", "r.yaml:6:3", `unknown key "sevrity"`, `did you mean "severity"`},
		"K8_FP2_twice":                        {head + "'true'\n  when: 'false'\n", "r.yaml:6:3", "twice", ""},
		"K8_FP2_merge_key":                    {head + "'true'\n  <<: {id: b}\n", "r.yaml:6:3", "unknown key", ""},
		"K8_FP2_bad_on":                       {strings.Replace(head, "request", "requets", 1) + "'true'\n", "r.yaml:3:7", `"on" is "requets"`, `did you mean "request"`},
		"K8_FP2_bad_severity":                 {head + "'true'\n  severity: fatal\n", "r.yaml:6:13", `"severity" is "fatal"`, "info, warn, block"},
		"K8_FP2_bad_mode":                     {head + "'true'\n  mode: Observe\n", "r.yaml:6:9", `"mode" is "Observe"`, `did you mean "observe"`},
		"K8_FP2_pass_on_request":              {head + "'true'\n  on_error: pass\n", "r.yaml:6:13", "cannot pass on error", "D3"},
		"K8_FP2_bad_id":                       {strings.Replace(head, "id: a", "id: a b", 1) + "'true'\n", "r.yaml:2:7", "is not an id", ""},
		"K8_FP2_id_number":                    {strings.Replace(head, "id: a", "id: 5", 1) + "'true'\n", "r.yaml:2:7", "not text", "quotes"},
		"K8_FP2_builtin_id":                   {strings.Replace(head, "id: a", "id: goal_coherence_check_v1", 1) + "'true'\n", "r.yaml:2:7", "built-in", ""},
		"K8_FP2_glob_in_the_middle":           {head + "'true'\n  boundary: a/*/b\n", "r.yaml:6:13", "not at its end", ""},
		"K8_FP2_boundary_ends_in_a_slash":     {head + "'true'\n  boundary: mcp/bank/pay/\n", "r.yaml:6:13", "is no boundary", "nothing before the first"},
		"K8_FP2_boundary_begins_with_a_slash": {head + "'true'\n  boundary: /mcp/bank/pay\n", "r.yaml:6:13", "is no boundary", ""},
		"K8_FP2_boundary_with_a_space":        {head + "'true'\n  boundary: mcp/bank /pay\n", "r.yaml:6:13", "is no boundary", ""},
		"K8_FP2_boundary_of_dots":             {head + "'true'\n  boundary: mcp/../pay\n", "r.yaml:6:13", "is no boundary", ""},
		"K8_FP2_boundary_with_a_backslash":    {head + "'true'\n  boundary: mcp\\pay\n", "r.yaml:6:13", "is no boundary", ""},
		"K8_FP2_risk_by_its_letters":          {head + "risk > 'MEDIUM'\n", "r.yaml:5:", "compared as texts", "risk in ["},
		"K8_FP2_level_by_its_letters":         {head + "level >= 'medium'\n", "r.yaml:5:", "compared as texts", "level_rank"},
		"K8_FP2_template":                     {strings.Replace(head, "message: m", "message: 'a {{x}}'", 1) + "'true'\n", "r.yaml:4:12", "{{", "literal"},
		"K8_FP2_invisible":                    {strings.Replace(head, "message: m", "message: \"a\\u202eb\"", 1) + "'true'\n", "r.yaml:4:12", "cannot be seen", ""},
		"K8_FP2_no_when":                      {"rules:\n- id: a\n  on: request\n  message: m\n", "r.yaml:2:3", `no "when"`, ""},
		"K8_FP2_when_empty":                   {head + "''\n", "r.yaml:5:9", "empty", ""},
		"K8_FP2_when_null":                    {head + "null\n", "r.yaml:5:9", "not text", ""},
		"K8_FP2_when_list":                    {head + "[a]\n", "r.yaml:5:9", "not text", ""},
		"K8_FP2_syntax":                       {head + "args.a &&\n", "r.yaml:5:", "Syntax error", ""},
		"K8_FP2_not_bool":                     {head + "args.a + 1\n", "", "", ""},
		"K8_FP2_int":                          {head + "payload_size\n", "r.yaml:5:9", "yields int", "compare"},
		"K8_FP2_typo":                         {head + "agrs.a == 1\n", "r.yaml:5:9", `no "agrs"`, `did you mean "args"`},
		"K8_FP2_payload_name":                 {head + "filename == 'x'\n", "r.yaml:5:9", `no "filename"`, "args.filename"},
		"K8_FP2_output_early":                 {head + "output.x == 1\n", "r.yaml:5:9", "before the act", "on: output"},
		"K8_FP2_exit_code_early":              {head + "exit_code == 1\n", "r.yaml:5:9", "before the act", "on: output"},
		"K8_FP2_function_typo":                {head + "args.a.startWith('x')\n", "r.yaml:5:", `no "startWith"`, `did you mean "startsWith"`},
		"K8_FP2_bad_regex":                    {head + "agent.matches('(')\n", "r.yaml:5:", "matches", ""},
		"K8_FP2_payload_regex":                {head + "agent.matches(args.p)\n", "r.yaml:5:", "pattern", ""},
		"K8_FP2_huge_regex":                   {head + "agent.matches('((a{100}){10}){2}')\n", "r.yaml:5:", "invalid matches argument", ""},
		"K8_FP2_format":                       {head + "agent == '%s'.format([args.a])\n", "r.yaml:5:", "format is not available", ""},
		"K8_FP2_zone":                         {head + "now.getHours('Europe/Berlin') > 3\n", "r.yaml:5:", "time zone", ""},
		"K8_FP2_types":                        {head + "payload_size > 'x'\n", "r.yaml:5:", "no matching overload", ""},
		"K8_FP2_cost":                         {head + "args.a.all(x, args.b.all(y, args.c.all(z, x == y && y == z)))\n", "r.yaml:5:9", "units", "inside another"},
		"K8_FP2_long":                         {head + "'" + strings.Repeat("true && ", 600) + "true'\n", "r.yaml:5:", "bytes", "two rules"},
		"K8_FP2_deep":                         {head + "'" + strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500) + "'\n", "r.yaml:5:", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.where == "" {
				return
			}
			errs := loadErrors(t, c.text)
			e := errs[0]
			if !strings.HasPrefix(e.Why, c.where) || !strings.Contains(e.Why, c.why) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("got %q, hint %q", e.Why, e.Hint)
			}
		})
	}
}

func TestLoadReportsEverything(t *testing.T) {
	one := Source{Name: "b.yaml", Text: []byte("rules:\n- id: x\n  on: request\n  message: m\n  when: nope\n- id: x\n  onn: output\n  message: m\n  when: 'true'\n")}
	two := Source{Name: "a.yaml", Text: []byte("rules:\n- id: y\n  on: goal\n  message: m\n  when: |\n    true &&\n      (args.x ==\n        nowhere)\n")}
	_, err := Load([]Source{one, two})
	if err == nil {
		t.Fatal("loaded")
	}
	text := err.Error()
	last := -1
	for _, want := range []string{"b.yaml:5:9", "b.yaml:6:3", "b.yaml:7:3", "a.yaml:8:9"} {
		i := strings.Index(text, want)
		if i < last {
			t.Errorf("%s is missing or out of order in\n%s", want, text)
		}
		last = i
	}
}

// TestPlace sees that an error within an expression is shown where the file
// has it, whatever the scalar's style.
func TestPlace(t *testing.T) {
	for name, c := range map[string]struct{ when, where string }{
		"plain":                {"true && nowhere\n", "r.yaml:5:17"},
		"plain over two lines": {"true &&\n    nowhere\n", "r.yaml:6:5"},
		"single quotes":        {"'''a'' == agent && nowhere'\n", "r.yaml:5:28"},
		"double quotes":        {"\"agent == \\\"x\\\" && nowhere\"\n", "r.yaml:5:28"},
		"literal":              {"|\n    true &&\n    (nowhere)\n", "r.yaml:7:6"},
		"literal, blank first": {"|\n\n    true &&\n    nowhere\n", "r.yaml:8:5"},
		"folded":               {">-\n    true &&\n    true\n    && nowhere\n", "r.yaml:8:8"},
		"not ASCII":            {"agent == 'äöü' && nowhere\n", "r.yaml:5:27"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := loadErrors(t, head+c.when)
			if !strings.HasPrefix(errs[0].Why, c.where+": ") {
				t.Errorf("got %q, want %s", errs[0].Why, c.where)
			}
		})
	}
}

func TestLoadBounds(t *testing.T) {
	big := make([]byte, rulefile.MaxFile+1)
	for i := range big {
		big[i] = '#'
	}
	if e := loadErrors(t, string(big)); !strings.Contains(e[0].Why, "bytes") {
		t.Error(e[0])
	}
	var many strings.Builder
	many.WriteString("rules:\n")
	for i := range MaxRules + 1 {
		fmt.Fprintf(&many, "- {id: r%d, on: spawn, message: m, when: 'true'}\n", i)
	}
	if e := loadErrors(t, many.String()); len(e) != 1 || !strings.Contains(e[0].Why, "more than 1000 rules") {
		t.Error(e)
	}
	deep := "rules: " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	loadErrors(t, deep)
	var bomb strings.Builder
	bomb.WriteString("a: &a [x, x]\n")
	for c := 'b'; c < 'z'; c++ {
		fmt.Fprintf(&bomb, "%c: &%c [*%c, *%c]\n", c, c, c-1, c-1)
	}
	if e := loadErrors(t, bomb.String()); !strings.Contains(e[0].Why, "anchor") {
		t.Error(e[0])
	}
	var wrong strings.Builder
	wrong.WriteString("rules:\n")
	for i := range 500 {
		fmt.Fprintf(&wrong, "- {id: r%d, on: spawn, message: m, when: nowhere}\n", i)
	}
	if _, err := Load([]Source{{Name: "r", Text: []byte(wrong.String())}}); err == nil || len(strings.Split(err.Error(), "\n")) > maxErrors+1 {
		t.Error("errors are not bounded")
	}
}

func TestDuplicateAcrossFiles(t *testing.T) {
	rule := []byte(head + "'true'\n")
	_, err := Load([]Source{{"one.yaml", rule}, {"two.yaml", rule}})
	if err == nil || !strings.Contains(err.Error(), `two.yaml:2:7: the id "a" is taken`) {
		t.Fatal(err)
	}
	var h *holdfast.Error
	if !errors.As(err, &h) || !strings.Contains(h.Hint, "one.yaml:2") {
		t.Error(h)
	}
}

func TestEveryKindOfRuleParses(t *testing.T) {
	for _, on := range []On{OnRequest, OnOutput, OnGoal, OnSubtask, OnGraph, OnSpawn} {
		s := load(t, fmt.Sprintf("rules:\n- id: a\n  on: %s\n  message: m\n  when: 'true'\n", on))
		if got := s.Judge(t.Context(), on, Facts{}); len(got) != 1 || got[0].Verdict != holdfast.Deny {
			t.Errorf("%s: %+v", on, got)
		}
	}
}

func TestReport(t *testing.T) {
	text := `rules:
- id: a
  on: goal
  when: has(args.x) && args.x > 1
  message: too much
  on_error: pass
  version: 3
- id: b
  on: request
  boundary: mcp/files/*
  when: args.path.contains("..")
  message: goes up
  mode: observe
  severity: warn
`
	r, err := Setting{}.Check([]Source{{"r.yaml", []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rules) != 2 || len(r.Warnings) != 2 || len(r.Version) != 64 {
		t.Fatalf("%+v", r)
	}
	a, b := r.Rules[0], r.Rules[1]
	if a.ID != "a" || a.Where != "r.yaml:2" || a.Boundary != "*" || a.Severity != "block" || a.Mode != "enforce" || a.OnError != "pass" || a.Label != "3" || a.Cost == 0 {
		t.Errorf("%+v", a)
	}
	if b.Boundary != "mcp/files/*" || b.Mode != "observe" || b.Severity != "warn" || b.Where != "r.yaml:8" {
		t.Errorf("%+v", b)
	}
	if w := load(t, text).Weakened(); len(w) != 2 || !strings.Contains(w[0], "lets the action through") || !strings.Contains(w[1], "only observes") {
		t.Error(w)
	}
	if _, err := (Setting{}).Check([]Source{{"r.yaml", nil}}); err == nil {
		t.Error("an empty file was checked and found good")
	}
}

// K8_INV4: what a rule says is its version.
func TestVersion_K8_INV4_versions_are_immutable(t *testing.T) {
	base := "rules:\n- id: a\n  on: output\n  when: output.x == 1\n  message: m\n"
	version := func(text string) string {
		p, ok := load(t, text).Predicate("a")
		if !ok {
			t.Fatal("not found")
		}
		return p.Version
	}
	want := version(base)
	if version("# a comment\n"+strings.ReplaceAll(base, "message: m", "message: 'm'")) != want {
		t.Error("layout changes the version")
	}
	seen := map[string]bool{want: true}
	for _, changed := range []string{
		strings.Replace(base, "== 1", "== 2", 1),
		strings.Replace(base, "message: m", "message: n", 1),
		base + "  severity: warn\n", base + "  mode: observe\n", base + "  version: 2\n", base + "  hint: h\n", base + "  boundary: x\n",
	} {
		v := version(changed)
		if seen[v] {
			t.Errorf("another rule, the same version:\n%s", changed)
		}
		seen[v] = true
	}
	one, two := load(t, base), load(t, strings.Replace(base, "message: m", "message: n", 1))
	if one.Version() == two.Version() || one.Version() != load(t, base).Version() {
		t.Error("the set's version does not follow its rules")
	}
	if load(t, "rules: []\n").Version() == "" {
		t.Error("an empty set has no version")
	}
}

// TestLoadAtOnce: what all rules are compiled with may be used by several goroutines.
func TestLoadAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			rule := fmt.Sprintf("rules:\n- {id: a, on: subtask, message: m, when: 'args.n == %d || agent == \"x\"'}\n- {id: b, on: output, message: m, when: 'output_size > %d'}\n", i, i)
			s, err := Load([]Source{{Name: "r", Text: []byte(rule)}})
			if err != nil {
				t.Error(err)
				return
			}
			if got := s.Judge(t.Context(), OnOutput, Facts{Output: "text", OutputSize: i}); len(got) != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	wg.Wait()
}

// TestLoadLocatesMistakes: an error has its place and its reason apart.
func TestLoadLocatesMistakes(t *testing.T) {
	_, err := Load([]Source{{Name: "r.yaml", Text: []byte("rules:\n  - {id: x, on: request}\n")}})
	var at *rulefile.LocatedError
	var letter *holdfast.Error
	if !errors.As(err, &at) || !errors.As(err, &letter) {
		t.Fatalf("%T: %v", err, err)
	}
	if at.Where != "r.yaml:2:5" || at.Reason != `rule 1 has no "when"` || at.Where != letter.Rule ||
		letter.Why != at.Where+": "+at.Reason || letter.Kind != holdfast.KindPredicateParse {
		t.Errorf("%+v, %+v", at, letter)
	}
}
