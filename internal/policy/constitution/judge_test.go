package constitution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/outputcheck"
	"golang.org/x/sys/unix"
)

func judgeOne(t *testing.T, when string, f Facts) []Finding {
	t.Helper()
	text, err := json.Marshal(when)
	if err != nil {
		t.Fatal(err)
	}
	return load(t, "rules:\n- id: a\n  on: request\n  message: m\n  hint: h\n  when: "+string(text)+"\n").Judge(t.Context(), OnRequest, f)
}

func TestConditions(t *testing.T) {
	f := someFacts(t)
	f.Payload = decode(t, `{"path":"/srv/ä/b","n":7,"big":9223372036854775807,"over":9223372036854775808,"f":1.0,"e":1e3,"neg":-0,
		"list":[1,2.5,"x",null,true,{"k":[]}],"text":"äöü😀","nil":null,"obj":{"a":{"b":1}}, "upper":"ABC"}`)
	for when, violated := range map[string]bool{
		`args.path.startsWith("/srv/")`:                                    true,
		`args.path.split("/").exists(p, p == "ä")`:                         true,
		`args.n == 7 && args.n > 6 && args.n < 7.5`:                        true,
		`type(args.n) == int && type(args.f) == double`:                    true,
		`type(args.big) == int && args.big == 9223372036854775807`:         true,
		`type(args.over) == double && type(args.e) == double`:              true,
		`args.f == 1 && args.e == 1000 && args.neg == 0`:                   true,
		`size(args.text) == 4`:                                             true,
		`args.text.indexOf("😀") == 3`:                                      true,
		`args.list[0] == 1 && args.list[1] == 2.5 && args.list[3] == null`: true,
		`size(args.list) == 6 && args.list[5].k == []`:                     true,
		`args.obj.a.b == 1 && args.obj == {"a": {"b": 1}}`:                 true,
		`has(args.nope)`:                                                                     false,
		`has(args.nil)`:                                                                      true,
		`has(args.nope) && args.nope.x == 1`:                                                 false,
		`"n" in args && !("m" in args)`:                                                      true,
		`args.upper.lowerAscii() == "abc"`:                                                   true,
		`args.path.matches("^/(srv|etc)/")`:                                                  true,
		`matches(args.path, "^/etc/")`:                                                       false,
		`["a", "b"].join("-") == "a-b"`:                                                      true,
		`args.path.replace("/srv", "") == "/ä/b"`:                                            true,
		`sets.intersects(roles, ["writer", "admin"])`:                                        true,
		`sets.contains(["writer"], roles)`:                                                   true,
		`[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1]`:                          true,
		`"writer" in roles && size(roles) == 1`:                                              true,
		`boundary == "mcp/files/write" && operation == "file:write"`:                         true,
		`risk == "MEDIUM" && level == "medium" && level_rank == 1`:                           true,
		`tenant == "local" && principal == "ada" && agent == "a1"`:                           true,
		`kind == "coder" && session == "s1" && intent == "" && chain == ""`:                  true,
		`payload_size == 100`:                                                                true,
		`now == timestamp("2026-11-21T12:00:00Z")`:                                           true,
		`now.getHours() == 12 && now.getHours("+02:00") == 14`:                               true,
		`now - duration("1h") < now`:                                                         true,
		`args.list.exists(x, x == "x") && args.list.exists_one(x, type(x) == int && x == 1)`: true,
		`true || args.nope == 1`:                                                             true,
		`false && args.nope == 1`:                                                            false,
	} {
		got := judgeOne(t, when, f)
		if violated != (len(got) == 1) {
			t.Errorf("%s: %+v", when, got)
		}
		if violated && (got[0].Verdict != holdfast.Deny || got[0].Err != nil || got[0].Message != "m" || got[0].Hint != "h" || got[0].Where != "rules.yaml:2") {
			t.Errorf("%s: %+v", when, got[0])
		}
	}
}

