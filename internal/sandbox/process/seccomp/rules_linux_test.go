//go:build linux

package seccomp

import (
	"math/rand/v2"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestRulesSayTheProfile: for every language, of a call with arguments taken from
// around every condition and at random, exactly one rule speaks, and it says what
// the profile says of a process that is number 2.
func TestRulesSayTheProfile(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for name, p := range map[string]*Profile{"python": PythonProfile(), "node": NodeProfile(), "static": StaticProfile()} {
		byCall := map[string][]sandbox.Rule{}
		for _, r := range p.Rules() {
			byCall[r.Call] = append(byCall[r.Call], r)
		}
		if len(byCall) < 350 {
			t.Errorf("%s: only %d calls have a rule", name, len(byCall))
		}
		for call, rules := range byCall {
			for range 300 {
				args := arguments(random, rules)
				var said []sandbox.RuleAction
				for _, r := range rules {
					if speaks(r, args) {
						said = append(said, r.Action)
					}
				}
				there := args
				for _, n := range byNumber {
					if n == call {
						there[0] = swapped(args[0])
					}
				}
				want := sandbox.RuleAsk
				switch {
				case p.Feigns(call, there):
					want = sandbox.RuleFeign
				case p.Passes(call, there):
					want = sandbox.RuleAllow
				}
				if len(said) != 1 || said[0] != want {
					t.Fatalf("%s: %s%x: the rules say %v, the profile %v", name, call, args, said, want)
				}
			}
		}
	}
}

// arguments lie near what a rule names, with anything above 32 bits.
func arguments(random *rand.Rand, rules []sandbox.Rule) (args [6]uint64) {
	for i := range args {
		args[i] = uint64(random.IntN(4)) | uint64(random.Uint32()&3)<<33
	}
	r := rules[random.IntN(len(rules))]
	for _, w := range r.When {
		args[w.Arg] = w.Value | random.Uint64()&^w.Mask
		if random.IntN(3) == 0 {
			args[w.Arg] ^= 1 << random.IntN(32)
		}
	}
	return args
}

func speaks(r sandbox.Rule, args [6]uint64) bool {
	for _, w := range r.When {
		if args[w.Arg]&w.Mask != w.Value {
			return false
		}
	}
	return true
}

// TestRulesAreFew: what a runtime has to build of them stays small.
func TestRulesAreFew(t *testing.T) {
	if n := len(PythonProfile().Rules()); n > 1500 {
		t.Errorf("%d rules", n)
	} else {
		t.Log(n, "rules")
	}
}
