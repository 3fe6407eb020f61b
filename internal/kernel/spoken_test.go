package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

const speakingRules = `
rules:
  - {id: first, on: request, boundary: test/low, when: "args.s == 'bad'", message: first says no}
  - {id: grave, on: request, boundary: test/low, when: "args.s == 'bad'", severity: critical, message: grave says no}
  - {id: warns, on: request, boundary: test/low, when: "args.s != ''", severity: warn, message: careful}
  - {id: watch, on: request, boundary: test/low, when: "args.s != ''", mode: observe, message: it would be refused}
  - {id: blind, on: request, boundary: test/low, when: "args.none == 1", mode: observe, message: it reads what is missing}
  - {id: after, on: output, boundary: test/low, when: "has(output.odd)", severity: info, message: odd}
`

// spokenIn is what an entry says of rules: "id how severity".
func spokenIn(t *testing.T, w *world, e *ledger.Entry) []string {
	t.Helper()
	rules, ok := w.k.Policy().Rules.(*constitution.Set)
	if !ok {
		t.Fatal("no set")
	}
	versions := map[string]string{}
	for _, r := range rules.Rules() {
		versions[r.ID] = r.Version
	}
	out := []string{}
	for _, s := range e.Spoken {
		if s.Version == "" || s.Version != versions[s.Rule] {
			t.Errorf("%s has the version %q, want %q", s.Rule, s.Version, versions[s.Rule])
		}
		out = append(out, fmt.Sprintf("%s %s %s", s.Rule, s.How, s.Severity))
	}
	return out
}

// Every rule that spoke is in the entry, by its id and version: of what was done
// too, where rules only note or observe; the gravest leads.
func TestEveryRuleThatSpokeIsRecorded(t *testing.T) {
	w := newWorld(t, speakingRules)
	if _, err := w.k.Cross(t.Context(), w.req("test/low", `{"s":"fine"}`), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{"odd":1}`)}, nil
	}); err != nil {
		t.Fatal(err)
	}
	e := w.entries(holdfast.Local)[0]
	if got := fmt.Sprint(spokenIn(t, w, e)); got != "[watch observed block blind observed block warns noted warn after noted info]" {
		t.Errorf("done: %s", got)
	}
	no := w.refused(w.req("test/low", `{"s":"bad"}`), holdfast.K8, holdfast.KindRule)
	if !strings.HasPrefix(no.Rule, "grave ") || !strings.HasPrefix(no.Why, "grave says no (and 1 more") {
		t.Errorf("%s: %s does not lead", no.Rule, no.Why)
	}
	e = w.entries(holdfast.Local)[1]
	if got := fmt.Sprint(spokenIn(t, w, e)); got != "[grave denied critical first denied block watch observed block blind observed block warns noted warn]" {
		t.Errorf("refused: %s", got)
	}
	w.passes(w.req("test/medium", `{}`))
	if e = w.entries(holdfast.Local)[2]; len(e.Spoken) != 0 || e.More != 0 {
		t.Errorf("nobody spoke: %+v", e.Spoken)
	}
}

// A thousand rules that speak leave an entry that has room.
func TestRulesThatSpokeAreBounded(t *testing.T) {
	const rules = ledger.MaxSpoken + 50
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range rules - 1 {
		fmt.Fprintf(&text, "  - {id: %s-%d, on: request, boundary: test/low, when: \"true\", severity: info, message: m}\n", strings.Repeat("x", 120), i)
	}
	text.WriteString("  - {id: last, on: request, boundary: test/low, when: \"true\", message: m}\n")
	w := newWorld(t, text.String())
	w.refused(w.req("test/low", `{}`), holdfast.K8, holdfast.KindRule)
	e := w.entries(holdfast.Local)[0]
	if len(e.Spoken) != ledger.MaxSpoken || e.More != rules-ledger.MaxSpoken || e.Spoken[0].Rule != "last" {
		t.Errorf("%d rules and %d more, first %s", len(e.Spoken), e.More, e.Spoken[0].Rule)
	}
}
