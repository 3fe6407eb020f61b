package constitution

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/outputcheck"
)

// sound is a context in which good outputs pass: the agent may cross three
// boundaries and stands at depth 1 of 3.
func sound() outputcheck.Context {
	may := map[string]bool{"exec/python3.11": true, "mcp/files/write": true, "branch/merge": true, "holdfast/halt": true, "mcp/holdfast/resume": true, "write_file": true}
	return outputcheck.Context{
		May:          func(name string) bool { return may[name] },
		Own:          []string{"/var/lib/holdfast", "/etc/holdfast/holdfast.yaml"},
		PersonalData: func(text string) bool { return strings.Contains(text, "123-45-6789") },
		Depth:        1, MaxDepth: 3,
		BudgetLeft: map[holdfast.Resource]int64{holdfast.LLMTokens: 100},
		Conforms:   func(any) error { return nil },
	}
}

func ask(t *testing.T, id, output string, pc outputcheck.Context) (bool, string, error) {
	t.Helper()
	p, ok := load(t, "rules: []\n").Predicate(id)
	if !ok {
		t.Fatal("no predicate", id)
	}
	return p.Check(t.Context(), Facts{Output: decode(t, output), Level: holdfast.MediumTrust}, pc)
}

func TestCelestial(t *testing.T) {
	for name, c := range map[string]struct{ output, why string }{
		"K8_AC1_nothing_to_do":         {`{"text":"hello"}`, ""},
		"K8_AC1_scalar":                {`"hello"`, ""},
		"K8_AC1_null":                  {`null`, ""},
		"K8_AC1_goals":                 {`{"goals":[{"id":"a"},{"id":"b","parent":"a","boundary":"exec/python3.11","level":"medium","consumes":{"llm_tokens":60}},{"id":"c","parent":"a","tool":"write_file","undo":true,"irreversible":false,"consumes":{"llm_tokens":40}}]}`, ""},
		"K8_AC1_words_are_no_crimes":   {`{"goals":[{"boundary":"exec/python3.11","title":"antivirus, exploitation history, fake news survey, minimise harm, kill the process"}]}`, ""},
		"K8_AC1_near_paths":            {`{"boundary":"mcp/files/write","path":"/var/lib/holdfastly/x","other":"see /var/lib/holdfast.txt or /var/lib"}`, ""},
		"K8_AC2_L0_unlisted":           {`{"steps":[{"boundary":"mcp/db/delete_all_backups"}]}`, "L0: the boundary named at /steps/0"},
		"K8_AC2_L0_tool":               {`[[{"tool":"exfiltrate"}]]`, "L0: the tool named at /0/0"},
		"K8_AC2_L0_no_text":            {`{"boundary":["exec/python3.11"]}`, "L0: the boundary at the root is not a plain name"},
		"K8_AC2_L0_null":               {`{"boundary":null}`, "L0"},
		"K8_AC2_L0_two_spellings":      {`{"boundary":"exec/python3.11","Boundary":"mcp/db/drop"}`, "L0"},
		"K8_AC2_L0_other_case":         {`{"BOUNDARY":"mcp/db/drop"}`, "L0"},
		"K8_AC2_L0_both":               {`{"boundary":"exec/python3.11","tool":"drop"}`, "L0: the tool"},
		"K8_AC2_L0_dots":               {`{"boundary":"exec/../holdfast/halt"}`, "L0"},
		"K8_AC2_L0_fullwidth":          {`{"boundary":"exec/python3.11\u200b"}`, "L0"},
		"K8_AC2_L0_space":              {`{"boundary":" exec/python3.11"}`, "L0"},
		"K8_AC2_L0_hidden_in_args":     {`{"boundary":"exec/python3.11","args":{"then":{"boundary":"mcp/db/drop"}}}`, "L0: the boundary named at /args/then"},
		"K8_AC2_L1_boundary":           {`{"boundary":"holdfast/halt"}`, "L1: the boundary named at the root is Holdfast itself"},
		"K8_AC2_L1_server":             {`{"boundary":"mcp/holdfast/resume"}`, "L1"},
		"K8_AC2_L1_state":              {`{"boundary":"mcp/files/write","path":"/var/lib/holdfast/HALT"}`, "L1: /path names a path"},
		"K8_AC2_L1_dots":               {`{"boundary":"mcp/files/write","path":"/srv/../var//lib/./holdfast"}`, "L1"},
		"K8_AC2_L1_url":                {`{"boundary":"mcp/files/write","args":["file:///var/lib/holdfast/x"]}`, "L1: /args/0"},
		"K8_AC2_L1_encoded":            {`{"boundary":"mcp/files/write","uri":"file:///var%2Flib/%68oldfast"}`, "L1"},
		"K8_AC2_L1_command":            {`{"boundary":"exec/python3.11","code":"import os; os.remove('/var/lib/holdfast/HALT')"}`, "L1"},
		"K8_AC2_L1_redirect":           {`{"boundary":"exec/python3.11","code":"echo x >>/etc/holdfast/holdfast.yaml"}`, "L1"},
		"K8_AC2_L1_backslash":          {`{"boundary":"exec/python3.11","code":"rm /var/lib/hold\\fast/HALT"}`, "L1"},
		"K8_AC2_L1_json_in_text":       {`{"boundary":"exec/python3.11","args":"{\"path\":\"\\/var\\/lib\\/holdfast\"}"}`, "L1"},
		"K8_AC2_L1_key":                {`{"boundary":"mcp/files/write","files":{"/etc/holdfast/holdfast.yaml":"x"}}`, "L1"},
		"K8_AC2_L2_text":               {`{"note":"ssn 123-45-6789"}`, "L2: personal data at /note"},
		"K8_AC2_L2_key":                {`{"123-45-6789":1}`, "L2: personal data at the root"},
		"K8_AC2_L2_place_quotes_not":   {`{"a b 123-45-6780":{"x":"123-45-6789"}}`, "L2: personal data at /*/x"},
		"K8_AC2_L3_undo":               {`{"boundary":"branch/merge","undo":false}`, "L3: what the root asks for"},
		"K8_AC2_L3_irreversible":       {`[{"boundary":"branch/merge","irreversible":true}]`, "L3: what /0 asks for"},
		"K8_AC2_L3_not_a_bool":         {`{"boundary":"branch/merge","undo":"true"}`, "L3"},
		"K8_AC2_L3_two_marks":          {`{"boundary":"branch/merge","irreversible":false,"Irreversible":true}`, "L3"},
		"K8_AC2_L4_level":              {`{"boundary":"branch/merge","level":"high"}`, "L4: the root needs trust level high"},
		"K8_AC2_L4_no_level":           {`{"boundary":"branch/merge","level":"god"}`, "L4"},
		"K8_AC2_L4_depth":              {`{"goals":[{"id":"a"},{"id":"b","parent":"a"},{"id":"c","parent":"b"},{"id":"d","parent":"c","boundary":"branch/merge"}]}`, "L4: /goals/3 is deeper than 3"},
		"K8_AC2_L4_cycle":              {`{"goals":[{"id":"a","parent":"a","boundary":"branch/merge"}]}`, "L4"},
		"K8_AC2_L4_nested":             {`{"boundary":"branch/merge","then":[{"boundary":"branch/merge","then":{"boundary":"branch/merge","then":[[{"boundary":"branch/merge"}]]}}]}`, "L4: /then/0/then/then/0/0 is deeper than 3"},
		"K8_AC1_beside":                {`{"a":{"x":{"boundary":"branch/merge"}},"b":[[{"boundary":"branch/merge"}],[[[{"boundary":"branch/merge"}]]]],"c":{"d":{"e":{"f":{"boundary":"branch/merge"}}}}}`, ""},
		"K8_AC2_L4_parent_number":      {`{"id":"a","parent":5,"boundary":"branch/merge"}`, "L4: the id or parent"},
		"K8_AC2_L4_two_parents":        {`[{"id":"a","parent":"b","boundary":"branch/merge"},{"id":"b","parent":"c"},{"id":"b"}]`, "L4: the id at /2 has two parents"},
		"K8_AC2_L4_parent_spelled":     {`{"id":"a","parent":"b","Parent":"c","boundary":"branch/merge"}`, "L4"},
		"K8_AC2_L4_id_number":          {`{"id":7,"parent":"b","boundary":"branch/merge"}`, "L4"},
		"K8_AC1_numbered_rows":         {`{"rows":[{"id":1,"parent":0},{"id":2,"parent":1}],"next":{"boundary":"branch/merge"}}`, ""},
		"K8_AC2_L4_budget":             {`[{"boundary":"branch/merge","consumes":{"llm_tokens":60}},{"boundary":"branch/merge","consumes":{"llm_tokens":41}}]`, "L4: /1 and what stands before it"},
		"K8_AC2_L4_unknown_resource":   {`{"boundary":"branch/merge","consumes":{"gold":1}}`, "L4"},
		"K8_AC2_L4_negative":           {`[{"boundary":"branch/merge","consumes":{"llm_tokens":-100}}]`, "L4"},
		"K8_AC2_L4_fraction":           {`[{"boundary":"branch/merge","consumes":{"llm_tokens":1.5}}]`, "L4"},
		"K8_AC2_L4_text":               {`[{"boundary":"branch/merge","consumes":{"llm_tokens":"1"}}]`, "L4"},
		"K8_AC2_L4_overflow":           {`[{"boundary":"branch/merge","consumes":{"llm_tokens":99}},{"boundary":"branch/merge","consumes":{"llm_tokens":9223372036854775807}}]`, "L4"},
		"K8_AC2_lexicographic_0_first": {`[{"boundary":"branch/merge","undo":false,"level":"highest"},{"boundary":"holdfast/x"},{"n":"123-45-6789"}]`, "L0"},
		"K8_AC2_lexicographic_1_first": {`[{"boundary":"branch/merge","undo":false},{"n":"123-45-6789"},{"boundary":"holdfast/halt"}]`, "L1"},
		"K8_AC2_lexicographic_2_first": {`[{"boundary":"branch/merge","undo":false,"level":"highest"},{"n":"123-45-6789"}]`, "L2"},
		"K8_AC2_lexicographic_3_first": {`[{"boundary":"branch/merge","level":"highest"},{"boundary":"branch/merge","undo":false}]`, "L3"},
	} {
		t.Run(name, func(t *testing.T) {
			ok, why, err := ask(t, CelestialConstraintCheck, c.output, sound())
			if err != nil || ok != (c.why == "") || !strings.HasPrefix(why, c.why) {
				t.Errorf("%v %q %v", ok, why, err)
			}
			if strings.Contains(why, "6789") || strings.Contains(why, "6780") {
				t.Error("the reason quotes the output")
			}
		})
	}
}

