package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
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
	if m.Error != nil {
		m.Error = genuineError(m.Error)
	}
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

// told takes a notification of the server. What it says in words passes only
// while nothing is under way whose result may be withheld: it might say the
// same.
func (s *session) told(ctx context.Context, m mcp.Message) {
	switch m.Method {
	case mcp.MethodProgress:
		s.progress(ctx, m.Params)
	case "notifications/message":
		s.logged(ctx, m.Params)
	case "notifications/tools/list_changed":
		s.tools.changed()
		s.changed(ctx, m, "toolsListChanged", mcp.Builder{})
	case "notifications/prompts/list_changed":
		s.changed(ctx, m, "promptsListChanged", mcp.Builder{})
	case "notifications/resources/list_changed":
		s.changed(ctx, m, "resourcesListChanged", mcp.Builder{})
	case "notifications/resources/updated":
		s.updated(ctx, m)
	case "notifications/subscriptions/acknowledged":
		s.acknowledged(ctx, m)
	case mcp.MethodCancelled:
		s.withdrawQuestion(mcp.Get(m.Params, "requestId"))
	case "notifications/elicitation/complete":
		s.elicited(ctx, m)
	default:
		s.odd("a notification of the MCP server was not passed", "method", m.Method)
	}
}

// elicited passes on that a person has done what the server asked for.
func (s *session) elicited(ctx context.Context, m mcp.Message) {
	id, err := word(mcp.Get(m.Params, "elicitationId"), mcp.MaxWord)
	if err != nil || !s.mayAsk(askElicit) {
		s.odd("a notification of the MCP server was not passed", "method", m.Method)
		return
	}
	var p mcp.Builder
	p.Add("elicitationId", id)
	s.pass(ctx, s.related(), mcp.Message{Method: m.Method, Params: p.Bytes()})
}

// logged passes on a log message.
func (s *session) logged(ctx context.Context, params []byte) {
	said := mcp.Fields(params)
	severity, err := level(said["level"])
	if err != nil || said["data"] == nil || s.withholds() {
		s.odd("a log message of the MCP server was not passed", "why", "it is none, or a result under way may be withheld")
		return
	}
	var p mcp.Builder
	p.Add("level", severity)
	if w, err := word(said["logger"], mcp.MaxWord); err == nil {
		p.Add("logger", w)
	}
	p.Add("data", said["data"])
	s.pass(ctx, s.related(), mcp.Message{Method: "notifications/message", Params: p.Bytes()})
}

// progress passes on progress: of a call in flight, under the token that its
// client gave.
func (s *session) progress(ctx context.Context, params []byte) {
	said := mcp.Fields(params)
	f, done := s.progressing(said[mcp.MetaProgress]), number(said["progress"])
	if f == nil || done == nil {
		s.odd("progress of the MCP server was not passed", "why", "it is of no call in flight, or no number")
		return
	}
	closed := s.withholds()
	if done = s.further(f, done, closed); done == nil {
		return // the client was told of more: progress only grows
	}
	var p mcp.Builder
	p.Add(mcp.MetaProgress, f.token)
	p.Add("progress", done)
	if !closed {
		p.Add("total", number(said["total"]))
		if w, err := word(said["message"], mcp.MaxWord); err == nil {
			p.Add("message", w)
		}
	}
	s.pass(ctx, f.key, mcp.Message{Method: mcp.MethodProgress, Params: p.Bytes()})
}

// further is the number by which the client hears that a call goes on, nil where
// it would not be told of more. Where the server's words may not pass, neither
// may its numbers: they could spell what is withheld. It is then a count of ours.
func (s *session) further(f *flight, done []byte, closed bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := max(f.counted, float64(f.waited)*waitStep)
	if closed {
		next := math.Floor(max(least, f.reached)) + 1
		if next > maxCount {
			return nil
		}
		f.counted = next
		return strconv.AppendFloat(nil, next, 'f', -1, 64)
	}
	v, err := strconv.ParseFloat(string(done), 64)
	if err != nil || least > 0 && v <= least {
		return nil
	}
	f.reached = max(f.reached, v)
	return done
}

// expectProgress keeps the token, nil for none, under which the client wants to
// hear of a call's progress, and returns the one that the server gets for it:
// a token of ours, which no other client's can be.
func (s *session) expectProgress(f *flight, token []byte) string {
	if mcp.IDKey(token) == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastToken++
	f.token, f.theirs = token, strconv.FormatUint(s.lastToken, 10)
	s.tokens[f.theirs] = f
	return f.theirs
}

// progressing is the call in flight that a progress token of ours stands for.
func (s *session) progressing(token []byte) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[string(token)]
}

// related is the key of the one crossing in flight, to which what the server
// says of its own accord belongs; "" where there is none, or more.
func (s *session) related() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, n := "", 0
	for _, f := range s.flights {
		if f.crossing {
			key, n = f.key, n+1
		}
	}
	if n != 1 {
		return ""
	}
	return key
}

// quiet keeps whether a call's result may be withheld.
func (s *session) quiet(f *flight, may bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.quiet = may
}

// mute keeps the server's words from the client for the rest of the session: a
// result was withheld, and they could say it.
func (s *session) mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = true
}

// withholds says whether the server's words may not pass now.
func (s *session) withholds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flights {
		if f.quiet {
			return true
		}
	}
	return s.muted
}

func (s *session) pass(ctx context.Context, to string, m mcp.Message) {
	if err := s.say(ctx, to, m.Line()); err != nil {
		s.Log.Debug("a message found no MCP client", "err", err)
	}
}
