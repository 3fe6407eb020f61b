package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func ptr[T any](v T) *T { return &v }

var testTime = time.Date(2026, 11, 21, 3, 42, 45, 123456000, time.UTC)

const testHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func testDraw() Draw {
	return Draw{Key: "agent/bob/money_micro", Resource: holdfast.MoneyMicro, Amount: 5, Limit: 1000, Window: 1795219200, Name: "conf:12"}
}

func fullBegin() *Begin {
	return &Begin{
		ID: "019aa1b2-0000-7000-8000-000000000001", TenantID: "acme", PartHash: testHash,
		Correlation: "3d0b1c9e-95a1-4c5b-9c0e-000000000001", Timestamp: testTime, Boundary: "mcp/github/create_issue",
		Caller: "alice", Roles: []string{"dev", "ops"}, Agent: "bob/explore", AgentKind: "coder", Session: "s1", Intent: "i1",
		Chain: "c1", Tier: "t1", Parent: "p1", Risk: "MEDIUM", ExactHash: testHash, Key: testHash, Policy: testHash,
		SchemaID: "s", Required: []string{"a:b"}, Granted: []string{"a:*"}, Confidence: ptr(0.75), Approved: ptr(true),
		Review: "r1", Reviewer: "carol", Draws: []Draw{testDraw(), {Key: "k", Resource: "x"}},
		Deadline: testTime.Add(time.Minute), Traceparent: "00-a-b-01", Weakened: []string{"hints of server x are trusted"},
		Facts: fullFacts(), Rates: []Rate{{Key: "rate/bob", Limit: 3, Window: 60_000_000, Name: "3 a minute"}, {}},
		Past:  []Mark{{Past: "0123456789ab", Group: strings.Repeat("0f", 16), Value: strings.Repeat("e1", 16), Amount: -12_500_000}, {Past: "ba9876543210", Group: MarkNone}},
		Model: &Spending{Model: "claude-x", How: "reserved", Prices: "p1", Tokens: holdfast.Tokens{Input: 10, Output: 4096}, Micro: 99}, Sub: &holdfast.SubAgent{ID: "explore"}, Owner: "bob",
	}
}

func fullEntry() *Entry {
	g := holdfast.K8
	return &Entry{
		ID: "019aa1b2-0000-7000-8000-000000000001", TenantID: "acme", BeginSeq: ptr(int64(0)), ResultHash: ptr(testHash),
		Correlation: "3d0b1c9e-95a1-4c5b-9c0e-000000000001", Timestamp: testTime, Boundary: "mcp/github/create_issue",
		Caller: "alice", Roles: []string{"dev"}, SchemaID: ptr("s"), Valid: ptr(true), Required: []string{},
		Granted: []string{"a:*"}, Authorized: ptr(true), ResourceType: ptr("money_micro"), BudgetLimit: ptr(int64(1000)),
		UsageBefore: ptr(int64(0)), Requested: ptr(int64(5)), WithinBudget: ptr(true), Key: ptr(testHash),
		Confidence: ptr(1e-7), Approved: ptr(false), Passed: ptr(false), ExitCode: 3, Applied: []string{"email"},
		ContainsPII: ptr(true), CreatedAt: testTime.Add(time.Second), Agent: "bob/a", AgentKind: "coder", Session: "s",
		Intent: "i", Chain: "c", Tier: "t", Parent: "p", Risk: "LOW", State: holdfast.Faulted, Outcome: Withheld,
		ErrorKind: holdfast.KindEvalFailure, Gate: &g, Rule: "r.yaml:3", Why: "a \"quote\", a\nline, \x01 and é\u2028",
		ExactHash: testHash, Policy: testHash, Traceparent: "00-a-b-01", ReplayOf: "other", Review: "r", Reviewer: "carol",
		Uses: []Use{{testDraw(), 7, ptr(int64(4))}, {testDraw(), 9, nil}}, DurationUS: 1234, Run: "TIMEOUT", Walls: []string{"pid", "net"}, Sandbox: "vm: novelty 0.9 is over 0.8", Unstarted: true, Weakened: []string{"x"}, Facts: fullFacts(),
		Opinions: []Opinion{{Gate: holdfast.K1, Verdict: holdfast.Allow, State: "VALID"},
			{holdfast.K8, holdfast.Deny, "FAIL", holdfast.KindEvalFailure, "p", "no"}},
		Spoken: []Spoken{{"no-keys", testHash, "critical", RuleDenied}, {"watch", testHash, "block", RuleObserved}}, More: 3,
		Model: &Spending{Model: "claude-x", Answered: "claude-x-2026", How: "complete", Tokens: holdfast.Tokens{Input: 1, CacheRead: 4000001000000, CacheWrite: 3, CacheWriteLong: 4, Output: 5}, Micro: 6, Terms: "service_tier=priority web_search*3"},
		Sub:   &holdfast.SubAgent{ID: "a", Parent: "b", Session: "c"}, Owner: "bob",
	}
}

