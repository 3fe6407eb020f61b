package kernel

import (
	"math/rand/v2"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// The document's diagram, spelled out (spec 003 section 1.1). What is not here
// must be refused.
var diagram = map[holdfast.State]map[move]holdfast.State{
	holdfast.Idle:     {enter: holdfast.Entering},
	holdfast.Entering: {passed: holdfast.Active, refused: holdfast.Faulted},
	holdfast.Active:   {complete: holdfast.Exiting, broken: holdfast.Faulted},
	holdfast.Exiting:  {left: holdfast.Idle, lost: holdfast.Faulted},
	holdfast.Faulted:  {consumed: holdfast.Idle},
}

func allStates() []holdfast.State {
	return []holdfast.State{holdfast.Idle, holdfast.Entering, holdfast.Active, holdfast.Exiting, holdfast.Faulted}
}

func TestKernelContext_FP9_state_violation(t *testing.T) {
	for _, s := range allStates() {
		for m := enter; m <= consumed; m++ {
			want, may := diagram[s][m]
			got, ok := moves(s, m)
			if ok != may || (ok && got != want) {
				t.Errorf("%v on %v: got %v %v, want %v %v", m, s, got, ok, want, may)
			}
			mc := machine{s: s}
			err := mc.do(m)
			if may != (err == nil) {
				t.Errorf("%v on %v: %v", m, s, err)
			}
			if !may && (holdfast.KindOf(err) != holdfast.KindTransition || mc.state() != s) {
				t.Errorf("%v on %v: a refused move must leave the state and say so: %v, now %v", m, s, err, mc.state())
			}
		}
	}
}

// Invariant 3 and acceptance criterion 3: whatever is asked of it, the machine
// is in one of the five states, and where the diagram has it.
func TestKernelContext_INV3_AC3_random_sequences(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		m, model := machine{}, holdfast.Idle
		for range 40 {
			mv := move(r.IntN(12) - 1)
			want, may := diagram[model][mv]
			if err := m.do(mv); (err == nil) != may {
				t.Fatalf("%v on %v: %v", mv, model, err)
			}
			if may {
				model = want
			}
			if m.state() != model {
				t.Fatalf("machine is %v, diagram %v", m.state(), model)
			}
		}
	}
}

// Invariant 4: a guard is a pure function of state and move.
func TestKernelContext_INV4_guards_are_deterministic(t *testing.T) {
	for _, s := range allStates() {
		for m := move(-1); m < 12; m++ {
			s1, ok1 := moves(s, m)
			s2, ok2 := moves(s, m)
			if s1 != s2 || ok1 != ok2 {
				t.Fatalf("%v on %v", m, s)
			}
		}
	}
}

// Every path ends in IDLE: from each state there is a way, and no cycle avoids
// it.
func TestEveryPathEnds(t *testing.T) {
	for _, s := range allStates() {
		for range 4 {
			if s == holdfast.Idle {
				break
			}
			for m := enter; m <= consumed; m++ {
				if next, ok := moves(s, m); ok {
					s = next
					break
				}
			}
		}
		if s != holdfast.Idle {
			t.Errorf("stuck in %v", s)
		}
	}
}
