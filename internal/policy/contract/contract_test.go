package contract_test

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/outputcheck"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func newSet(t *testing.T, weakened []string, cs ...holdfast.Contract) (*contract.Set, error) {
	t.Helper()
	rules, err := constitution.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	return contract.NewSet(contract.Listing{Contracts: cs, Rules: rules, Weakened: weakened})
}

func noSecret(string) bool { return false }

func TestSetPrefersExactNamesAndLongPatterns(t *testing.T) {
	s, err := newSet(t, nil,
		holdfast.Contract{Boundary: "mcp/*", Operation: "any"},
		holdfast.Contract{Boundary: "mcp/files/*", Operation: "files"},
		holdfast.Contract{Boundary: "mcp/files/read", Operation: "read"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"mcp/files/read": "read", "mcp/files/write": "files", "mcp/web/get": "any", "other": "",
		"mcp/files/READ":  "", // differs only in case from a listed name
		"mcp/files//read": "", "mcp/../x": "", "mcp/a b": "", "mcp/" + strings.Repeat("a", 600): "",
	} {
		got := ""
		if c := s.Under(name, noSecret); c != nil {
			if got = c.Operation; c.Boundary != name {
				t.Errorf("%q has the name %q", name, c.Boundary)
			}
		}
		if got != want {
			t.Errorf("%q is crossed by %q, want %q", name, got, want)
		}
		if _, listed := s.Listed(name); listed != (want != "") {
			t.Errorf("%q listed: %v", name, listed)
		}
	}
	if s.Under("mcp/web/get", func(string) bool { return true }) != nil {
		t.Error("a pattern covers a name that holds a secret")
	}
}

func TestNewSetRefusesContractsThatDoNotCompile(t *testing.T) {
	nan := -1.0
	for _, c := range []holdfast.Contract{
		{Boundary: "a", Schema: json.RawMessage(`{"type":"wat"}`)},
		{Boundary: "a", OutputSchema: json.RawMessage(`{"type":"wat"}`)},
		{Boundary: "a", Confidence: "1 +"},
		{Boundary: "a", Predicates: []string{"no_such"}},
		{Boundary: "a", Threshold: &nan},
		{Boundary: "a", Timeout: -1},
		{Boundary: "a", PricedBy: &holdfast.PricedBy{Model: "1 +"}},
	} {
		c.Source = "here:7"
		if _, err := newSet(t, nil, c); err == nil || !strings.Contains(err.Error(), "here:7: contract a") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	twice := holdfast.Contract{Boundary: "a"}
	if _, err := newSet(t, nil, twice, twice); err == nil {
		t.Error("one boundary may be listed twice")
	}
}

func TestSetSharesWeakenings(t *testing.T) {
	s, err := newSet(t, []string{"general", "own"}, holdfast.Contract{Boundary: "a", Weakened: "own"},
		holdfast.Contract{Boundary: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{"a": {"general", "own"}, "b": {"general"}, "c": {"general"}} {
		if got := s.LoosenedFor(s.Find(name)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestRiskForTakesTheWorseOfContractAndPattern(t *testing.T) {
	high, low := &review.Pattern{Risk: holdfast.High}, &review.Pattern{Risk: holdfast.Low}
	c := contract.Contract{Contract: holdfast.Contract{Risk: holdfast.Medium, ReadRisk: holdfast.Low}}
	lenient := c
	lenient.RiskFrom = "patterns"
	drifted := lenient
	drifted.Drifted = true
	for i, x := range []struct {
		c             contract.Contract
		class         *review.Pattern
		reads, unread bool
		want          holdfast.Risk
	}{
		{c, nil, false, false, holdfast.Medium},
		{c, nil, true, false, holdfast.Low},
		{c, nil, false, true, holdfast.High},
		{c, high, false, false, holdfast.High},
		{c, low, false, false, holdfast.Medium},
		{lenient, low, false, false, holdfast.Low},
		{lenient, low, false, true, holdfast.High},
		{drifted, low, false, false, holdfast.Medium},
	} {
		if got := x.c.RiskFor(x.class, x.reads, x.unread); got != x.want {
			t.Errorf("case %d: %s, want %s", i, got, x.want)
		}
	}
}

func TestOutputCheckWithholdsWhatViolatesTheSchema(t *testing.T) {
	rules, err := constitution.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := contract.Compile(holdfast.Contract{Boundary: "a", OutputSchema: json.RawMessage(`{"type":"integer"}`)}, rules)
	o := contract.OutputCheck{Contract: c, Rules: rules, Time: time.Second, Log: slog.New(slog.DiscardHandler),
		Predicates: func() outputcheck.Context { return outputcheck.Context{} }}
	for body, kind := range map[string]holdfast.Kind{"1": "", `"a"`: holdfast.KindEvalFailure, "{": holdfast.KindType} {
		r := o.Run(t.Context(), holdfast.Output{Body: []byte(body)})
		if !r.Asked || (kind == "") != (r.Err == nil) || kind != "" && holdfast.KindOf(r.Err) != kind {
			t.Errorf("%s: %+v, want %q", body, r, kind)
		}
	}
	if r := o.Run(t.Context(), holdfast.Output{Body: []byte(`"a"`), ExitCode: 1}); r.Err != nil {
		t.Errorf("the output of a failed program is compared with the schema: %v", r.Err)
	}
}

// TestHashCoversRedaction: a remembered approval does not outlive a change of what a tool may get, and those from
// before there was redact stay bound.
func TestHashCoversRedaction(t *testing.T) {
	rules, err := constitution.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	hash := func(r *holdfast.Redaction) string {
		return contract.Compile(holdfast.Contract{Boundary: "mcp/a/b", Risk: holdfast.Low, Redact: r}, rules).Hash
	}
	all := holdfast.Redaction{Request: "refuse", Response: "mask", Personal: "mask"}
	less := all
	less.Personal = "pass"
	const before = "d2db799ee8de0fa44eb77b6663812300f04f3fd66c1f56edfcedc74da2e9d29b"
	if none := hash(nil); none != before || hash(&all) == none || hash(&all) == hash(&less) {
		t.Errorf("hashes: %s, %s, %s", none, hash(&all), hash(&less))
	}
}
