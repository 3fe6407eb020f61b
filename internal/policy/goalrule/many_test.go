package goalrule

import (
	"strings"
	"testing"
)

// A verdict stays small however many capabilities are listed, loses no rule and
// says how many there are.
func TestAVerdictNamesOnlySoManyAlike(t *testing.T) {
	const n = 255
	caps := "[" + strings.Repeat(`"other:a",`, n) + `"network:external"]`
	v := verdicts(t, filter(t, nil), aTask(caps), Caller{}, nil)[0]
	if v.Allowed || len(v.Violations) != maxAlike+1 || v.Worst() != SeverityBlock {
		t.Fatalf("%d violations, allowed %v, worst %q", len(v.Violations), v.Allowed, v.Worst())
	}
	if said := v.Violations[0].Message; !strings.Contains(said, "(and 224 more like the 32 that are named)") || v.Violations[0].Rule != "SR-004" {
		t.Errorf("%+v", v.Violations[0])
	}
	last := v.Violations[maxAlike]
	if last.Rule != "SR-003" || strings.Contains(last.Message, "more") {
		t.Errorf("%+v", last)
	}
}
