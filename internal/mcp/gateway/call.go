package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/mcp"
)

// call is one tools/call of the client.
type call struct {
	mcp.Message
	tool string
	// args are the bytes that the kernel judges and the server gets.
	args []byte
	// params are the client's, without what would invite questions.
	params    []byte
	stateless bool
}

// readCall reads a tools/call. Its error is the client's fault.
func readCall(m mcp.Message) (call, error) {
	c := call{Message: m, args: []byte("{}"), stateless: stateless(m.Params)}
	f := mcp.Fields(m.Params)
	name, ok := text(f["name"])
	if !ok || !nameable(name) {
		return c, fmt.Errorf("params.name is not a string of 1 to %d bytes", maxName)
	}
	c.tool = name
	if a := f["arguments"]; a != nil {
		if jsontext.Value(a).Kind() != '{' {
			return c, errors.New("params.arguments is not an object")
		}
		c.args = a
	}
	for _, name := range []string{"task", "inputResponses", "requestState"} {
		if f[name] != nil {
			return c, fmt.Errorf("params.%s is not passed: nothing judges it yet", name)
		}
	}
	var err error
	c.params, err = muteClient(m.Method, m.Params)
	return c, err
}

// crossing says to the kernel what is asked.
func (s *session) crossing(ctx context.Context, c call) (holdfast.Request, error) {
	token, err := s.Token(ctx)
	if err != nil {
		return holdfast.Request{}, fmt.Errorf("get a token: %w", err)
	}
	meta := mcp.Fields(mcp.Get(c.Params, "_meta"))
	r := holdfast.Request{Boundary: Boundary(s.Server, c.tool), Payload: c.args, Token: token}
	r.Traceparent, _ = text(meta[metaTraceparent])
	r.Tracestate, _ = text(meta[metaTracestate])
	if key := meta[metaIdempotency]; key != nil {
		var ok bool
		if r.IdempotencyKey, ok = text(key); !ok || r.IdempotencyKey == "" {
			return r, &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K5,
				Why: "params._meta[" + metaIdempotency + "] is not a string with text in it"}
		}
	}
	return r, nil
}

// call makes the crossing and returns the line for the client.
func (s *session) call(ctx context.Context, m mcp.Message) []byte {
	c, err := readCall(m)
	if err != nil {
		return failure(m.ID, codeBadParams, err.Error(), "")
	}
	if !c.stateless && !s.greeted.Load() {
		return failure(m.ID, codeRefused, "the session is not initialized", "send initialize and wait for its answer")
	}
	t, known, err := s.learn(ctx, c.tool, c.Params)
	if err != nil {
		return s.failed(m.ID, fmt.Errorf("look the tool up: %w", err))
	}
	req, err := s.crossing(ctx, c)
	if err != nil {
		return s.refusal(c, nil, err, 0)
	}
	a := act{s: s, c: c, t: t, known: known}
	outcome, err := s.Kernel.Cross(ctx, req, a.do)
	return s.present(&a, outcome, err)
}

// act is the one attempt to do what a call asks.
type act struct {
	s     *session
	c     call
	t     tool
	known bool
	begun atomic.Bool
	got   atomic.Pointer[mcp.Message]
}

// do sends the call to the server and waits for its answer. It is what the
// kernel runs, and nothing else sends a call.
func (a *act) do(ctx context.Context) (holdfast.Output, error) {
	if !a.known {
		return holdfast.Output{}, &holdfast.Error{Kind: holdfast.KindNoBoundary,
			Why: fmt.Sprintf("the MCP server lists no tool %q", a.c.tool), Hint: "ask tools/list for the tools there are"}
	}
	if !a.begun.CompareAndSwap(false, true) {
		return holdfast.Output{}, &holdfast.Error{Kind: holdfast.KindReentry, Why: "a call is made once"}
	}
	params := a.c.params
	if tp := a.s.Traceparent(ctx); tp != "" {
		var err error
		if params, err = mcp.Set(params, quote(tp), "_meta", metaTraceparent); err != nil {
			return holdfast.Output{}, fmt.Errorf("write the trace into params._meta: %w", err)
		}
	}
	r, err := a.s.ask(ctx, func(id []byte) []byte {
		return a.c.Rewrite(mcp.Change{ID: id, Params: params})
	})
	if err != nil {
		return holdfast.Output{}, a.lost(err)
	}
	a.got.Store(&r)
	return a.t.output(r), nil
}

// lost says why no answer came.
func (a *act) lost(err error) error {
	switch {
	case errors.Is(err, errCanceled), errors.Is(err, errGone), errors.Is(err, context.Canceled):
		return &holdfast.Error{Kind: holdfast.KindCanceled, Why: err.Error(), Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &holdfast.Error{Kind: holdfast.KindTimeout, Why: "the MCP server did not answer in time", Err: err}
	}
	return &holdfast.Error{Kind: holdfast.KindOperation, Why: err.Error(), Err: err}
}

// output is what K8 judges of the server's answer: the structured content of a
// tool that declared its schema (null where it is missing, so that the schema
// is asked), else the whole result. An error is a result too: the call was
// made, and ended with exit code 1.
func (t tool) output(r mcp.Message) holdfast.Output {
	if r.Error != nil {
		return holdfast.Output{Body: wrapError(r.Error), ExitCode: 1}
	}
	out := holdfast.Output{Body: r.Result}
	if unfit(r.Result) != "" || string(mcp.Get(r.Result, "isError")) == "true" {
		out.ExitCode = 1
		return out
	}
	if t.structured {
		if out.Body = mcp.Get(r.Result, "structuredContent"); out.Body == nil {
			out.Body = []byte("null")
		}
	}
	return out
}

// unfit says why a result of tools/call is not given to the client, or "".
func unfit(result []byte) string {
	if why := unfinished(result); why != "" {
		return why
	}
	ms, err := mcp.Members(result)
	if err != nil {
		return "the MCP server's result is not an object"
	}
	for _, m := range ms {
		if real := mcp.Disguised(m.Name, "content", "structuredContent", "isError", "resultType", "_meta"); real != "" {
			return fmt.Sprintf("the MCP server's result has a member %q that differs from %q only in case", m.Name, real)
		}
	}
	if e := mcp.Get(result, "isError"); e != nil && string(e) != "true" && string(e) != "false" {
		return "isError in the MCP server's result is not true or false"
	}
	return ""
}

// unfinished says why a result is no final one, or "": since 2026-07-28 a
// server can answer with questions to the client, which nothing judges yet.
func unfinished(result []byte) string {
	v := mcp.Get(result, "resultType")
	if v == nil {
		return ""
	}
	if kind, _ := text(v); kind != "complete" {
		return fmt.Sprintf("the MCP server wants input from the client (resultType %.40s), which holdfast does not pass", v)
	}
	return ""
}