// TestFailuresDeny is failure shape (h): nothing fails open (D3).
func TestFailuresDeny(t *testing.T) {
	f := someFacts(t)
	for name, c := range map[string]struct {
		when, says string
		payload    any
		kind       error
	}{
		"K8_FP3_missing_key":  {`args.nope == 1`, "no key nope", f.Payload, failure.ErrEval},
		"K8_FP3_missing_deep": {`args.nested.deep.zip > 1`, "no key zip", f.Payload, failure.ErrEval},
		"K8_FP3_secret_key": {`args[args.k] == 1`, "a key that the rule reads is missing",
			decode(t, `{"k":"hunter2"}`), failure.ErrEval},
		"K8_FP3_null_payload": {`args.x == 1`, "", nil, failure.ErrEval},
		"K8_FP3_other_type": {`args.path.startsWith("/")`, "another type", decode(t, `{"path":5}`),
			failure.ErrEval},
		"K8_FP3_not_a_bool": {`args.path`, "neither true nor false", decode(t, `{"path":5}`), failure.ErrEval},
		"K8_FP3_division":   {`1 / args.n == 1`, "by zero", decode(t, `{"n":0}`), failure.ErrEval},
		"K8_FP3_overflow": {`args.n + 1 == 1`, "overflow", decode(t, `{"n":9223372036854775807}`),
			failure.ErrEval},
		"K8_FP3_index":           {`args.l[3] == 1`, "out of range", decode(t, `{"l":[]}`), failure.ErrEval},
		"K8_FP3_number_too_big":  {`args.n > 1`, "range", map[string]any{"n": json.Number("1e400")}, failure.ErrEval},
		"K8_FP3_no_number":       {`args.n > 1`, "range", map[string]any{"n": json.Number("x")}, failure.ErrEval},
		"K8_FP6_not_a_tree":      {`args.n == 1`, "", map[string]any{"n": make(chan int)}, failure.ErrType},
		"K8_FP6_a_struct":        {`args == 1`, "", struct{ X int }{1}, failure.ErrType},
		"K8_FP3_one_of_two":      {`args.nope == 1 || args.path == "no"`, "no key nope", f.Payload, failure.ErrEval},
		"K8_FP3_regex_on_number": {`args.n.matches("a")`, "another type", decode(t, `{"n":1}`), failure.ErrEval},
	} {
		t.Run(name, func(t *testing.T) {
			g := f
			g.Payload = c.payload
			got := judgeOne(t, c.when, g)
			if len(got) != 1 {
				t.Fatalf("%+v", got)
			}
			if got[0].Verdict != holdfast.Deny || !errors.Is(got[0].Err, c.kind) || !strings.Contains(got[0].Message, c.says) {
				t.Errorf("%+v", got[0])
			}
			if strings.Contains(got[0].Message, "hunter2") {
				t.Error("the message quotes the payload")
			}
		})
	}
}

func TestSeveritiesAndModes(t *testing.T) {
	for _, c := range []struct {
		extra    string
		on       On
		verdict  holdfast.Verdict
		observed bool
	}{
		{"", OnRequest, holdfast.Deny, false},
		{"severity: block", OnRequest, holdfast.Deny, false},
		{"severity: critical", OnRequest, holdfast.Deny, false},
		{"severity: hold", OnRequest, holdfast.Hold, false},
		{"severity: warn", OnRequest, holdfast.Allow, false},
		{"severity: info", OnRequest, holdfast.Allow, false},
		{"mode: observe", OnRequest, holdfast.Allow, true},
		{"{mode: observe}", OnRequest, holdfast.Allow, true},
	} {
		extra := strings.Trim(c.extra, "{}")
		s := load(t, "rules:\n- id: a\n  on: request\n  message: m\n  when: 'true'\n  "+extra+"\n")
		got := s.Judge(t.Context(), c.on, Facts{})
		if len(got) != 1 || got[0].Verdict != c.verdict || got[0].Observed != c.observed || got[0].Passed {
			t.Errorf("%q: %+v", c.extra, got)
		}
	}
	// A failing rule denies even where its severity is only to tell.
	for extra, want := range map[string]Finding{
		"severity: info":                  {Verdict: holdfast.Deny},
		"mode: observe":                   {Verdict: holdfast.Allow, Observed: true},
		"on_error: pass":                  {Verdict: holdfast.Allow, Passed: true},
		"on_error: deny":                  {Verdict: holdfast.Deny},
		"on_error: pass\n  mode: observe": {Verdict: holdfast.Allow, Observed: true},
	} {
		s := load(t, "rules:\n- id: a\n  on: goal\n  message: m\n  when: args.x == 1\n  "+extra+"\n")
		got := s.Judge(t.Context(), OnGoal, Facts{Payload: map[string]any{}})
		if len(got) != 1 || got[0].Verdict != want.Verdict || got[0].Observed != want.Observed ||
			got[0].Passed != want.Passed || !errors.Is(got[0].Err, failure.ErrEval) {
			t.Errorf("%q: %+v", extra, got)
		}
	}
}

