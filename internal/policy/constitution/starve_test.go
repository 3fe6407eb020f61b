package constitution

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// TestNoRuleIsStarved: rules that stop nothing and spend all that rules may cost
// together do not let pass what a rule after them refuses; it denies for want of
// cost, whatever it would have said.
func TestNoRuleIsStarved(t *testing.T) {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 12 {
		fmt.Fprintf(&b, "  - {id: w%d, on: request, mode: observe, message: m, when: 'args.s != args.s'}\n", i)
	}
	b.WriteString("  - {id: last, on: request, message: never, when: args.evil == true}\n")
	s := load(t, b.String())
	f := someFacts(t)
	f.Payload = map[string]any{"evil": true, "s": almostRuleCost}
	found := s.Judge(t.Context(), OnRequest, f)
	last := found[len(found)-1]
	if last.Rule != "last" || last.Verdict != holdfast.Deny || !errors.Is(last.Err, failure.ErrCost) {
		t.Fatalf("%+v", last)
	}
	for _, w := range found[:len(found)-1] {
		if !w.Observed || w.Verdict != holdfast.Allow {
			t.Errorf("%+v", w)
		}
	}
}
