package sandbox

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Program is what a tier needs to run programs of one language that another tier
// has found: by the very same files, flags and filter.
type Program struct {
	// Exact is the language with its version, which names the boundary.
	Exact string
	// Argv is what is executed, by paths inside; the last is the code, by its
	// name in /code.
	Argv     []string
	CodeName string
	// Asks is code that prints Exact where what Argv begins with is that language,
	// and something else, or nothing, where it is not; empty where Argv has nothing
	// but the code.
	Asks string
	// Root is a folder of the host with the runtime's private copy, which may
	// only be read. It stays until the tier that made it is closed.
	Root string
	// Environment is what the program finds, own being what its request sets.
	Environment func(own map[string]string) []string
	// Check refuses code before anything starts; it may be nil.
	Check func(code []byte) error
	// Rules say of every call that has a name what becomes of it, of a process
	// that is the first of its PID namespace. No two of them meet.
	Rules []Rule
}

// Fewer returns the rules with one that asks in place of those of each call that
// has more than most: who answers (Watching) says of it what they would have. The
// slice is the caller's.
func Fewer(rules []Rule, most int) []Rule {
	count := map[string]int{}
	for _, r := range rules {
		count[r.Call]++
	}
	var list []Rule
	for _, r := range rules {
		switch n := count[r.Call]; {
		case n < 0: // said already
		case n > most:
			count[r.Call] = -1
			list = append(list, Rule{Call: r.Call})
		default:
			list = append(list, r)
		}
	}
	return list
}

// RuleAction is what becomes of a call; the zero value puts it to Holdfast.
type RuleAction int8

// The actions.
const (
	RuleAsk RuleAction = iota
	RuleAllow
	RuleFeign // it succeeds, and does not happen
)

// Rule is the answer to a call where all of its conditions hold.
type Rule struct {
	Call   string
	Action RuleAction
	When   []Bits
	// Unasked is what a filter does that cannot ask, where Action is RuleAsk.
	Unasked Unasked
}

// Unasked is what becomes of a call that nobody answers: an errno of Linux, or
// that it passes. The zero value ends the program.
type Unasked int

// UnaskedAllow lets the call pass.
const UnaskedAllow Unasked = -1

// Bits is a condition: argument Arg, masked, equals Value.
type Bits struct {
	Arg         uint
	Mask, Value uint64
}

// Watching is a program whose filter asks by the descriptor Listener; both
// descriptors pass to whoever watches. What its profile allows or feigns and is
// asked about all the same is answered so.
type Watching struct {
	Listener int
	// Scratch is the folder that it is told the room of.
	Scratch int
	Spec    Spec
	// Begin is called once, when every wall stands and nothing of the program
	// has run: by an error it does not begin.
	Begin func(pid int) error
}

// Watcher answers a program's filter.
type Watcher interface {
	// End kills the program, for the first reason there is.
	End(posture.Reason)
	// Wait returns when nobody is left who could ask, or Close was called.
	Wait() Watched
	Close()
}

// Watched is what came of watching a program.
type Watched struct {
	Began   time.Time      // zero: it never began
	Reason  posture.Reason // why it was ended, or ""
	Call    *posture.Call
	Refused []posture.Refusal
	// Left is with what code it ended itself; nil is that it did not.
	Left *int
}