func TestBoundariesAndOrder(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i, b := range []string{"mcp/files/write", "mcp/files/*", "mcp/*", "*", "mcp/files/writ", "mcp/files/write/*", "exec/*", "mcp/fil*"} {
		fmt.Fprintf(&text, "- {id: r%d, on: request, message: m, when: 'true', boundary: %q}\n", i, b)
	}
	fmt.Fprint(&text, "- {id: other, on: output, message: m, when: 'true'}\n")
	var ids []string
	for _, f := range load(t, text.String()).Judge(t.Context(), OnRequest, Facts{Boundary: "mcp/files/write"}) {
		ids = append(ids, f.Rule)
	}
	if got := strings.Join(ids, " "); got != "r0 r1 r2 r3 r7" {
		t.Error(got)
	}
}

func TestZeroSetDenies(t *testing.T) {
	for _, s := range []*Set{nil, {}} {
		got := s.Judge(t.Context(), OnRequest, Facts{})
		if len(got) != 1 || got[0].Verdict != holdfast.Deny || got[0].Err == nil {
			t.Errorf("%+v", got)
		}
		if _, ok := s.Predicate(GoalCoherenceCheck); ok {
			t.Error("a set that was not loaded has predicates")
		}
		if s.Rules() != nil || s.Version() != "" || s.Weakened() != nil {
			t.Error("a set that was not loaded says something")
		}
	}
	empty := load(t, "rules: []\n")
	if got := empty.Judge(t.Context(), OnRequest, Facts{}); got != nil {
		t.Errorf("%+v", got)
	}
	if got := empty.Judge(t.Context(), On("requests"), Facts{}); len(got) != 1 || got[0].Verdict != holdfast.Deny {
		t.Errorf("an unknown kind of rule: %+v", got)
	}
}

func manyNumbers(n int) []any {
	return slices.Repeat([]any{json.Number("1")}, n)
}