func fullFacts() Facts {
	return Facts{Features: []FeatureFacts{{"intents", `{"state":"active"}`}, {}}, Clock: testTime.Add(-time.Hour),
		TokenID: "t-1", TokenExpires: testTime.Add(time.Hour), Level: "medium", Scope: testHash,
		Until:     testTime.Add(2 * time.Hour),
		Threshold: ptr(0.5), Governs: testHash, Predicates: []string{"output_schema_conformance"},
		Fetched: []Fetched{{Name: "peers", Seal: strings.Repeat("a", 32), Text: `["a",4000001000000]`}, {Name: "busy", Why: "it took longer than 2s"}}}
}

func fullEvent() *Event {
	return &Event{ID: "e1", TenantID: "acme", Crossing: "c1", PartHash: testHash, Timestamp: testTime, Clock: testTime.Add(-time.Hour), Name: "policy_changed",
		Who: "carol", Subject: "holdfast.yaml", Data: json.RawMessage(`{"a":[1,2.5e-3,{"b":null}],"c":"\u003c","d":{}}`)}
}

// form is one kind of record, so that tests say things of all three.
type form struct {
	name  string
	full  appender
	bare  appender
	parse func([]byte) (appender, error)
}

type appender interface {
	AppendJSON([]byte) ([]byte, error)
}

func forms() []form {
	bare := &Entry{ID: "a", TenantID: "t", Correlation: "c", Boundary: "b", Timestamp: testTime, CreatedAt: testTime, Outcome: Denied}
	return []form{
		{"begin", fullBegin(), &Begin{ID: "a", TenantID: "t", Correlation: "c", Boundary: "b", Timestamp: testTime},
			func(b []byte) (appender, error) { return ParseBegin(b) }},
		{"entry", fullEntry(), bare, func(b []byte) (appender, error) { return ParseEntry(b) }},
		{"event", fullEvent(), &Event{ID: "a", TenantID: "t", Name: "halted", Timestamp: testTime},
			func(b []byte) (appender, error) { return ParseEvent(b) }},
	}
}

func mustJSON(t testing.TB, a appender) []byte {
	t.Helper()
	b, err := a.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRecordsReadBack(t *testing.T) {
	for _, f := range forms() {
		for _, v := range []appender{f.full, f.bare} {
			b := mustJSON(t, v)
			if !json.Valid(b) || bytes.ContainsAny(b, "\n") {
				t.Fatalf("%s: not one line of JSON: %s", f.name, b)
			}
			back, err := f.parse(b)
			if err != nil {
				t.Fatalf("%s: %v\n%s", f.name, err, b)
			}
			if again := mustJSON(t, back); !bytes.Equal(again, b) {
				t.Errorf("%s prints back differently:\n%s\n%s", f.name, b, again)
			}
			if v == f.full && !reflect.DeepEqual(back, v) {
				t.Errorf("%s: read back\n%+v, was\n%+v", f.name, back, v)
			}
		}
	}
}

// Every field of the Go types is in the record: a field that the format
// forgot would be lost without a word.
func TestRecordsHoldEveryField(t *testing.T) {
	for _, f := range forms() {
		v := reflect.ValueOf(f.full).Elem()
		full := mustJSON(t, f.full)
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "Result" {
				continue // excludes ResultHash, tested below
			}
			if v.Field(i).IsZero() {
				t.Errorf("%s: the test leaves %s empty", f.name, v.Type().Field(i).Name)
			}
			old := reflect.New(v.Field(i).Type()).Elem()
			old.Set(v.Field(i))
			v.Field(i).SetZero()
			if b, err := f.full.AppendJSON(nil); err == nil && bytes.Equal(b, full) {
				t.Errorf("%s: %s is not in the record", f.name, v.Type().Field(i).Name)
			}
			v.Field(i).Set(old)
		}
	}
}

