package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// fromClient reads the client's messages until it goes. It never waits for
// the server: what finds no room there is refused, so that a cancellation is
// always heard.
func (s *session) fromClient(ctx context.Context) error {
	for {
		m, err := s.client.Next()
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
	return s.say(ctx, mcp.IDKey(f.ID), mcp.Failure(f.ID, f.Code, f.Why, f.Hint))
}

// say writes a line to the client, for the request with the key to ("" for
// none). An error means that there is no client any more.
func (s *session) say(ctx context.Context, to string, line []byte) error {
	_, err := s.toClient.put(ctx, to, line)
	return err
}

// request takes one request. The error is of the client's stream.
func (s *session) request(ctx context.Context, m mcp.Message) error {
	way := s.wayOf(m.Method)
	if way == refused {
		return s.say(ctx, m.Key(), mcp.Failure(m.ID, mcp.CodeNoMethod,
			fmt.Sprintf("holdfast does not pass %s: nothing judges it", m.Method), s.opening(m.Method)))
	}
	p, err := readParams(m)
	var passed []byte
	if err == nil && way == passes {
		passed, err = s.passed(m.Method, p)
	}
	if err != nil {
		return s.say(ctx, m.Key(), mcp.Failure(m.ID, mcp.CodeBadParams, err.Error(), ""))
	}
	reqctx, f, err := s.begin(ctx, m, way == crosses)
	if err != nil {
		return s.say(ctx, m.Key(), mcp.Failure(m.ID, errorcode.Refused, err.Error(),
			"wait for an answer, then send it again under a new id"))
	}
	if way != passes {
		do := s.call
		if way == listens {
			do = s.listen
		}
		s.spawn(func() {
			defer s.finish(f)
			s.reply(ctx, reqctx, f, do(reqctx, f, m, p))
		})
		return nil
	}
	epoch := s.tools.epoch()
	w, err := s.forward(f, m, passed)
	if err != nil {
		s.finish(f)
		return s.say(ctx, m.Key(), mcp.Failure(m.ID, errorcode.Refused, err.Error(), ""))
	}
	s.spawn(func() {
		defer s.finish(f)
		s.reply(ctx, reqctx, f, s.relay(reqctx, m, p, w, epoch))
	})
	return nil
}

// reply gives the client its answer, unless it cancelled the request. Once it
// can read it, the request is in flight no more.
func (s *session) reply(ctx, reqctx context.Context, f *flight, line []byte) {
	if line == nil || errors.Is(context.Cause(reqctx), errCanceled) {
		return
	}
	if _, err := s.toClient.putThen(ctx, f.key, line, func() { s.land(f) }); err != nil {
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
	if !s.toServer.offer("", mcp.Message{ID: []byte(w.id), Method: m.Method, Params: passed}.Line()) {
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
		return mcp.Failure(m.ID, errorcode.Refused, err.Error(), "")
	}
	if r.Error != nil {
		if !s.familiar(r.Error) {
			return mcp.Failure(m.ID, errorcode.Refused, errMuted.Error(), "a new session can ask again")
		}
		return mcp.Message{ID: m.ID, Error: r.Error}.Line()
	}
	if why := unfinished(mcp.Get(r.Result, "resultType")); why != "" {
		return mcp.Failure(m.ID, errorcode.Refused, why, "")
	}
	result, err := unowned(r.Result)
	if err != nil {
		return s.failed(m.ID, fmt.Errorf("read the MCP server's answer: %w", err))
	}
	if result, err = s.guarded(m.Method, result); err != nil {
		return mcp.Failure(m.ID, errorcode.Refused, err.Error(), "a new session can ask again")
	}
	switch m.Method {
	case "initialize":
		if result, err = s.muteServer(result); err == nil {
			s.greet(p)
		}
	case mcp.MethodDiscover:
		if result, err = s.muteServer(result); err == nil {
			s.greeted.Store(true)
			result, err = forOne(p, result)
		}
	case mcp.MethodListTools, mcp.MethodListResources, mcp.MethodListTemplates, mcp.MethodListPrompts:
		if m.Method == mcp.MethodListTools {
			result, err = s.listed(ctx, p, result, epoch)
		} else {
			result, err = s.catalogue(ctx, m.Method, result)
		}
		if err == nil {
			result, err = ordered(m.Method, result)
		}
		if err == nil {
			result, err = forOne(p, result)
		}
	}
	if err != nil {
		return s.failed(m.ID, err)
	}
	return mcp.Respond(m.ID, result)
}

// greet keeps what the client said of itself in a handshake that the server has
// answered.
func (s *session) greet(p params) {
	can := readAbilities(p.Get("capabilities"))
	s.mu.Lock()
	s.handshaken, s.clientCan = true, can
	s.mu.Unlock()
	s.greeted.Store(true)
}

// notified takes a notification of the client.
func (s *session) notified(m mcp.Message) {
	switch m.Method {
	case "notifications/cancelled":
		s.cancel(mcp.IDKey(mcp.Get(m.Params, "requestId")))
	case "notifications/initialized":
		s.initialized(m)
	case "notifications/roots/list_changed":
		if !s.mayAsk(askRoots) || !s.toServer.offer("", mcp.Message{Method: m.Method}.Line()) {
			s.odd("a notification of the MCP client was not passed", "method", m.Method)
		}
	default:
		s.odd("a notification of the MCP client was not passed", "method", m.Method)
	}
}

// initialized tells the server that the client is ready.
func (s *session) initialized(m mcp.Message) {
	p, err := readParams(m)
	var note mcp.Builder
	if err == nil {
		var meta []byte
		meta, err = s.handshake(p)
		note.Add("_meta", meta)
	}
	if err != nil {
		s.odd("a notification of the MCP client was not passed", "method", m.Method, "why", err.Error())
	} else if !s.toServer.offer("", mcp.Message{Method: m.Method, Params: note.BytesOrNil()}.Line()) {
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
