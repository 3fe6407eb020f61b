package gateway

import (
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Every goroutine of this package runs what it does under one of the guards
// below. A panic ends the session that it belongs to, closed as any other end
// closes it, and nothing of its words reaches a peer.

// panicTo is the hook of who named none.
func panicTo(log *slog.Logger) func(what, stack string) {
	return func(what, stack string) { log.Error("the MCP gateway panicked", "panic", what, "stack", stack) }
}

// guard runs f, and ends the session where it panics.
func (s *session) guard(f func()) {
	if err := mcp.Guard(s.Panicked, asFunc(f)); err != nil {
		select {
		case s.broken <- err:
		default: // one is enough to end on
		}
	}
}

// spawn is guard on a goroutine of its own.
func (s *session) spawn(f func()) { go func() { s.guard(f) }() }

// guard runs f, and ends the router, all its servers with it, where it panics.
func (r *router) guard(f func()) {
	if err := mcp.Guard(r.panicked, asFunc(f)); err != nil {
		select {
		case r.mistaken <- err:
		default:
		}
	}
}

// guard runs f, and ends the whole front where it panics: what it keeps is
// everybody's.
func (h *HTTP) guard(f func()) {
	if mcp.Guard(h.Panicked, asFunc(f)) != nil {
		h.end()
	}
}

func asFunc(f func()) func() error {
	return func() error { f(); return nil }
}
