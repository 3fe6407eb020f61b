package posture

import (
	"fmt"
	"slices"
	"time"
)

// The states of the executor on its way to the last one (003 2.1), and after.
const (
	Idle          State = "IDLE"
	Receiving     State = "RECEIVING"
	RequestParsed State = "REQUEST_PARSED"
	Spawning      State = "SPAWNING"
	Executing     State = "EXECUTING"
	Collecting    State = "COLLECTING_METRICS"
	Returning     State = "RETURNING"
	Cleanup       State = "CLEANUP"
	Faulted       State = "FAULTED" // of the boundary too
)

// The states of the boundary around one run (003 2.2).
const (
	Initializing State = "INITIALIZING"
	Ready        State = "READY"
	Active       State = "ACTIVE"
	Teardown     State = "TEARDOWN"
	Destroyed    State = "DESTROYED"
	InitError    State = "INIT_ERROR"
)

// Machine is one of the document's two state machines. The zero value has no
// states.
type Machine int8

// The machines.
const (
	Executor Machine = iota + 1 // 003 2.1
	Boundary                    // 003 2.2
)

// Moves returns where a state leads, by state. The maps and slices are the
// caller's.
//
// Of the boundary two moves stand for words of the document beside its column of
// transitions: a failure "detected at runtime" takes ACTIVE to FAULTED, and a run
// that ends before its code begins takes READY to TEARDOWN.
func (m Machine) Moves() map[State][]State {
	switch m {
	case Executor:
		return map[State][]State{
			Idle:           {Receiving},
			Receiving:      {RequestParsed, ProtocolError},
			RequestParsed:  {Spawning},
			Spawning:       {Executing, SpawnError},
			Executing:      {Completed, Timeout, OOM, SyscallBlocked},
			Completed:      {Collecting},
			Collecting:     {Returning},
			Returning:      {Idle},
			Timeout:        {Cleanup},
			OOM:            {Cleanup},
			SyscallBlocked: {Cleanup},
			Cleanup:        {Idle},
			SpawnError:     {Faulted},
			ProtocolError:  {Faulted},
			Faulted:        {Idle},
		}
	case Boundary:
		return map[State][]State{
			Initializing: {Ready, InitError},
			Ready:        {Active, Teardown},
			Active:       {Teardown, Faulted},
			InitError:    {Faulted},
			Faulted:      {Teardown},
			Teardown:     {Destroyed},
			Destroyed:    {},
		}
	}
	return nil
}

// Step is a state that was reached, and when.
type Step struct {
	State State     `json:"state"`
	At    time.Time `json:"at"`
}

// Trail is the states that a machine went through, in their order. The zero
// value is of no machine and refuses every step.
type Trail struct {
	machine Machine
	steps   []Step
}

// NewTrail begins where the machine does: IDLE or INITIALIZING.
func NewTrail(m Machine, at time.Time) *Trail {
	first := map[Machine]State{Executor: Idle, Boundary: Initializing}[m]
	return &Trail{m, []Step{{first, at}}}
}

// To goes on to a state. An error says that the machine has no such move, and
// nothing is gone then.
func (t *Trail) To(s State, at time.Time) error {
	if len(t.steps) == 0 {
		return fmt.Errorf("a trail of no machine cannot reach %s", s)
	}
	from := t.steps[len(t.steps)-1].State
	if !slices.Contains(t.machine.Moves()[from], s) {
		return fmt.Errorf("the sandbox cannot go from %s to %s", from, s)
	}
	t.steps = append(t.steps, Step{s, at})
	return nil
}

// Steps are the states so far. The slice is the caller's.
func (t *Trail) Steps() []Step { return slices.Clone(t.steps) }

// Instants are when a run got where. A zero is what it never reached.
type Instants struct {
	Received time.Time // its request was begun to be read
	Parsed   time.Time // its request was found good
	Raised   time.Time // its walls were begun
	Ready    time.Time // every wall stood
	Began    time.Time // its interpreter was let start
	Faulted  time.Time // a wall failed while it ran
	Ended    time.Time // its code was over
	Torn     time.Time // its processes were gone
	Freed    time.Time // nothing was left of it
}

// Trails are the states of both machines by which a run got to its last state.
// What the machines do not allow is an error, and belongs in nobody's result.
func Trails(last State, at Instants) (executor, boundary []Step, err error) {
	e, b := NewTrail(Executor, at.Received), NewTrail(Boundary, later(at.Raised, at.Parsed))
	to := func(t *Trail, s State, when time.Time) {
		if err == nil {
			err = t.To(s, when)
		}
	}
	to(e, Receiving, at.Received)
	if last == ProtocolError {
		to(e, ProtocolError, at.Ended)
		to(e, Faulted, at.Ended)
		to(e, Idle, at.Ended)
		return e.Steps(), nil, err
	}
	to(e, RequestParsed, at.Parsed)
	to(e, Spawning, at.Parsed)
	ended(to, e, last, at)
	switch {
	case at.Ready.IsZero():
		to(b, InitError, at.Ended)
		to(b, Faulted, at.Ended)
	default:
		to(b, Ready, at.Ready)
		if !at.Began.IsZero() {
			to(b, Active, at.Began)
		}
		if !at.Faulted.IsZero() {
			to(b, Faulted, at.Faulted)
		}
	}
	to(b, Teardown, later(at.Torn, at.Ended))
	to(b, Destroyed, later(at.Freed, later(at.Torn, at.Ended)))
	return e.Steps(), b.Steps(), err
}

// ended takes the executor from SPAWNING home.
func ended(to func(*Trail, State, time.Time), e *Trail, last State, at Instants) {
	home := later(at.Freed, later(at.Torn, at.Ended))
	if last != SpawnError {
		to(e, Executing, later(at.Began, at.Ready))
	}
	to(e, last, at.Ended)
	switch last {
	case Completed:
		to(e, Collecting, later(at.Torn, at.Ended))
		to(e, Returning, home)
	case SpawnError:
		to(e, Faulted, at.Ended)
	default:
		to(e, Cleanup, later(at.Torn, at.Ended))
	}
	to(e, Idle, home)
}

// later is at, or where it never was what stands for it.
func later(at, otherwise time.Time) time.Time {
	if at.IsZero() {
		return otherwise
	}
	return at
}
