package seccomp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// A profile is what one language may ask of the kernel (D18): the document's
// allowlist, what every program here needs beside it, and the language's own.
type Profile struct {
	allow []allowed
	many  bool // of several processes: nothing of it is asked about
}

// allowed is a system call that passes, always or under conditions.
type allowed struct {
	name string
	when []condition // sorted by argument; of one argument one must hold
	// feign: where one of these holds the call succeeds and does not happen;
	// feigned: always.
	feign   []condition
	feigned bool
	why     string // empty: it stands in the specification's list (003 2.2)
}

// condition: (low 32 bits of argument arg, masked where mask is not 0) equals
// value. Only arguments that the kernel itself takes as 32 bits may stand in
// one: what the high half holds then means nothing to the kernel either.
type condition struct {
	arg         int
	mask, value uint32
}

// WorkloadPID is the number of the workload in its own PID namespace: the init
// is 1 and clones nothing before it. Signals may go there and nowhere else.
const WorkloadPID = 2

// newProfile is the specification's list and what every program needs, and more.
func newProfile(more ...allowed) *Profile {
	p := &Profile{}
	for _, n := range words(documentCalls) {
		p.allow = append(p.allow, allowed{name: n})
	}
	for _, w := range widened {
		for _, n := range words(w.calls) {
			p.allow = append(p.allow, allowed{name: n, why: w.why})
		}
	}
	p.allow = append(append(p.allow, limited...), feigned...)
	p.allow = append(p.allow, more...)
	return p
}

// Without returns the profile less the named calls (Spec.Narrow); there is no
// way to add one (D18). A name that the profile does not have anyway changes
// nothing. A name that no kernel has is an error of kind ProtocolError: a
// misspelt wall would be none.
func (p *Profile) Without(names []string) (*Profile, error) {
	if len(names) == 0 {
		return p, nil
	}
	for _, n := range names {
		if !knownCall(n) {
			return nil, &holdfast.Error{Kind: holdfast.KindProtocol, Why: fmt.Sprintf("there is no system call %.40q to take away", n), Hint: "name calls as the kernel does, such as openat or clone"}
		}
	}
	left := slices.DeleteFunc(slices.Clone(p.allow), func(a allowed) bool { return slices.Contains(names, a.name) })
	return &Profile{allow: left, many: p.many}, nil
}

// Passes reports whether the filter lets a native call go by, as compile turns it
// into instructions.
func (p *Profile) Passes(name string, args [6]uint64) bool {
	return (p.many || !asked(name)) && slices.ContainsFunc(p.allow, func(a allowed) bool { return a.name == name && !a.feigned && a.holds(args) })
}

// Feigns reports whether the filter itself answers a native call with success.
func (p *Profile) Feigns(name string, args [6]uint64) bool {
	return slices.ContainsFunc(p.allow, func(a allowed) bool {
		return a.name == name && (a.feigned || slices.ContainsFunc(a.feign, func(c condition) bool { return c.met(args) }))
	})
}

// asked is a call of the profile that is put to Holdfast all the same: one that
// ends the program, or one that Holdfast answers.
func asked(name string) bool { return ordered(name) || isAnswered(name) }

// holds says whether each argument that has conditions meets one of its own.
func (a allowed) holds(args [6]uint64) bool {
	met := map[int]bool{}
	for _, c := range a.when {
		met[c.arg] = met[c.arg] || c.met(args)
	}
	for _, ok := range met {
		if !ok {
			return false
		}
	}
	return true
}

func (c condition) met(args [6]uint64) bool {
	v := uint32(args[c.arg])
	if c.mask != 0 {
		v &= c.mask
	}
	return v == c.value
}

// oneOf: the argument is one of the values.
func oneOf(arg int, values ...uint32) []condition {
	list := make([]condition, len(values))
	for i, v := range values {
		list[i] = condition{arg: arg, value: v}
	}
	return list
}

func words(s string) []string { return strings.Fields(s) }
