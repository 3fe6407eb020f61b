package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// unasked says of each rule that asks what a filter does that nobody answers, as
// that of an engine which hands no listener out. What Holdfast refuses is refused
// with the same error, whoever asks; what it would answer from its own knowledge
// there is no such call; what would end the program ends it.
//
// Some calls pass that do not pass here. The runtime itself executes the program
// behind the filter, which cannot tell the first execve from a second: a program
// may become another one of its root, in the same walls; and before that it asks
// on what file system it is. A thread is joined by waiting on a futex that is not
// private, which nobody is there to wait for.
func unasked(rules []sandbox.Rule) []sandbox.Rule {
	for _, a := range []struct {
		calls []string
		arg   int
		sets  []bits
		as    sandbox.Unasked
	}{
		{[]string{"futex"}, 1, []bits{{futexPrivate | futexCommand, futexWait}, {futexPrivate | futexCommand, futexWaitFor}}, sandbox.UnaskedAllow},
		// What makes an escape of a call that is refused otherwise; see hostile.
		{[]string{"socket", "socketpair"}, 0, oneWord(hostileFamilies...), 0},
		{[]string{"ioctl"}, 1, oneWord(terminalTricks...), 0},
		{[]string{"prctl"}, 0, oneWord(unix.PR_SET_SECCOMP), 0},
		{[]string{"clone"}, 0, anyBit(newNamespaces), 0},
	} {
		var list []sandbox.Rule
		for _, r := range rules {
			if slices.Contains(a.calls, r.Call) && r.Action == sandbox.RuleAsk && r.Unasked == 0 {
				list = append(list, apart(r, a.arg, a.sets, a.as)...)
				continue
			}
			list = append(list, r)
		}
		rules = list
	}
	for i, r := range rules {
		if !slices.Contains([]string{"futex", "socket", "socketpair", "ioctl", "prctl", "clone"}, r.Call) {
			rules[i] = otherwise(r)
		}
	}
	return rules
}

// apart divides a rule about an argument into those where it is in one of the
// sets, which are answered so, and the rest, as otherwise says.
func apart(r sandbox.Rule, arg int, sets []bits, as sandbox.Unasked) []sandbox.Rule {
	at := slices.IndexFunc(r.When, func(w sandbox.Bits) bool { return w.Arg == uint(arg) })
	rest := []bits{{}}
	if at >= 0 {
		rest = []bits{{uint32(r.When[at].Mask), uint32(r.When[at].Value)}}
	}
	with := func(s bits, answer sandbox.Rule) sandbox.Rule {
		when := slices.Clone(r.When)
		if at >= 0 {
			when = slices.Delete(when, at, at+1)
		}
		if s.mask != 0 {
			when = append(when, s.at(arg))
		}
		answer.When = when
		return answer
	}
	var list []sandbox.Rule
	for _, set := range sets {
		var left []bits
		for _, s := range rest {
			left = append(left, s.less(set)...)
			if (s.value^set.value)&s.mask&set.mask == 0 {
				list = append(list, with(bits{s.mask | set.mask, s.value&s.mask | set.value&set.mask}, sandbox.Rule{Call: r.Call, Unasked: as}))
			}
		}
		rest = left
	}
	for _, s := range rest {
		list = append(list, with(s, otherwise(sandbox.Rule{Call: r.Call})))
	}
	return list
}

func oneWord(values ...uint32) []bits {
	var list []bits
	for _, v := range values {
		list = append(list, bits{^uint32(0), v})
	}
	return list
}

// anyBit are the words in which one of the bits is set.
func anyBit(of uint32) []bits {
	var list []bits
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if of&bit != 0 {
			list = append(list, bits{bit, bit})
		}
	}
	return list
}

func otherwise(r sandbox.Rule) sandbox.Rule {
	errno, refuses := refusals()[r.Call]
	switch {
	case r.Action != sandbox.RuleAsk:
	case slices.Contains([]string{"execve", "exit_group", "fstatfs", "statfs"}, r.Call):
		r.Unasked = sandbox.UnaskedAllow
	case isAnswered(r.Call):
		r.Unasked = sandbox.Unasked(unix.ENOSYS)
	case refuses:
		r.Unasked = sandbox.Unasked(errno)
	}
	return r
}
