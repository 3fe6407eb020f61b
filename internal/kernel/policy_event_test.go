package kernel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

func TestRuleText_D44_every_rule_that_was_in_force_can_be_read_by_its_version(t *testing.T) {
	const one = "\nrules:\n  - {id: a, on: request, boundary: 'mcp/*', when: args.amount > 1, message: old}"
	const two = "\nrules:\n  - {id: a, on: request, boundary: 'mcp/*', when: args.amount > 2, message: new, hint: less}"
	w := newWorld(t, "", policy(func(p *kernel.Policy) { p.Rules = set(t, one) }))
	if err := w.k.Started("owner"); err != nil {
		t.Fatal(err)
	}
	other := *w.policy
	other.Version, other.Rules = strings.Repeat("2", 64), set(t, two)
	if err := w.k.SetPolicy(&other, "owner"); err != nil {
		t.Fatal(err)
	}
	for want, rules := range map[string]string{"old": one, "new": two} {
		text := set(t, rules).Texts()[0]
		got, err := kernel.RuleText(t.Context(), w.store, text.Version())
		if err != nil || got != text || got.Message != want {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
	version := set(t, one).Texts()[0].Version()
	w.putRow([]byte(`{"id":"a","on":"request","boundary":"mcp/*","when":"false","message":"old"}`), "rule_text",
		version)
	for version, kind := range map[string]holdfast.Kind{version: holdfast.KindWALFormat, strings.Repeat("0", 64): holdfast.KindNotFound} {
		text, err := kernel.RuleText(t.Context(), w.store, version)
		if e := (*holdfast.Error)(nil); !errors.As(err, &e) || e.Kind != kind || text != (constitution.Text{}) {
			t.Errorf("%.8s: %+v, %v", version, text, err)
		}
	}
}