func TestCelestialContext(t *testing.T) {
	final := `{"boundary":"branch/merge","undo":false}`
	for _, change := range []func(*outputcheck.Context){
		func(pc *outputcheck.Context) { pc.HasReview = true },
		func(pc *outputcheck.Context) { pc.HasSnapshot = true },
	} {
		pc := sound()
		change(&pc)
		if ok, why, err := ask(t, CelestialConstraintCheck, final, pc); !ok || err != nil {
			t.Error(why, err)
		}
	}
	// No data is not a pass.
	for name, change := range map[string]func(*outputcheck.Context){
		"K8_FP3_no_may":           func(pc *outputcheck.Context) { pc.May = nil },
		"K8_FP3_no_personal_data": func(pc *outputcheck.Context) { pc.PersonalData = nil },
		"K8_FP3_no_own":           func(pc *outputcheck.Context) { pc.Own = nil },
		"K8_FP3_may_panics":       func(pc *outputcheck.Context) { pc.May = func(string) bool { panic("x") } },
	} {
		pc := sound()
		change(&pc)
		if ok, _, err := ask(t, CelestialConstraintCheck, final, pc); ok || !errors.Is(err, failure.ErrEval) {
			t.Error(name, ok, err)
		}
	}
	pc := sound()
	pc.Depth, pc.MaxDepth = 0, 0
	if ok, why, _ := ask(t, CelestialConstraintCheck, `{"id":"b","parent":"a","boundary":"branch/merge"}`, pc); ok {
		t.Error("a child at depth 1 of 0 passed", why)
	}
	pc.MaxDepth = 1 << 62
	if ok, why, _ := ask(t, CelestialConstraintCheck, `[{"id":"a","parent":"b","boundary":"branch/merge"},{"id":"b","parent":"a"}]`, pc); ok || !strings.Contains(why, "ancestor") {
		t.Error("a cycle without a bound", ok, why)
	}
}

