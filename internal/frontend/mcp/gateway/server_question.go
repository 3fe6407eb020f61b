package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// question takes a request of the server. Ping reaches the client; anything
// else is a crossing of client/<server>/<method>, where a contract lets the
// server ask it.
func (s *session) question(ctx context.Context, m mcp.Message) {
	why := ""
	switch can := s.sessionCan(); {
	case m.Method == "ping":
	case !s.mayAsk(m.Method):
		why = fmt.Sprintf("holdfast does not let a server ask the client for %s", m.Method)
	case can == nil:
		why = fmt.Sprintf("the client has no session in which it could be asked for %s", m.Method)
	case !can.can(m.Method):
		why = fmt.Sprintf("the client did not say that it can be asked for %s", m.Method)
	}
	if why == "" {
		asking, cancel := context.WithCancelCause(ctx)
		if why = s.takeQuestion(m.Key(), cancel); why == "" {
			s.spawn(func() {
				defer s.dropQuestion(m.Key(), cancel)
				line := s.carry(asking, m)
				if line == nil || asking.Err() != nil {
					return
				}
				if _, err := s.toServer.put(ctx, "", line); err != nil {
					s.Log.Debug("an answer found no MCP server", "err", err)
				}
			})
			return
		}
		cancel(nil)
	}
	if !s.toServer.offer("", mcp.Failure(m.ID, mcp.CodeNoMethod, why, "")) {
		s.odd("the MCP server does not read; a refusal was dropped", "method", m.Method)
	}
}

// sessionCan is what a client with a session can be asked, nil without one.
func (s *session) sessionCan() *abilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.handshaken {
		return nil
	}
	can := s.clientCan
	return &can
}

// maxAsks bounds the server's questions that wait for the client's answer.
const maxAsks = 16

// takeQuestion makes a question of the server one in flight, or says why not.
func (s *session) takeQuestion(key string, cancel context.CancelCauseFunc) (refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return s.gone.Error()
	}
	if s.questions[key] != nil || len(s.questions) >= maxAsks {
		return fmt.Sprintf("busy: this id or %d others wait for the client", maxAsks)
	}
	s.questions[key] = cancel
	s.work.Add(1)
	return ""
}

func (s *session) dropQuestion(key string, cancel context.CancelCauseFunc) {
	s.mu.Lock()
	delete(s.questions, key)
	s.mu.Unlock()
	cancel(nil)
	s.work.Done()
}

// withdrawQuestion ends a question that the server does not want answered any
// more.
func (s *session) withdrawQuestion(id []byte) {
	s.mu.Lock()
	cancel := s.questions[mcp.IDKey(id)]
	s.mu.Unlock()
	if cancel != nil {
		cancel(errWithdrawn)
	}
}

var errWithdrawn = errors.New("the MCP server withdrew its question")

// carry brings a question to the client and returns the line for the server.
func (s *session) carry(ctx context.Context, m mcp.Message) []byte {
	if m.Method == "ping" {
		r, err := s.askClient(ctx, "", "ping", nil)
		switch {
		case err != nil:
			return nil
		case r.Error != nil:
			return mcp.Failure(m.ID, errorcode.Refused, "the client answered the ping with an error", "")
		}
		return mcp.Respond(m.ID, []byte("{}"))
	}
	params := m.Params
	if params == nil {
		params = []byte("{}")
	}
	params, err := withoutMeta(params)
	if err != nil {
		return mcp.Failure(m.ID, mcp.CodeBadParams, "params is not an object", "")
	}
	to := s.related()
	var got *mcp.Message
	f, c := &flight{key: to}, &call{Message: mcp.Message{ID: m.ID}}
	o, err := s.patient(ctx, f, c, time.Now().Add(s.Wait), func(ctx context.Context) (*holdfast.Outcome, error) {
		req, err := s.requestOf(ctx, c, methodBoundary("client", s.Server, m.Method), params)
		if err != nil {
			return nil, err
		}
		return s.Kernel.Cross(ctx, req, func(ctx context.Context) (holdfast.Output, error) {
			r, err := s.askClient(ctx, to, m.Method, params)
			if err != nil {
				return holdfast.Output{}, (&act{}).lost(err)
			}
			got = &r
			if r.Error != nil {
				return holdfast.Output{Body: wrapError(r.Error), ExitCode: 1}, nil
			}
			return holdfast.Output{Body: r.Result}, nil
		})
	})
	switch {
	case o != nil && o.Verdict == holdfast.Hold:
		return s.pending(c, o)
	case (o == nil || o.Verdict != holdfast.Allow || err != nil || o.Output == nil) && got == nil:
		return s.refusal(c, o, err, notBegun)
	case err != nil || o == nil || o.Verdict != holdfast.Allow:
		return s.refusal(c, o, err, answered)
	case got == nil: // a replay
		return mcp.Respond(m.ID, o.Output.Body)
	case got.Error != nil:
		return mcp.Message{ID: m.ID, Error: got.Error}.Line()
	}
	return mcp.Respond(m.ID, got.Result)
}

// askClient sends a request to the client under an id of our own and waits for
// its answer. to is the request of the client's that it belongs to, or "".
func (s *session) askClient(ctx context.Context, to, method string, params []byte) (mcp.Message, error) {
	ch := make(chan mcp.Message, 1)
	s.mu.Lock()
	s.lastAsk++
	id := mcp.Quote("holdfast-" + strconv.FormatUint(s.lastAsk, 10))
	key := mcp.IDKey(id)
	s.asks[key] = ch
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asks, key)
		s.mu.Unlock()
	}()
	q, err := s.toClient.put(ctx, to, mcp.Message{ID: id, Method: method, Params: params}.Line())
	if err != nil {
		return mcp.Message{}, err
	}
	select {
	case m := <-ch:
		return m, nil
	case <-ctx.Done():
		if !s.toClient.withdraw(q) {
			var p mcp.Builder
			p.Add("requestId", id)
			s.toClient.urge(to, mcp.Message{Method: mcp.MethodCancelled, Params: p.Bytes()}.Line())
		}
		return mcp.Message{}, context.Cause(ctx)
	}
}

// answered takes the client's answer to a question of ours.
func (s *session) answered(m mcp.Message) {
	s.mu.Lock()
	ch := s.asks[m.Key()]
	delete(s.asks, m.Key())
	s.mu.Unlock()
	if ch == nil {
		s.odd("the MCP client answered what nobody asked")
		return
	}
	ch <- m
}