// The document's columns, by the document's names (D14b), are there in every
// entry, null where they were not asked.
func TestK6_audit_wal_columns(t *testing.T) {
	columns := strings.Fields(`id tenant_id correlation_id timestamp boundary_crossing caller_user_id caller_roles
		k1_schema_id k1_valid k2_required_permissions k2_granted_permissions k2_authorized k3_resource_type
		k3_budget_limit k3_usage_before k3_requested k3_within_budget k5_idempotency_key k7_confidence_score
		k7_human_approved k8_eval_passed operation_result exit_code redaction_rules_applied
		contains_pii_before_redaction created_at partition_date`)
	for _, v := range []appender{forms()[1].full, forms()[1].bare} {
		var m map[string]any
		if err := json.Unmarshal(mustJSON(t, v), &m); err != nil {
			t.Fatal(err)
		}
		for _, c := range columns {
			if _, ok := m[c]; !ok {
				t.Errorf("column %s is missing", c)
			}
		}
		if m["partition_date"] != "2026-11-21" {
			t.Errorf("partition_date %v", m["partition_date"])
		}
	}
	var m map[string]any
	if err := json.Unmarshal(mustJSON(t, forms()[1].bare), &m); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"k1_valid", "k2_authorized", "k3_within_budget", "k7_human_approved", "k8_eval_passed", "operation_result"} {
		if m[c] != nil {
			t.Errorf("%s is %v, not null", c, m[c])
		}
	}
}

func TestParseIsStrict(t *testing.T) {
	for _, f := range forms() {
		b := string(mustJSON(t, f.full))
		first := b[strings.Index(b, `,"id":`)+1 : strings.Index(b, `,"tenant_id"`)]
		for name, bad := range map[string]string{
			"empty":          "",
			"truncated":      b[:len(b)-1],
			"half":           b[:len(b)/2],
			"trailing":       b + "\n",
			"twice":          b + b,
			"space":          strings.Replace(b, ",", ", ", 1),
			"unknown field":  strings.Replace(b, first, first+`,"extra":1`, 1),
			"doubled field":  strings.Replace(b, first, first+","+first, 1),
			"missing field":  strings.Replace(b, first+",", "", 1),
			"version":        strings.Replace(b, `"v":1`, `"v":2`, 1),
			"kind":           strings.Replace(b, `"kind":"`, `"kind":"x`, 1),
			"wrong type":     strings.Replace(b, `"tenant_id":"acme"`, `"tenant_id":7`, 1),
			"null id":        strings.Replace(b, `"tenant_id":"acme"`, `"tenant_id":null`, 1),
			"empty id":       strings.Replace(b, `"tenant_id":"acme"`, `"tenant_id":""`, 1),
			"newline in id":  strings.Replace(b, `"tenant_id":"acme"`, `"tenant_id":"a\nb"`, 1),
			"other escape":   strings.Replace(b, `"tenant_id":"acme"`, `"tenant_id":"\u0061cme"`, 1),
			"slash escape":   strings.Replace(b, `"tenant_id":"acme"`, `"tenant_id":"ac\/me"`, 1),
			"invalid utf-8":  strings.Replace(b, `"tenant_id":"acme"`, "\"tenant_id\":\"ac\xffme\"", 1),
			"NUL":            strings.Replace(b, `"tenant_id":"acme"`, "\"tenant_id\":\"ac\x00me\"", 1),
			"other time":     strings.Replace(b, "45.123456Z", "45.1234560Z", 1),
			"time zone":      strings.Replace(b, "45.123456Z", "45.123456+00:00", 1),
			"no such day":    strings.Replace(b, "2026-11-21T", "2026-11-31T", 1),
			"enormous":       strings.Replace(b, "acme", strings.Repeat("a", MaxRecord), 1),
			"not lower hex":  strings.Replace(b, testHash, strings.ToUpper(testHash), 1),
			"hash too short": strings.Replace(b, testHash, testHash[1:], 1),
		} {
			if bad == b {
				t.Fatalf("%s, %s: the case changes nothing", f.name, name)
			}
			_, err := f.parse([]byte(bad))
			if holdfast.KindOf(err) != holdfast.KindWALFormat {
				t.Errorf("%s, %s: %v", f.name, name, err)
			}
		}
		for i := range b {
			if _, err := f.parse([]byte(b[:i])); err == nil {
				t.Fatalf("%s: accepts its first %d bytes", f.name, i)
			}
		}
	}
}

