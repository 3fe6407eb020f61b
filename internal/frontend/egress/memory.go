package egress

import (
	"sync/atomic"

	"github.com/holdfast-dev/holdfast"
)

// memory counts the bytes of all bodies that are held whole.
type memory struct {
	most int64
	used atomic.Int64
}

// share is what one body has taken.
type share struct {
	m     *memory
	of    *owner // nil where nobody in particular has it
	taken atomic.Int64
}

// share begins with nothing.
func (m *memory) share() *share { return &share{m: m} }

// Grow takes more until the share is n bytes, and says whether there was room.
func (s *share) Grow(n int64) bool {
	more := n - s.taken.Load()
	if more <= 0 {
		return true
	}
	if s.of != nil && s.of.held.Add(more) > s.m.most/2 {
		s.of.held.Add(-more)
		return false
	}
	if s.m.used.Add(more) > s.m.most {
		s.m.used.Add(-more)
		if s.of != nil {
			s.of.held.Add(-more)
		}
		return false
	}
	s.taken.Add(more)
	return true
}

// Done gives everything back. It may be called more than once.
func (s *share) Done() {
	n := s.taken.Swap(0)
	s.m.used.Add(-n)
	if s.of != nil {
		s.of.held.Add(-n)
	}
}

func busy() *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindBounds, Gate: holdfast.K3, Rule: ruleBusy,
		Why:  "the bodies that are being read now take all the memory that they may",
		Hint: "nothing was sent; try again in a moment",
	}
}