// TestBounds: a rule that is cheap on ordinary payloads and dear on a hostile
// one ends with ErrCost or ErrTimeout, and denies.
func TestBounds(t *testing.T) {
	huge := strings.Repeat("a", 10_000_000)
	plain := map[string]any{"l": manyNumbers(2_000_000)}
	floor := time.Hour
	for range 2 {
		begin := testgrowth.Used()
		judgeOne(t, `args.l.all(x, x == 1)`, Facts{Payload: plain})
		floor = min(floor, testgrowth.Used()-begin)
	}
	for name, c := range map[string]struct {
		when string
		args map[string]any
		kind error
	}{
		"K8_FP5_long_list": {`args.l.all(x, x == 1)`, plain, failure.ErrCost},
		"K8_FP5_nested": {`args.l.all(x, args.l.exists(y, y == 2) || x == 1)`,
			map[string]any{"l": manyNumbers(20_000)}, failure.ErrCost},
		"K8_FP5_regex": {`args.s.matches("(a|aa)*b(a?){50}c")`, map[string]any{"s": huge}, failure.ErrCost},
		"K8_FP5_indexOf": {`args.s.indexOf(args.s2) > 0`, map[string]any{"s": huge, "s2": huge[:5_000_000]},
			failure.ErrCost},
		"K8_FP5_replace": {`args.s.replace("a", args.s) == ""`, map[string]any{"s": huge}, failure.ErrCost},
		"K8_FP5_split":   {`args.s.split("").size() == 1`, map[string]any{"s": huge}, failure.ErrCost},
		"K8_FP5_join": {`["a", "b", "c"].map(x, args.s).join(args.s) == ""`, map[string]any{"s": huge},
			failure.ErrCost},
		"K8_FP5_distinct": {`args.l.distinct().size() == 1`, map[string]any{"l": manyNumbers(100_000)},
			failure.ErrCost},
		"K8_FP5_sets": {`sets.equivalent(args.l, args.l)`, map[string]any{"l": manyNumbers(100_000)},
			failure.ErrCost},
		"K8_FP5_in_dyn": {`args.l.all(x, !(2 in args.l))`, map[string]any{"l": manyNumbers(2_000_000)},
			failure.ErrCost},
		"K8_FP5_deep_equal": {`args.m.all(x, args.a == args.b)`, map[string]any{"m": manyNumbers(1000),
			"a": []any{manyNumbers(200_000)}, "b": []any{manyNumbers(200_000)}}, failure.ErrCost},
		"K8_FP5_in_list": {`args.m.all(x, args.a in [args.b, args.c])`,
			map[string]any{"m": manyNumbers(1000), "a": manyNumbers(200_000), "b": manyNumbers(200_000),
				"c": json.Number("1")}, failure.ErrCost},
		"K8_FP5_size": {`args.m.all(x, size(args.s) > 1)`, map[string]any{"m": manyNumbers(1000),
			"s": huge}, failure.ErrCost},
		"K8_FP5_compare": {`args.m.all(x, args.s <= args.t)`, map[string]any{"m": manyNumbers(1000),
			"s": huge, "t": huge + "a"}, failure.ErrCost},
		"K8_FP5_concatenated": {`size(args.s + args.s + args.s + args.s) == 1`, map[string]any{"s": huge},
			failure.ErrCost},
	} {
		t.Run(name, func(t *testing.T) {
			took := time.Hour
			for range 4 { // the least counts: all else that the process does only adds
				begin := testgrowth.Used()
				got := judgeOne(t, c.when, Facts{Payload: c.args})
				took = min(took, testgrowth.Used()-begin)
				if len(got) != 1 || got[0].Verdict != holdfast.Deny || !errors.Is(got[0].Err, c.kind) {
					t.Fatalf("%.300s", fmt.Sprint(got))
				}
				if took <= 10*floor {
					break
				}
			}
			t.Logf("took %v of the processor, the floor %v", took, floor)
			if took > 10*floor {
				t.Errorf("took %v of the processor; a plain rule that costs as much as a rule may takes %v", took, floor)
			}
		})
	}
}