func TestParseIsStrictAboutNumbersAndEmptyFields(t *testing.T) {
	entry := string(mustJSON(t, fullEntry()))
	begin := string(mustJSON(t, fullBegin()))
	event := string(mustJSON(t, fullEvent()))
	for _, c := range []struct{ in, old, new string }{
		{entry, `"exit_code":3`, `"exit_code":03`},
		{entry, `"exit_code":3`, `"exit_code":-0`},
		{entry, `"exit_code":3`, `"exit_code":+3`},
		{entry, `"exit_code":3`, `"exit_code":3.0`},
		{entry, `"exit_code":3`, `"exit_code":9223372036854775808`},
		{entry, `"exit_code":3`, `"exit_code":-9223372036854775809`},
		{entry, `"exit_code":3`, `"exit_code":`},
		{entry, `score":1e-7`, `score":1E-7`},
		{entry, `score":1e-7`, `score":0.0000001`},
		{entry, `score":1e-7`, `score":1e-07`},
		{entry, `score":1e-7`, `score":-0`},
		{entry, `score":1e-7`, `score":1e999`},
		{entry, `score":1e-7`, `score":NaN`},
		{entry, `"agent":"bob/a"`, `"agent":""`},
		{entry, `"owner":"bob"`, `"owner":""`},
		{entry, `"owner":"bob"`, `"owner":"alice"`},
		{entry, `"owner":"bob"`, `"owner":"bob/a"`},
		{begin, `"agent":"bob/explore"`, `"agent":"bob"`},
		{begin, `"agent":"bob/explore"`, `"agent":"bob/"`},
		{entry, `"weakened":["x"]`, `"weakened":[]`},
		{entry, `"outcome":"withheld"`, `"outcome":"fine"`},
		{entry, `"state":"FAULTED"`, `"state":"HALTED"`},
		{entry, `"gate":"K8","rule"`, `"gate":"K9","rule"`},
		{entry, `"verdict":"allow"`, `"verdict":"perhaps"`},
		{entry, `"partition_date":"2026-11-21"`, `"partition_date":"2026-11-22"`},
		{entry, `"operation_result":null`, `"operation_result":"both"`},
		{entry, `"begin_seq":0`, `"begin_seq":-1`},
		{begin, `"draws":["`, `"draws":[],"x":["`},
		{begin, `"draws":["`, `"draws":[,"`},
		{begin, `"draws":["`, `"draws":["x","`},
		{begin, `"draws":["agent/bob/money_micro",`, `"draws":[`},
		{begin, `,1795219200,`, `,"1795219200",`},
		{entry, `7,4,`, `7,04,`},
		{entry, `9,null]`, `9]`},
		{entry, `9,null]`, `9,null,]`},
		{event, `{"a":[1`, `{"a":[1 `},
		{event, `{"a":[1`, `{"a":[01`},
		{event, `{"a":[1`, `{"a":1,"\u0061":[1`},
		{event, `"data":{`, `"data":[{`},
		{event, `"d":{}`, `"d":{},"d":1`},
		{event, `"d":{}`, `"d":` + strings.Repeat(`[`, 30) + strings.Repeat(`]`, 30)},
		{event, `"d":{}`, `"d":tru`},
		{event, `"d":{}`, `"d":"` + "\xff" + `"`},
		{event, `"d":{}`, `"d":{},`},
	} {
		bad := []byte(strings.Replace(c.in, c.old, c.new, 1))
		if string(bad) == c.in {
			t.Fatalf("%s changes nothing", c.old)
		}
		var err error
		switch c.in {
		case entry:
			_, err = ParseEntry(bad)
		case begin:
			_, err = ParseBegin(bad)
		default:
			_, err = ParseEvent(bad)
		}
		if err == nil {
			t.Errorf("accepted %s", c.new)
		}
	}
}

