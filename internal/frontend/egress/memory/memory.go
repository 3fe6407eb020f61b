// Package memory bounds the bytes of all bodies that are held whole at one time.
package memory

import (
	"sync/atomic"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
)

// Memory counts the bytes of all bodies that are held whole.
type Memory struct {
	Most int64
	Used atomic.Int64
}

// Share is what one body has taken.
type Share struct {
	m     *Memory
	of    *atomic.Int64 // what its caller holds, in bytes; nil for no caller
	taken atomic.Int64
}

// NewShare begins with nothing. of counts what the caller of the body holds, who gets
// at most half of all memory; nil is for no caller.
func (m *Memory) NewShare(of *atomic.Int64) *Share { return &Share{m: m, of: of} }

// Grow takes more until the share is n bytes, and says whether there was room.
func (s *Share) Grow(n int64) bool {
	more := n - s.taken.Load()
	if more <= 0 {
		return true
	}
	if s.of != nil && s.of.Add(more) > s.m.Most/2 {
		s.of.Add(-more)
		return false
	}
	if s.m.Used.Add(more) > s.m.Most {
		s.m.Used.Add(-more)
		if s.of != nil {
			s.of.Add(-more)
		}
		return false
	}
	s.taken.Add(more)
	return true
}

// Done gives everything back. It may be called more than once.
func (s *Share) Done() {
	n := s.taken.Swap(0)
	s.m.Used.Add(-n)
	if s.of != nil {
		s.of.Add(-n)
	}
}

// Busy is the error of a body for which there is no memory now.
func Busy() *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindBounds, Gate: holdfast.K3, Rule: refusal.RuleBusy,
		Why:  "the bodies that are being read now take all the memory that they may",
		Hint: "nothing was sent; try again in a moment",
	}
}
