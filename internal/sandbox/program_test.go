package sandbox

import (
	"reflect"
	"testing"
)

// TestFewer: a call of many rules is asked about once, others keep theirs.
func TestFewer(t *testing.T) {
	two := Rule{Call: "b", Action: RuleAllow, When: []Bits{{Arg: 1, Mask: 1}}}
	rules := []Rule{{Call: "a", Action: RuleAllow}, two, {Call: "b"}, {Call: "c", Action: RuleFeign}, {Call: "c"}, {Call: "c", Action: RuleAllow}}
	got := Fewer(rules, 2)
	if want := []Rule{rules[0], two, {Call: "b"}, {Call: "c"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(Fewer(nil, 0)) != 0 || len(Fewer(rules, 9)) != len(rules) {
		t.Error("rules come or go")
	}
}