func TestCoherence(t *testing.T) {
	leaf := func(id, parent, covers string) string {
		return fmt.Sprintf(`{"id":%q,"parent":%q,"covers":[%s],"boundary":"exec/python3.11"}`, id, parent, covers)
	}
	for name, c := range map[string]struct{ output, why string }{
		"K8_AC1_one_leaf":              {`{"goals":[{"id":"a","boundary":"branch/merge"}]}`, ""},
		"K8_AC1_tree":                  {`{"goals":[` + leaf("b", "a", `"x"`) + `,{"id":"a","conditions":["x","y"],"parent":null},` + leaf("c", "a", `"y","x"`) + `]}`, ""},
		"K8_AC1_three_levels":          {`{"goals":[{"id":"a","conditions":["x"]},{"id":"b","parent":"a","covers":["x"],"conditions":["p","q"]},` + leaf("c", "b", `"p"`) + `,` + leaf("d", "b", `"q"`) + `]}`, ""},
		"K8_AC2_no_object":             {`[]`, "not an object with goals"},
		"K8_AC2_null":                  {`null`, "not an object"},
		"K8_AC2_no_goals":              {`{"goals":[]}`, "no list of goals"},
		"K8_AC2_goals_text":            {`{"goals":"all coherent"}`, "no list of goals"},
		"K8_AC2_goal_text":             {`{"goals":["a"]}`, "/goals/0 is not an object"},
		"K8_AC2_no_id":                 {`{"goals":[{"boundary":"branch/merge"}]}`, "/goals/0 has no id"},
		"K8_AC2_id_number":             {`{"goals":[{"id":1}]}`, "/goals/0/id is not a text"},
		"K8_AC2_two_of_one_id":         {`{"goals":[{"id":"a","boundary":"branch/merge"},{"id":"a","boundary":"branch/merge"}]}`, "have one id"},
		"K8_AC2_missing_parent":        {`{"goals":[` + leaf("b", "zz", `"x"`) + `]}`, "parent that is not there"},
		"K8_AC2_self_parent":           {`{"goals":[` + leaf("a", "a", `"x"`) + `]}`, "cycle"},
		"K8_AC2_cycle":                 {`{"goals":[{"id":"r","boundary":"branch/merge"},{"id":"a","parent":"b","conditions":["x"],"covers":["x"]},{"id":"b","parent":"a","conditions":["x"],"covers":["x"]}]}`, "/goals/1 is on or below a cycle"},
		"K8_AC2_leaf_no_boundary":      {`{"goals":[{"id":"a"}]}`, "names no boundary"},
		"K8_AC2_leaf_unlisted":         {`{"goals":[{"id":"a","boundary":"think/hard"}]}`, "names no boundary"},
		"K8_AC2_no_conditions":         {`{"goals":[{"id":"a"},` + leaf("b", "a", ``) + `]}`, "no conditions"},
		"K8_AC2_covers_nothing":        {`{"goals":[{"id":"a","conditions":["x"]},` + leaf("b", "a", ``) + `]}`, "covers none"},
		"K8_AC2_covers_another":        {`{"goals":[{"id":"a","conditions":["x"]},` + leaf("b", "a", `"x","z"`) + `]}`, "condition that its parent does not have"},
		"K8_AC2_not_all_covered":       {`{"goals":[{"id":"a","conditions":["x","y"]},` + leaf("b", "a", `"x"`) + `]}`, "none of its children covers"},
		"K8_AC2_conditions_text":       {`{"goals":[{"id":"a","conditions":"x"}]}`, "/goals/0/conditions"},
		"K8_AC2_condition_twice":       {`{"goals":[{"id":"a","conditions":["x","x"]}]}`, "/goals/0/conditions"},
		"K8_AC2_proto":                 {`{"goals":[{"id":"__proto__"},{"id":"b","parent":"__proto__","covers":["x"],"boundary":"branch/merge","conditions":["x"]}]}`, "no conditions"},
		"K8_AC2_eval_passed_is_unread": {`{"eval_passed":true,"goals":[{"id":"a","eval_passed":true,"coherent":true}]}`, "names no boundary"},
	} {
		t.Run(name, func(t *testing.T) {
			ok, why, err := ask(t, GoalCoherenceCheck, c.output, sound())
			if err != nil || ok != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("%v %q %v", ok, why, err)
			}
		})
	}
	pc := sound()
	pc.May = nil
	if _, _, err := ask(t, GoalCoherenceCheck, `{"goals":[{"id":"a","boundary":"branch/merge"}]}`,
		pc); !errors.Is(err, failure.ErrEval) {
		t.Error(err)
	}
	pc.Listed = func(string) bool { return true }
	if ok, why, err := ask(t, GoalCoherenceCheck, `{"goals":[{"id":"a","boundary":"branch/merge"}]}`, pc); !ok {
		t.Error(why, err)
	}
}

