package process

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
	var list []sandbox.Rule
	for _, r := range rules {
		if r.Call != "futex" || r.Action != sandbox.RuleAsk || len(r.When) != 1 {
			list = append(list, otherwise(r))
			continue
		}
		rest := []bits{{uint32(r.When[0].Mask), uint32(r.When[0].Value)}}
		for _, op := range []uint32{futexWait, futexWaitFor} {
			wait := bits{futexPrivate | futexCommand, op}
			var left []bits
			for _, s := range rest {
				left = append(left, s.less(wait)...)
			}
			rest = left
			list = append(list, sandbox.Rule{Call: r.Call, When: []sandbox.Bits{wait.at(1)}, Unasked: sandbox.UnaskedAllow})
		}
		for _, s := range rest {
			list = append(list, otherwise(sandbox.Rule{Call: r.Call, When: []sandbox.Bits{s.at(1)}}))
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
	case answered(r.Call):
		r.Unasked = sandbox.Unasked(unix.ENOSYS)
	case refuses:
		r.Unasked = sandbox.Unasked(errno)
	}
	return r
}
