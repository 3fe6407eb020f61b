package kernel

import (
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// move is what can happen to a crossing (spec 003 section 1.1).
type move int8

const (
	enter    move = iota + 1 // a door asks
	passed                   // all eight gates passed or are armed
	refused                  // a gate failed
	complete                 // the operation ended and K8 accepts what came out
	broken                   // cancelled, halted, or K8 refuses what came out
	left                     // the entry is durable
	lost                     // leaving failed
	consumed                 // the caller has the error
)

// moves is the whole machine. What is not here is an error in every build (D4).
func moves(from holdfast.State, m move) (holdfast.State, bool) {
	switch {
	case from == holdfast.Idle && m == enter:
		return holdfast.Entering, true
	case from == holdfast.Entering && m == passed:
		return holdfast.Active, true
	case from == holdfast.Entering && m == refused:
		return holdfast.Faulted, true
	case from == holdfast.Active && m == complete:
		return holdfast.Exiting, true
	case from == holdfast.Active && m == broken:
		return holdfast.Faulted, true
	case from == holdfast.Exiting && m == left:
		return holdfast.Idle, true
	case from == holdfast.Exiting && m == lost:
		return holdfast.Faulted, true
	case from == holdfast.Faulted && m == consumed:
		return holdfast.Idle, true
	}
	return from, false
}

// machine holds one crossing's state.
type machine struct {
	mu sync.Mutex
	s  holdfast.State // guarded by mu
}

// do makes the move, or reports a state violation and stays.
func (m *machine) do(mv move) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, ok := moves(m.s, mv)
	if !ok {
		return &holdfast.Error{Kind: holdfast.KindTransition, Why: fmt.Sprintf("a crossing in state %s cannot %s", m.s, mv)}
	}
	m.s = next
	return nil
}

func (m *machine) state() holdfast.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s
}

// String names the move for an error text.
func (m move) String() string {
	names := [...]string{"", "enter", "pass its gates", "be refused", "complete", "break off", "leave", "fail to leave", "be consumed"}
	if m < 1 || int(m) >= len(names) {
		return "do that"
	}
	return names[m]
}