func TestSchemaConformance(t *testing.T) {
	pc := sound()
	if ok, why, err := ask(t, OutputSchemaConformance, `{}`, pc); !ok {
		t.Error(why, err)
	}
	pc.Conforms = func(any) error { return errors.New("/x: missing") }
	if ok, why, err := ask(t, OutputSchemaConformance, `{}`, pc); ok || err != nil || !strings.Contains(why, "/x: missing") {
		t.Error("K8_AC2", ok, why, err)
	}
	pc.Conforms = func(any) error { return context.DeadlineExceeded }
	if ok, _, err := ask(t, OutputSchemaConformance, `{}`, pc); ok || !errors.Is(err, failure.ErrTimeout) {
		t.Error("K8_FP5", ok, err)
	}
	pc.Conforms = nil
	if ok, _, err := ask(t, OutputSchemaConformance, `{}`, pc); ok || !errors.Is(err, failure.ErrEval) {
		t.Error("K8_FP3", ok, err)
	}
}

func TestRulePredicates(t *testing.T) {
	s := load(t, `rules:
- {id: small, on: output, when: output_size > 10 || exit_code != 0, message: too much, severity: info, boundary: elsewhere}
- {id: seen, on: output, when: output.x == 1, message: seen it, mode: observe}
- {id: strict, on: output, when: output.x == 1, message: x is 1}
- {id: before, on: request, when: 'true', message: m}
`)
	check := func(id string, f Facts) (bool, string, error) {
		t.Helper()
		p, ok := s.Predicate(id)
		if !ok || p.ID != id || p.Version == "" || p.Where == "" {
			t.Fatalf("%s: %+v", id, p)
		}
		return p.Check(t.Context(), f, outputcheck.Context{})
	}
	one := Facts{Output: decode(t, `{"x":1}`)}
	t.Run("K8_AC1_valid_output_passes", func(t *testing.T) {
		if ok, why, err := check("strict", Facts{Output: decode(t, `{"x":2}`)}); !ok || why != "" || err != nil {
			t.Error(ok, why, err)
		}
	})
	t.Run("K8_AC2_FP4_INV1_invalid_output_fails", func(t *testing.T) {
		if ok, why, err := check("strict", one); ok || why != "x is 1" || err != nil {
			t.Error(ok, why, err)
		}
		if ok, _, _ := check("small", Facts{OutputSize: 11}); ok {
			t.Error("a contract that names a rule of severity info is not heeded")
		}
		if ok, _, _ := check("small", Facts{ExitCode: 1}); ok {
			t.Error("exit code")
		}
	})
	t.Run("observed", func(t *testing.T) {
		if ok, why, err := check("seen", one); !ok || why != "observed: seen it" || err != nil {
			t.Error(ok, why, err)
		}
	})
	t.Run("K8_AC3_AC5_FP1_lookup", func(t *testing.T) {
		for _, id := range []string{"nonexistent", "before", "", "celestial_constraint_check_v2", "goals/celestial_constraint_check_v1.2"} {
			if p, ok := s.Predicate(id); ok {
				t.Errorf("%q was found: %+v", id, p)
			}
		}
		for _, id := range Builtins() {
			plain, ok := s.Predicate(id)
			pinned, too := s.Predicate(id + "_v1")
			if !ok || !too || plain.Version != id+"_v1" || pinned.Version != plain.Version || pinned.ID != id {
				t.Error(id, plain.Version, pinned.Version)
			}
		}
	})
	t.Run("K8_FP3_evaluation_error", func(t *testing.T) {
		if ok, _, err := check("strict", Facts{Output: decode(t, `{}`)}); ok || !errors.Is(err,
			failure.ErrEval) || !strings.Contains(err.Error(), "no key x") {
			t.Error(ok, err)
		}
		if ok, _, err := (Predicate{}).Check(t.Context(), one, outputcheck.Context{}); ok || err == nil {
			t.Error("the zero predicate passed")
		}
	})
	t.Run("K8_FP6_output_that_is_no_tree", func(t *testing.T) {
		deep := any("x")
		for range 2000 {
			deep = []any{deep}
		}
		for _, output := range []any{make(chan int), map[string]any{"x": func() {}}, []any{1}} {
			for _, id := range []string{"strict", "celestial_constraint_check", "goal_coherence_check", "output_schema_conformance"} {
				p, _ := s.Predicate(id)
				if ok, _, err := p.Check(t.Context(), Facts{Output: output}, sound()); ok || !errors.Is(err,
					failure.ErrType) {
					t.Error(id, ok, err)
				}
			}
		}
		if ok, _, err := check("strict", Facts{Output: deep}); ok || !errors.Is(err, failure.ErrCost) {
			t.Error("deep", ok, err)
		}
	})
}

