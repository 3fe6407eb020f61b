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
			s.pass(ctx, mcp.Message{ID: m.ID, Method: m.Method})
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

// told takes a notification of the server. What it says in words stays here:
// the results of calls are judged, and it might say the same.
func (s *session) told(ctx context.Context, m mcp.Message) {
	switch m.Method {
	case "notifications/progress":
		if p := s.progress(m.Params); p != nil {
			s.pass(ctx, mcp.Message{Method: m.Method, Params: p})
		}
	case "notifications/tools/list_changed":
		s.tools.changed()
		s.pass(ctx, mcp.Message{Method: m.Method})
	case "notifications/cancelled":
		if id := s.unping(mcp.Get(m.Params, "requestId")); id != nil {
			var p object
			p.add("requestId", id)
			s.pass(ctx, mcp.Message{Method: m.Method, Params: p.bytes()})
		}
	default:
		s.odd("a notification of the MCP server was not passed", "method", m.Method)
	}
}

// unping takes back a ping of the server that waits for the client, and
// returns its id, or nil where none waits.
func (s *session) unping(id []byte) []byte {
	key := mcp.IDKey(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pings[key] {
		return nil
	}
	delete(s.pings, key)
	return id
}

// progress returns the params of a notification of progress as the client gets
// them: the token that it gave to a call in flight, and numbers. It returns nil
// for any other.
func (s *session) progress(params []byte) []byte {
	said := mcp.Fields(params)
	token, done := s.awaited(said[metaProgress]), number(said["progress"])
	if token == nil || done == nil {
		s.odd("progress of the MCP server was not passed", "why", "it is of no call in flight, or no number")
		return nil
	}
	var p object
	p.add(metaProgress, token)
	p.add("progress", done)
	p.add("total", number(said["total"]))
	return p.bytes()
}

// expectProgress keeps the token, nil for none, under which the client wants to
// hear of a call's progress.
func (s *session) expectProgress(f *flight, token []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.token = token
}

// awaited returns a progress token in the client's own bytes where a call in
// flight has it, else nil.
func (s *session) awaited(token []byte) []byte {
	key := mcp.IDKey(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flights {
		if key != "" && mcp.IDKey(f.token) == key {
			return f.token
		}
	}
	return nil
}

func (s *session) pass(ctx context.Context, m mcp.Message) {
	if err := s.say(ctx, m.Line()); err != nil {
		s.Log.Debug("a message found no MCP client", "err", err)
	}
}