// K8_AC4 and failure predicate 5: the answer comes by the context.
func TestTimeout_K8_AC4_slow_predicate_times_out(t *testing.T) {
	s := load(t, "rules:\n"+
		"- {id: a, on: output, message: m, when: 'output.l.all(x, x == 1)'}\n"+
		"- {id: b, on: output, message: m, when: 'true'}\n")
	f := Facts{Output: map[string]any{"l": manyNumbers(150_000)}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	got := s.Judge(ctx, OnOutput, f)
	if len(got) != 1 || got[0].Rule != "a" || got[0].Verdict != holdfast.Deny || !errors.Is(got[0].Err,
		failure.ErrTimeout) {
		t.Fatalf("%+v", got)
	}
	p, _ := s.Predicate("b")
	if ok, _, err := p.Check(ctx, f, outputcheck.Context{}); ok || !errors.Is(err, failure.ErrTimeout) {
		t.Error("a predicate answered after its time", ok, err)
	}
	if got := s.Judge(t.Context(), OnOutput, f); len(got) != 2 || got[0].Err != nil {
		t.Errorf("%+v", got)
	}
}

// almostRuleCost is a text of which one look costs nearly as much as a rule may.
var almostRuleCost = strings.Repeat("a", 9*MaxRuleCost)

// TestJudgeBudget: all rules of one call share one budget.
func TestJudgeBudget(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range 15 {
		fmt.Fprintf(&text, "- {id: r%d, on: request, message: m, when: 'args.s != args.s'}\n", i)
	}
	got := load(t, text.String()).Judge(t.Context(), OnRequest, Facts{Payload: map[string]any{"s": almostRuleCost}})
	if len(got) != 1 || !errors.Is(got[0].Err, failure.ErrCost) || got[0].Verdict != holdfast.Deny {
		t.Fatalf("%+v", got)
	}
}

// TestThousandRules: a full set of cheap rules stays within the budget.
func TestThousandRules(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range MaxRules {
		fmt.Fprintf(&text, "- {id: r%d, on: request, message: m, when: '\"admin\" in roles || args.path.startsWith(\"/etc/%d\")'}\n", i, i)
	}
	if got := load(t, text.String()).Judge(t.Context(), OnRequest, someFacts(t)); len(got) != 0 {
		t.Fatalf("%+v", got[0])
	}
}

// TestJudgeIsPure: judging from many goroutines changes nothing and always
// gives the same findings.
func TestJudgeIsPure(t *testing.T) {
	s := load(t, "rules:\n- {id: a, on: request, message: m, when: 'args.tags.map(t, t + \"!\").exists(t, t == \"x!\")'}\n"+
		"- {id: b, on: request, message: m, when: 'args.tags.sort()[0] == \"x\" && args.nope'}\n")
	f := someFacts(t)
	before := decode(t, mustJSON(t, f.Payload))
	want := fmt.Sprint(s.Judge(t.Context(), OnRequest, f))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if got := fmt.Sprint(s.Judge(t.Context(), OnRequest, f)); got != want {
					t.Error(got)
				}
			}
		})
	}
	wg.Wait()
	if !reflect.DeepEqual(before, f.Payload) {
		t.Error("the payload was changed")
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestJudgeAllocates(t *testing.T) {
	s := load(t, head+"args.path.startsWith('/etc/')\n")
	f := someFacts(t)
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { s.Judge(ctx, OnRequest, f) }); n > 4 {
		t.Errorf("%v allocations", n)
	}
}

