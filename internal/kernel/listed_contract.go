package kernel

import (
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// Listed returns what configuration says of a boundary, under the name or the
// pattern that lists it there, so that a door can ask for a name by itself. A
// spelling that could not be crossed is listed by no pattern.
func (k *Kernel) Listed(boundary string) (holdfast.Contract, bool) {
	return k.policy.Load().contracts.Listed(boundary)
}

// Withholds says whether K8 may keep what comes out of a boundary from the
// caller: there is an output schema, a predicate or a rule on outputs, or the
// boundary is not known.
func (k *Kernel) Withholds(boundary string) bool {
	pol := k.policy.Load()
	c := k.lookup(pol, boundary)
	return c == nil || c.ChecksOutput() || pol.outputs
}

// swaps tells of each policy that comes in force. The zero value is ready.
type swaps struct {
	mu sync.Mutex
	ch chan struct{} // guarded by mu; nil until somebody waits
}

func (s *swaps) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *swaps) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// Swapped is closed as soon as another policy is in force than when it was
// asked for, so that a door can tell its clients to look again.
func (k *Kernel) Swapped() <-chan struct{} { return k.swaps.next() }
