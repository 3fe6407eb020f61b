package constitution

import (
	"slices"
	"testing"
)

// What a rule reads of a payload is told whole: a member that is masked must not
// pass for one that was read.
func TestNeeds(t *testing.T) {
	for when, want := range map[string]Needs{
		`agent == "a"`:                       {},
		`args.to == "x"`:                     {Members: []string{"to"}},
		`has(args.to) && args["amount"] > 1`: {Members: []string{"amount", "to"}},
		`args.l.exists(x, x == args.to)`:     {Members: []string{"l", "to"}},
		`args.exists(k, k == "to")`:          {All: true},
		`args[agent] == "x"`:                 {All: true},
		`args == {"to": "x"}`:                {All: true},
		`payload_size > 10`:                  {All: true},
		`past("a/b", "1h").count() > 1`:      {},
		`past("a/b", "1h").same(args.to).happened() && args.x == 1`: {Members: []string{"to", "x"}},
	} {
		s, err := Load([]Source{{"r.yaml", []byte("rules:\n  - {id: r, on: request, boundary: a/b, message: m, when: '" + when + "'}\n")}})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		got := s.Needs("r")
		if got.All != want.All || !got.All && !slices.Equal(got.Members, want.Members) {
			t.Errorf("%s reads %+v, want %+v", when, got, want)
		}
	}
	if s, err := Load(nil); err != nil || !s.Needs("nobody").All {
		t.Error("a rule that is not there reads nothing")
	}
	n := Needs{Members: []string{"a"}}
	if n.Any([]string{"b"}, false) || !n.Any([]string{"b", "a"}, false) || !n.Any(nil, true) || (Needs{}).Any(nil, true) || !(Needs{All: true}).Any(nil, false) {
		t.Error("Any")
	}
}