// What cannot be written is refused when it is written, and leaves the
// buffer alone.
func TestK6_FP5_what_cannot_be_serialised(t *testing.T) {
	cases := map[string]func(*Entry){
		"NaN":                 func(e *Entry) { e.Confidence = ptr(math.NaN()) },
		"Inf":                 func(e *Entry) { e.Confidence = ptr(math.Inf(-1)) },
		"no tenant":           func(e *Entry) { e.TenantID = "" },
		"no time":             func(e *Entry) { e.Timestamp = time.Time{} },
		"year 10000":          func(e *Entry) { e.CreatedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"no outcome":          func(e *Entry) { e.Outcome = "" },
		"unknown state":       func(e *Entry) { e.State = 9 },
		"unknown gate":        func(e *Entry) { e.Gate = ptr(holdfast.Gate(12)) },
		"two results":         func(e *Entry) { e.Result = ptr("x") },
		"bad hash":            func(e *Entry) { e.ResultHash = ptr("x") },
		"key that is no hash": func(e *Entry) { e.Key = ptr("alice@example.com") },
		"exact hash":          func(e *Entry) { e.ExactHash = "x" },
		"newline tenant":      func(e *Entry) { e.TenantID = "a\nb" },
		"long tenant":         func(e *Entry) { e.TenantID = strings.Repeat("a", maxID+1) },
		"huge":                func(e *Entry) { e.Why = strings.Repeat("a", MaxRecord) },
	}
	for name, spoil := range cases {
		e := fullEntry()
		spoil(e)
		b, err := e.AppendJSON([]byte("before"))
		var he *holdfast.Error
		if !errors.As(err, &he) || he.Kind != holdfast.KindWALFormat || he.Gate != holdfast.K6 {
			t.Errorf("%s: %v", name, err)
		}
		if string(b) != "before" {
			t.Errorf("%s: left %q behind", name, b)
		}
	}
	if _, err := (&Event{ID: "a", TenantID: "t", Name: "n", Timestamp: testTime, Data: json.RawMessage(`{"a":1}{}`)}).AppendJSON(nil); err == nil {
		t.Error("data with a tail was written")
	}
}

func TestTextThatIsNotUTF8IsWrittenAsReplacement(t *testing.T) {
	e := fullEntry()
	e.Why = "a\xffb\xc3"
	back, err := ParseEntry(mustJSON(t, e))
	if err != nil || back.Why != "a\ufffdb\ufffd" {
		t.Errorf("%q, %v", back.Why, err)
	}
}

// K6_AC6: the entry carries the correlation of its crossing, and everything
// else that its begin knows, so that recovery can write it.
func TestK6_AC6_begin_becomes_entry(t *testing.T) {
	b := fullBegin()
	e := b.Entry(41, testTime)
	if *e.BeginSeq != 41 || e.Outcome != Unknown || e.State != holdfast.Faulted || len(e.Uses) != 2 || e.ExitCode == 0 {
		t.Errorf("%+v", e)
	}
	if e.Correlation != b.Correlation || e.ID != b.ID || e.Uses[0].Draw != b.Draws[0] || *e.Key != b.Key {
		t.Errorf("the entry lost something: %+v", e)
	}
	if _, err := ParseEntry(mustJSON(t, e)); err != nil {
		t.Error(err)
	}
}

func TestPart(t *testing.T) {
	p := NewPart([SaltSize]byte{1}, []byte("content"))
	if c, err := PartContent(p); err != nil || string(c) != "content" {
		t.Errorf("%q, %v", c, err)
	}
	if PartHash(p) == PartHash(NewPart([SaltSize]byte{2}, []byte("content"))) || !isHash(PartHash(p)) {
		t.Error("the salt does not count")
	}
	if _, err := PartContent(p[:15]); err == nil {
		t.Error("a part without its whole salt was read")
	}
}

func BenchmarkEntryAppend(b *testing.B) {
	e := fullEntry()
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = e.AppendJSON(buf[:0])
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkEntryParse(b *testing.B) {
	rec := mustJSON(b, fullEntry())
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEntry(rec); err != nil {
			b.Fatal(err)
		}
	}
}

// Whose crossing it was to those who judge stands in owner; records without it, such
// as older ones, are of the agent, whatever its host said.
func TestWho(t *testing.T) {
	for _, c := range []struct{ agent, owner, want, sub string }{
		{"bob", "", "bob", ""}, {"bob/explore", "", "bob/explore", ""}, {"bob/explore", "bob", "bob", "explore"}, {"a/b/c", "a/b", "a/b", "c"}, {"", "", "", ""},
	} {
		b, e := Begin{Agent: c.agent, Owner: c.owner}, Entry{Agent: c.agent, Owner: c.owner}
		if agent, sub := b.Who(); agent != c.want || sub != c.sub {
			t.Errorf("%+v: %q, %q", c, agent, sub)
		}
		if agent, sub := e.Who(); agent != c.want || sub != c.sub {
			t.Errorf("%+v: %q, %q", c, agent, sub)
		}
	}
}
