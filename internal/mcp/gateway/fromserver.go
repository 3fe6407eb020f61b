package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/mcp"
)

// fromServer reads the server's messages until it goes. It waits for the
// client's reader, which slows the server down, and never for the server's.
func (s *session) fromServer(ctx context.Context) error {
	r := mcp.NewReader(s.server)
	for {
		if err := s.room(ctx); err != nil {
			return err
		}
		m, err := r.Next()
		var f *mcp.Fault
		switch {
		case errors.As(err, &f):
			s.badLine(f)
		case err != nil:
			return err
		case m.IsResponse():
			s.responded(m)
		case m.IsRequest():
			s.question(ctx, m)
		default:
			s.told(ctx, m)
		}
	}
}

// responded hands an answer on. An answer that comes after a cancellation is
// as the protocol has it; one to a request that was never made is not.
func (s *session) responded(m mcp.Message) {
	if s.deliver(m.ID, answer{Message: m}) {
		return
	}
	if s.given(m.ID) {
		s.Log.Debug("the MCP server answered late or twice", "mcp_server", s.Server, "id", string(m.ID))
	} else {
		s.odd("the MCP server answered what nobody asked", "id", string(m.ID))
	}
}

// badLine fails the request that a refused line meant to answer, if any.
func (s *session) badLine(f *mcp.Fault) {
	s.odd("the MCP server sent a line that was refused", "why", f.Why)
	if f.ID != nil {
		s.deliver(f.ID, answer{err: fmt.Errorf("the MCP server's answer was refused: %w", f)})
	}
}

// question takes a question of the server. Only ping reaches the client: what a
// server may ask of a client is not judged yet.
func (s *session) question(ctx context.Context, m mcp.Message) {
	why := fmt.Sprintf("holdfast does not let a server ask the client for %s", m.Method)
	if m.Method == "ping" {
		if why = s.ping(m.Key()); why == "" {
			s.pass(ctx, m)
			return
		}
	}
	if !s.toServer.offer(failure(m.ID, codeNoMethod, why, "")) {
		s.odd("the MCP server does not read; a refusal was dropped", "method", m.Method)
	}
}

func (s *session) ping(key string) (refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pings[key] || len(s.pings) >= maxPings {
		return fmt.Sprintf("busy: this id or %d others wait for the client", maxPings)
	}
	s.pings[key] = true
	return ""
}

// told takes a notification of the server.
func (s *session) told(ctx context.Context, m mcp.Message) {
	switch m.Method {
	case "notifications/progress", "notifications/message":
	case "notifications/tools/list_changed":
		s.tools.changed()
	case "notifications/cancelled":
		key := mcp.IDKey(mcp.Get(m.Params, "requestId"))
		s.mu.Lock()
		known := s.pings[key]
		delete(s.pings, key)
		s.mu.Unlock()
		if !known {
			return
		}
	default:
		s.odd("a notification of the MCP server was not passed", "method", m.Method)
		return
	}
	s.pass(ctx, m)
}

func (s *session) pass(ctx context.Context, m mcp.Message) {
	if err := s.say(ctx, m.Raw); err != nil {
		s.Log.Debug("a message found no MCP client", "err", err)
	}
}