// TestEveryFunctionIsBounded calls every function a rule can call, once and in
// a loop, on large values.
func TestEveryFunctionIsBounded(t *testing.T) {
	huge := strings.Repeat("a", 1_000_000)
	numbers := manyNumbers(200_000)
	payload := map[string]any{"s": huge, "t": huge[:999_999], "l": numbers, "m": manyNumbers(3000), "n": []any{numbers}, "o": map[string]any{"l": numbers}}
	lang, err := newLanguage()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The floor is what the plainest rule takes that costs as much as a rule may.
	plain, _ := compile(lang.request, `args.l.all(x, x == 1)`, isBool, "a bool")
	begin := threadTime(t)
	if _, _, err := plain.judge(t.Context(),
		&facts{Facts: Facts{Payload: map[string]any{"l": manyNumbers(2_000_000)}}, on: OnRequest},
		MaxRuleCost); !errors.Is(err, failure.ErrCost) {
		t.Fatal(err)
	}
	floor, most := threadTime(t)-begin, time.Duration(0)
	defer func() { t.Logf("the dearest took %v, the floor %v", most, floor) }()
	for _, call := range []string{
		`args.s.lowerAscii() == "a"`, `args.s.upperAscii() == "A"`, `args.s.trim() == "a"`, `args.s.reverse() == "a"`,
		`args.s.charAt(900000) == "b"`, `args.s.substring(1, 900000) == "b"`, `args.s.split("a").size() == 1`, `args.s.split("b", 2).size() == 9`,
		`args.s.indexOf("b") == 1`, `args.s.lastIndexOf("b") == 1`, `args.s.replace("a", "b") == "x"`, `args.s.replace("a", "b", 3) == "x"`,
		`args.s.contains(args.t + "b")`, `args.s.startsWith(args.t + "b")`, `args.s.endsWith(args.t + "b")`, `args.s.matches("b$")`,
		`size(args.s) == 1`, `args.s == args.t`, `args.s < args.t`, `string(args.s) == "x"`, `bytes(args.s) == b"x"`, `type(args.s) == int`,
		`args.l.flatten().size() == 1`, `args.n.flatten(5).size() == 1`, `args.l.slice(0, 150000).size() == 1`, `args.l.reverse()[0] == 2`,
		`args.l.sort()[0] == 2`, `args.l.distinct().size() == 2`, `args.l.sortBy(x, -x)[0] == 2`, `2 in args.l`, `args.l in args.n && false`, `args.l == args.o.l && false`,
		`(args.l + args.l).size() == 1`, `sets.contains(args.l, [2])`, `sets.intersects(args.l, [2])`, `sets.equivalent(args.l, [2])`,
		`args.l.map(x, x).size() == 1`, `args.l.filter(x, x > 1).size() == 1`, `args.l.exists_one(x, x == 2)`, `["x"].join(args.s) == "y"`,
		`[args.s, args.s, args.s].join("") == "y"`, `args.l[199999] == 2`, `args.n == [args.l] && false`, `{"a": args.s}["a"] == "x"`,
		`[args.s, args.t].exists(s, s == args.t + "b")`, `timestamp(args.s) == now`, `duration(args.s) == duration("1s")`, `int(args.s) == 1`, `double(args.s) == 1.0`,
	} {
		var once time.Duration // of the call alone
		for _, when := range []string{call, `args.m.exists(i, ` + call + `)`} {
			e, problems := compile(lang.request, when, isBool, "a bool")
			if e == nil {
				// Refused when it is loaded: bounded too.
				if !strings.Contains(problems[0].why, "may cost") {
					t.Errorf("%s: %v", when, problems)
				}
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			begin := threadTime(t)
			violated, _, err := e.judge(ctx, &facts{Facts: Facts{Payload: payload}, on: OnRequest}, MaxRuleCost)
			cancel()
			took := threadTime(t) - begin
			if took > 10*floor {
				t.Errorf("%s took %v, a plain rule of the same cost %v: %v %v", when, took, floor, violated, err)
			}
			if violated {
				t.Errorf("%s is true", when)
			}
			if when == call {
				once = took
			} else if err == nil && took > 50*time.Millisecond+50*once {
				t.Errorf("%s was done 3000 times over: %v, once %v", when, took, once)
			}
			most = max(most, took)
		}
	}
}

// threadTime is the processor time of this thread: what others do on the
// machine is not in it.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// TestObserversDoNotEndTheAsking: time or budget that an observing rule has
// used up denies through the rules after it.
func TestObserversDoNotEndTheAsking(t *testing.T) {
	rules := "rules:\n"
	for i := range 12 {
		rules += fmt.Sprintf("- {id: o%d, on: goal, message: m, mode: observe, when: 'args.s != args.s'}\n", i)
		rules += fmt.Sprintf("- {id: p%d, on: goal, message: m, on_error: pass, when: 'args.s != args.s'}\n", i)
	}
	s := load(t, rules+"- {id: enforced, on: goal, message: m, when: 'args.s == \"\"'}\n")
	f := Facts{Payload: map[string]any{"s": almostRuleCost}}
	gone, stop := context.WithCancel(t.Context())
	stop()
	for kind, ctx := range map[error]context.Context{failure.ErrTimeout: gone, failure.ErrCost: t.Context()} {
		got := s.Judge(ctx, OnGoal, f)
		last := got[len(got)-1]
		if last.Rule != "enforced" || last.Verdict != holdfast.Deny || !errors.Is(last.Err, kind) {
			t.Errorf("%v: %+v", kind, last)
		}
	}
}
