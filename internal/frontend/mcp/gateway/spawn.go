package gateway

import "github.com/holdfast-dev/holdfast/internal/frontend/mcp"

// Every goroutine of this package runs under the guard below. A panic ends its
// session, which closes like any other, and no peer reads the panic's text.

// guard runs f, and ends the session if it panics.
func (s *session) guard(f func()) {
	if err := mcp.Guard(s.Panicked, func() error { f(); return nil }); err != nil {
		select {
		case s.broken <- err:
		default: // one is enough to end on
		}
	}
}

// spawn is guard on a goroutine of its own.
func (s *session) spawn(f func()) { go func() { s.guard(f) }() }
