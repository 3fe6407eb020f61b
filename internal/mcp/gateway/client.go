package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/mcp"
)

// fromClient reads the client's messages until it goes. It never waits for
// the server: what finds no room there is refused, so that a cancellation is
// always heard.
func (s *session) fromClient(ctx context.Context) error {
	r := mcp.NewReader(s.client)
	for {
		m, err := r.Next()
		var f *mcp.Fault
		switch {
		case errors.As(err, &f):
			err = s.refuseLine(ctx, f)
		case err != nil:
			return err
		case m.IsRequest():
			err = s.request(ctx, m)
		case m.IsNotification():
			s.notified(m)
		default:
			s.answered(m)
		}
		if err != nil {
			return err
		}
	}
}

// refuseLine answers a line that was no message.
func (s *session) refuseLine(ctx context.Context, f *mcp.Fault) error {
	s.odd("the MCP client sent a line that was refused", "why", f.Why)
	if f.Response {
		return nil
	}
	return s.say(ctx, failure(f.ID, f.Code, f.Why, f.Hint))
}

// say writes a line to the client. An error means that there is none any more.
func (s *session) say(ctx context.Context, line []byte) error {
	_, err := s.toClient.put(ctx, line)
	return err
}

// request takes one request. The error is of the client's stream.
func (s *session) request(ctx context.Context, m mcp.Message) error {
	switch m.Method {
	case "tools/call", "initialize", "server/discover", "ping", "tools/list", "logging/setLevel":
	default:
		return s.say(ctx, failure(m.ID, codeNoMethod,
			fmt.Sprintf("holdfast does not pass %s: nothing judges it yet", m.Method),
			"only the server's tools can be reached"))
	}
	p, err := readParams(m)
	var passed []byte
	if err == nil && m.Method != "tools/call" {
		passed, err = p.passed(m.Method)
	}
	if err != nil {
		return s.say(ctx, failure(m.ID, codeBadParams, err.Error(), ""))
	}
	reqctx, f, err := s.begin(ctx, m)
	if err != nil {
		return s.say(ctx, failure(m.ID, codeRefused, err.Error(), "wait for an answer, then send it again under a new id"))
	}
	if m.Method == "tools/call" {
		go func() {
			defer s.finish(f)
			s.reply(ctx, reqctx, s.call(reqctx, f, m, p))
		}()
		return nil
	}
	epoch := s.tools.epoch()
	w, err := s.forward(f, m, passed)
	if err != nil {
		s.finish(f)
		return s.say(ctx, failure(m.ID, codeRefused, err.Error(), ""))
	}
	go func() {
		defer s.finish(f)
		s.reply(ctx, reqctx, s.relay(reqctx, m, p, w, epoch))
	}()
	return nil
}

// reply gives the client its answer, unless it cancelled the request.
func (s *session) reply(ctx, reqctx context.Context, line []byte) {
	if line == nil || errors.Is(context.Cause(reqctx), errCanceled) {
		return
	}
	if err := s.say(ctx, line); err != nil {
		s.Log.Debug("an answer found no MCP client", "err", err)
	}
}

// errBusy says that the server does not take what it is sent.
var errBusy = errors.New("busy: the MCP server does not read its input")

// forward sends a request that is not a crossing, in the client's order and
// with the params that may pass.
func (s *session) forward(f *flight, m mcp.Message, passed []byte) (wait, error) {
	w, err := s.expect(f)
	if err != nil {
		return w, err
	}
	if !s.toServer.offer(mcp.Message{ID: []byte(w.id), Method: m.Method, Params: passed}.Line()) {
		s.forget(w)
		return w, errBusy
	}
	return w, nil
}

// relay waits for the answer to a forwarded request and returns the line for
// the client.
func (s *session) relay(ctx context.Context, m mcp.Message, p params, w wait, epoch uint64) []byte {
	r, err := s.await(ctx, w)
	if err != nil {
		return failure(m.ID, codeRefused, err.Error(), "")
	}
	if r.Error != nil {
		return mcp.Message{ID: m.ID, Error: r.Error}.Line()
	}
	if why := unfinished(mcp.Get(r.Result, "resultType")); why != "" {
		return failure(m.ID, codeRefused, why, "")
	}
	result := r.Result
	switch m.Method {
	case "initialize", "server/discover":
		if result, err = muteServer(m.Method, result); err == nil {
			s.greeted.Store(true)
		}
	case "tools/list":
		result, err = s.listed(ctx, p, result, epoch)
	}
	if err != nil {
		return s.failed(m.ID, err)
	}
	return respond(m.ID, result)
}

// notified takes a notification of the client.
func (s *session) notified(m mcp.Message) {
	switch m.Method {
	case "notifications/cancelled":
		s.cancel(mcp.IDKey(mcp.Get(m.Params, "requestId")))
	case "notifications/initialized":
		s.initialized(m)
	default:
		s.odd("a notification of the MCP client was not passed", "method", m.Method)
	}
}

// initialized tells the server that the client is ready.
func (s *session) initialized(m mcp.Message) {
	p, err := readParams(m)
	var note object
	if err == nil {
		var meta []byte
		meta, err = p.handshake()
		note.add("_meta", meta)
	}
	if err != nil {
		s.odd("a notification of the MCP client was not passed", "method", m.Method, "why", err.Error())
	} else if !s.toServer.offer(mcp.Message{Method: m.Method, Params: note.member()}.Line()) {
		s.odd("the MCP server does not read; a notification was dropped", "method", m.Method)
	}
}

// cancel ends a request in flight; the goroutine that has it tells the server
// under the id that the server knows.
func (s *session) cancel(key string) {
	s.mu.Lock()
	f := s.flights[key]
	s.mu.Unlock()
	if f != nil {
		f.cancel(errCanceled)
	}
}

// answered takes the client's answer to a question of the server, which is a
// ping: that there is an answer is all that it says.
func (s *session) answered(m mcp.Message) {
	key := m.Key()
	s.mu.Lock()
	known := s.pings[key]
	delete(s.pings, key)
	s.mu.Unlock()
	if !known {
		s.odd("the MCP client answered what nobody asked")
		return
	}
	line := respond(m.ID, []byte("{}"))
	if m.Error != nil {
		line = failure(m.ID, codeRefused, "the client answered the ping with an error", "")
	}
	if !s.toServer.offer(line) {
		s.odd("the MCP server does not read; an answer was dropped")
	}
}
