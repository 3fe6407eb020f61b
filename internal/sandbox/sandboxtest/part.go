package sandboxtest

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Part selects the attempts that a test makes.
type Part struct {
	every int      // one of this many of each family, starting at its first
	names []string // those with these names alone
	brief bool     // see Once
}

// All selects every attempt, in full.
func All() Part { return Part{every: 1} }

// Once selects every attempt but those that wait for a default or a greatest timeout, and
// those that take long to meet a wall that another attempt meets. It makes attempts
// together (see batch), repeats little, and shows no property to fail outside the walls.
func Once() Part { return Part{every: 1, brief: true} }

// OneIn selects one of n attempts of each family, starting at its first.
func OneIn(n int) Part { return Part{every: n} }

// EachWall selects a few attempts. Each wall of a tier stops at least one of them.
func EachWall() Part {
	return Named("foreign/int 0x80", "exec/execve", "process/fork", "namespace/unshare mount", "kernel/bpf",
		"identity/setuid 0", "look/ptrace traceme", "network/tcp", "channel/shared memory", "files/read /etc/passwd",
		"files/write a file of the runtime", "files/an owner", "scratch/a link out", "signal/kill its group",
		"limit/a loop without end", "limit/a list", "limit/the scratch", "limit/threads", "limit/processor time",
		"flood/two megabytes of output", "node/read /etc/passwd", "property/no scratch is kept", "property/a name of its own",
		"property/no way and no device", "property/nothing but itself is seen", "property/no descriptor leaks")
}

// Named selects the attempts with these names, and does what they repeat a few times.
func Named(names ...string) Part { return Part{every: 1, names: names, brief: true} }

// And selects the attempts with these names too.
func (p Part) And(names ...string) Part {
	p.names = append(slices.Clone(p.names), names...)
	return p
}

// ChoosePart returns OneIn of the number that the variable env holds, All if the tests
// were built to do everything in full, and otherwise p.
func ChoosePart(env string, enduring bool, p Part) Part {
	if n, err := strconv.Atoi(os.Getenv(env)); err == nil && n > 0 {
		return OneIn(n)
	}
	if enduring {
		return All()
	}
	return p
}

// isChosen reports whether s makes the attempt of that name.
func (s *suite) isChosen(name string, patient bool) bool {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[name] = true
	if len(s.part.names) > 0 {
		return slices.Contains(s.part.names, name)
	}
	if s.part.brief && patient {
		return false
	}
	family, _, _ := strings.Cut(name, "/")
	if family != s.family {
		s.family, s.inFamily = family, 0
	}
	s.inFamily++
	return s.part.every <= 1 || s.inFamily%s.part.every == 1
}

// checkNames fails the test if the part names an attempt that is missing.
func (s *suite) checkNames(t *testing.T) {
	t.Helper()
	for _, name := range s.part.names {
		if !s.seen[name] {
			t.Errorf("there is no attempt %q", name)
		}
	}
}