// K8_AC4: a predicate that is slow is told by the context, the built-in ones
// too.
func TestPredicates_K8_AC4_FP5_timeout(t *testing.T) {
	s := load(t, "rules: []\n")
	pc := sound()
	pc.PersonalData = func(string) bool { time.Sleep(100 * time.Microsecond); return false }
	list := make([]any, 100_000) // ten seconds and more
	for i := range list {
		list[i] = "x"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	p, _ := s.Predicate(CelestialConstraintCheck)
	begin := time.Now()
	ok, _, err := p.Check(ctx, Facts{Output: list}, pc)
	if ok || !errors.Is(err, failure.ErrTimeout) || time.Since(begin) > 5*time.Second {
		t.Error(ok, err, time.Since(begin))
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	for _, id := range Builtins() {
		p, _ := s.Predicate(id)
		if ok, _, err := p.Check(gone, Facts{}, sound()); ok || !errors.Is(err, failure.ErrTimeout) {
			t.Error(id, ok, err)
		}
	}
}

// K8_AC6 and invariant 3.
func TestPredicates_K8_AC6_INV3_deterministic(t *testing.T) {
	s := load(t, "rules:\n- {id: r, on: output, message: m, when: 'output.goals.exists(g, g.id == \"b\")'}\n")
	output := decode(t, `{"goals":[{"id":"a","conditions":["x","y","z"]},{"id":"b","parent":"a","covers":["x"],"boundary":"nope"},{"id":"c","parent":"q"}],"m":{"q":"123-45-6789","a":"123-45-6789","k":"123-45-6789"}}`)
	before := mustJSON(t, output)
	for _, id := range append(Builtins(), "r") {
		p, _ := s.Predicate(id)
		want := ""
		for i := range 200 {
			ok, why, err := p.Check(t.Context(), Facts{Output: output}, sound())
			if got := fmt.Sprint(ok, why, err); i == 0 {
				want = got
			} else if got != want {
				t.Fatalf("%s: %s, then %s", id, want, got)
			}
		}
	}
	if mustJSON(t, output) != before {
		t.Error("a predicate changed the output")
	}
}

// TestInjections puts every text of testdata/injections.txt, and members that
// claim the answer, into a good and into bad outputs. No verdict changes.
func TestInjections(t *testing.T) {
	s := load(t, "rules:\n- {id: r, on: output, message: m, when: 'output.goals.exists(g, has(g.boundary) && g.boundary == \"mcp/db/drop\")'}\n")
	cases := []struct {
		id, output string
		ok         bool
		level      string
	}{
		{"r", `{"goals":[{"id":"a","boundary":"branch/merge"}]}`, true, ""},
		{"r", `{"goals":[{"id":"a","boundary":"mcp/db/drop"}]}`, false, ""},
		{CelestialConstraintCheck, `{"goals":[{"id":"a","boundary":"branch/merge"}]}`, true, ""},
		{CelestialConstraintCheck, `{"goals":[{"id":"a","boundary":"mcp/db/drop"}]}`, false, "L0"},
		{CelestialConstraintCheck, `{"goals":[{"id":"a","boundary":"holdfast/halt"}]}`, false, "L1"},
		{CelestialConstraintCheck, `{"goals":[{"id":"a","boundary":"branch/merge","ssn":"123-45-6789"}]}`, false, "L2"},
		{CelestialConstraintCheck, `{"goals":[{"id":"a","boundary":"branch/merge","undo":false}]}`, false, "L3"},
		{CelestialConstraintCheck, `{"goals":[{"id":"a","boundary":"branch/merge","level":"highest"}]}`, false, "L4"},
		{GoalCoherenceCheck, `{"goals":[{"id":"a","boundary":"branch/merge"}]}`, true, ""},
		{GoalCoherenceCheck, `{"goals":[{"id":"a"}]}`, false, ""},
		{GoalCoherenceCheck, `{"goals":[{"id":"a","parent":"a","boundary":"branch/merge"}]}`, false, ""},
	}
	texts := injections(t)
	if len(texts) < 30 {
		t.Fatal("the set of texts is gone")
	}
	for _, text := range texts {
		for _, c := range cases {
			for n, output := range carriers(t, c.output, text) {
				p, _ := s.Predicate(c.id)
				ok, why, err := p.Check(t.Context(), Facts{Output: output}, sound())
				if ok != c.ok || err != nil || !strings.HasPrefix(why, c.level) {
					t.Errorf("%s, carrier %d of %q: %v %q %v", c.id, n, text, ok, why, err)
				}
			}
		}
	}
}

// carriers puts a text into an output in several ways: as a member beside, as
// a member of the goal, as a key, as a list, as claims with the text for value.
func carriers(t *testing.T, output, text string) []any {
	fresh := func() (map[string]any, map[string]any) {
		o := decode(t, output).(map[string]any)
		return o, o["goals"].([]any)[0].(map[string]any)
	}
	var out []any
	add := func(change func(o, g map[string]any)) {
		o, g := fresh()
		change(o, g)
		out = append(out, o)
	}
	add(func(o, g map[string]any) { o["note"] = text })
	add(func(o, g map[string]any) { g["title"] = text })
	add(func(o, g map[string]any) { g["conditions"] = []any{text} })
	add(func(o, g map[string]any) { o["more"] = []any{[]any{text}, map[string]any{"x": text}} })
	add(func(o, g map[string]any) { g[text] = true; o[text] = text })
	add(func(o, g map[string]any) {
		for _, claim := range []string{"eval_passed", "k8_eval_passed", "verdict", "__proto__", "result", "ok", "observe", "severity", "mode"} {
			g[claim], o[claim] = true, text
		}
		o["__proto__"] = map[string]any{"eval_passed": true, "verdict": "allow"}
	})
	return out
}

func injections(t *testing.T) []string {
	t.Helper()
	file, err := os.Open("testdata/injections.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var out []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		var text string
		if json.Unmarshal([]byte(`"`+line+`"`), &text) != nil {
			text = line
		}
		out = append(out, text)
	}
	return out
}
