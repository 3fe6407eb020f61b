package seccomp

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// bits is a set of 32-bit words: those that, masked, are value.
type bits struct{ mask, value uint32 }

// less returns what of a is not in b, as sets that do not meet.
func (a bits) less(b bits) []bits {
	if (a.value^b.value)&a.mask&b.mask != 0 {
		return []bits{a}
	}
	var rest []bits
	for bit := uint32(1 << 31); bit != 0; bit >>= 1 {
		if b.mask&bit == 0 || a.mask&bit != 0 {
			continue
		}
		rest = append(rest, bits{a.mask | bit, a.value | ^b.value&bit})
		a = bits{a.mask | bit, a.value | b.value&bit}
	}
	return rest
}

// others returns the words that are in none of the sets, as few sets that do not
// meet.
func others(sets []bits) []bits {
	rest := []bits{{}}
	for _, s := range sets {
		var next []bits
		for _, r := range rest {
			next = append(next, r.less(s)...)
		}
		rest = next
	}
	return rest
}

// Rules says the profile in words that a filter made elsewhere can be built of:
// every call that has a name here, and no two rules that meet, so that their
// order means nothing.
func (p *Profile) Rules() []sandbox.Rule {
	byName := map[string]allowed{}
	for _, a := range p.allow {
		byName[a.name] = a
	}
	names := map[string]bool{}
	for name := range tables()[0].SyscallNames {
		names[name] = true
	}
	for name := range newerCalls {
		names[name] = true
	}
	var list []sandbox.Rule
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, ok := byName[name]
		switch {
		case !ok || asked(name):
			list = append(list, sandbox.Rule{Call: name})
		case a.feigned:
			list = append(list, sandbox.Rule{Call: name, Action: sandbox.RuleFeign})
		default:
			list = append(list, a.rules()...)
		}
	}
	return unasked(list)
}

// rules of one call: it passes where for each argument that has conditions one
// holds, it is feigned where one of feign holds, and is asked about otherwise.
func (a allowed) rules() []sandbox.Rule {
	if len(a.when) == 0 && len(a.feign) == 0 {
		return []sandbox.Rule{{Call: a.name, Action: sandbox.RuleAllow}}
	}
	may, feigns := map[int][]bits{}, map[int][]bits{}
	for _, c := range a.when {
		may[c.arg] = append(may[c.arg], c.bits(a.name))
	}
	var list []sandbox.Rule
	for _, c := range a.feign {
		feigns[c.arg] = append(feigns[c.arg], c.bits(a.name))
		list = append(list, sandbox.Rule{Call: a.name, Action: sandbox.RuleFeign, When: []sandbox.Bits{c.bits(a.name).at(c.arg)}})
	}
	passes := [][]sandbox.Bits{nil}
	for _, arg := range slices.Sorted(maps.Keys(may)) {
		var longer [][]sandbox.Bits
		for _, s := range others(others(may[arg])) {
			for _, when := range passes {
				longer = append(longer, append(slices.Clone(when), s.at(arg)))
			}
		}
		// What the arguments before have let by, this one may still stop.
		for _, s := range others(slices.Concat(may[arg], feigns[arg])) {
			for _, when := range passes {
				list = append(list, sandbox.Rule{Call: a.name, When: append(slices.Clone(when), s.at(arg))})
			}
		}
		passes = longer
	}
	for _, when := range passes {
		list = append(list, sandbox.Rule{Call: a.name, Action: sandbox.RuleAllow, When: when})
	}
	return list
}

func (s bits) at(arg int) sandbox.Bits {
	return sandbox.Bits{Arg: uint(arg), Mask: uint64(s.mask), Value: uint64(s.value & s.mask)}
}

// bits is the condition of a process that is number 1.
func (c condition) bits(call string) bits {
	mask := c.mask
	if mask == 0 {
		mask = ^uint32(0)
	}
	if c.arg == 0 && c.mask == 0 && slices.Contains(byNumber, call) {
		return bits{mask, uint32(swapped(uint64(c.value)))}
	}
	return bits{mask, c.value}
}

// byNumber are the calls whose first argument is the number of a process and
// stands in conditions of profiles.
var byNumber = []string{"kill", "tkill", "tgkill", "prlimit64"}

// SwapSelf returns the arguments of a call of the first process of a namespace as those
// of a workload.
func (c Call) SwapSelf() [6]uint64 {
	if slices.Contains(byNumber, c.Name) {
		c.args[0] = swapped(c.args[0])
	}
	return c.args
}

// swapped gives the numbers of a workload here and of one that is the first of
// its namespace each for the other.
func swapped(pid uint64) uint64 {
	switch uint32(pid) {
	case 1:
		return WorkloadPID
	case WorkloadPID:
		return 1
	}
	return pid
}
