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
	// params are the client's; the server gets what sent makes of them.
	params
	tool string
	// args are the bytes that the kernel judges and the server gets.
	args []byte
}

// readCall reads a tools/call. Its error is the client's fault.
func readCall(m mcp.Message, p params) (call, error) {
	c := call{Message: m, params: p, args: []byte("{}")}
	name, ok := text(p.Get("name"))
	if !ok || !nameable(name) {
		return c, fmt.Errorf("params.name is not a string of 1 to %d bytes", maxName)
	}
	c.tool = name
	if a := p.Get("arguments"); a != nil {
		if jsontext.Value(a).Kind() != '{' {
			return c, errors.New("params.arguments is not an object")
		}
		c.args = a
	}
	for _, name := range []string{"task", "inputResponses", "requestState"} {
		if p.Get(name) != nil {
			return c, fmt.Errorf("params.%s is not passed: nothing judges it yet", name)
		}
	}
	return c, nil
}

// unjudged refuses a call with members that nothing judges: the server might
// give them a meaning. Unknown members of _meta are no grounds, since hosts
// add their own; they do not reach the server.
func (c call) unjudged() error {
	refuse := func(place, name string) error {
		return &holdfast.Error{Kind: holdfast.KindValue, Why: fmt.Sprintf("%s member %.100q is not passed: nothing judges it", place, name),
			Hint: "put what the tool needs into params.arguments"}
	}
	if c.Unknown != nil {
		return refuse("message", *c.Unknown)
	}
	for _, m := range c.Members {
		if m.Name != "name" && m.Name != "arguments" && m.Name != "_meta" {
			return refuse("params", m.Name)
		}
	}
	if _, err := c.sentMeta(""); err != nil {
		return &holdfast.Error{Kind: holdfast.KindValue, Why: err.Error()}
	}
	return nil
}

// crossing says to the kernel what is asked.
func (s *session) crossing(ctx context.Context, c call) (holdfast.Request, error) {
	token, err := s.Token(ctx)
	if err != nil {
		return holdfast.Request{}, fmt.Errorf("get a token: %w", err)
	}
	r := holdfast.Request{Boundary: Boundary(s.Server, c.tool), Payload: c.args, Token: token}
	r.Traceparent, _ = text(c.meta.Get(metaTraceparent))
	r.Tracestate, _ = text(c.meta.Get(metaTracestate))
	if key := c.meta.Get(metaIdempotency); key != nil {
		var ok bool
		if r.IdempotencyKey, ok = text(key); !ok || r.IdempotencyKey == "" {
			return r, &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K5,
				Why: "params._meta[" + metaIdempotency + "] is not a string with text in it"}
		}
	}
	return r, nil
}

// call makes the crossing and returns the line for the client.
func (s *session) call(ctx context.Context, f *flight, m mcp.Message, p params) []byte {
	c, err := readCall(m, p)
	if err != nil {
		return failure(m.ID, codeBadParams, err.Error(), "")
	}
	if !c.stateless && !s.greeted.Load() {
		return failure(m.ID, codeRefused, "the session is not initialized", "send initialize and wait for its answer")
	}
	if err := c.unjudged(); err != nil {
		return s.refusal(c, nil, err, notBegun)
	}
	s.expectProgress(f, c.meta.Get(metaProgress))
	t, known, err := s.learn(ctx, f, c.tool, c.params)
	if err != nil {
		return s.failed(m.ID, fmt.Errorf("look the tool up: %w", err))
	}
	req, err := s.crossing(ctx, c)
	if err != nil {
		return s.refusal(c, nil, err, notBegun)
	}
	a := act{s: s, f: f, c: c, t: t, known: known}
	outcome, err := s.Kernel.Cross(ctx, req, a.do)
	return s.present(&a, outcome, err)
}

// act is the one attempt to do what a call asks.
type act struct {
	s     *session
	f     *flight
	c     call
	t     tool
	known bool
	begun atomic.Bool
	// unsent says that the call provably never left for the server.
	unsent atomic.Bool
	got    atomic.Pointer[result]
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
	raw, err := a.c.sent(a.s.Traceparent(ctx))
	if err != nil {
		return holdfast.Output{}, fmt.Errorf("write the params of the call: %w", err)
	}
	r, err := a.s.ask(ctx, a.f, mcp.Message{Method: "tools/call", Params: raw})
	if err != nil {
		a.unsent.Store(errors.Is(err, errUnsent))
		return holdfast.Output{}, a.lost(err)
	}
	got := readResult(r)
	a.got.Store(&got)
	return a.t.output(got), nil
}

// lost says why no answer came.
func (a *act) lost(err error) error {
	var told *holdfast.Error
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, errCanceled), errors.Is(err, errGone), errors.Is(err, context.Canceled):
		return &holdfast.Error{Kind: holdfast.KindCanceled, Why: err.Error(), Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &holdfast.Error{Kind: holdfast.KindTimeout, Why: "the MCP server did not answer in time", Err: err}
	}
	return &holdfast.Error{Kind: holdfast.KindOperation, Why: err.Error(), Err: err}
}

// result is the server's answer to a call, looked through once.
type result struct {
	mcp.Message
	fields mcp.Object
	// unfit says why the client does not get it; "" where it does.
	unfit string
}

func readResult(m mcp.Message) result {
	r := result{Message: m}
	if m.Error != nil {
		return r
	}
	var err error
	if r.fields, err = mcp.ReadObject(m.Result); err != nil {
		r.unfit = "the MCP server's result is not an object"
		return r
	}
	if r.unfit = unfinished(r.fields.Get("resultType")); r.unfit != "" {
		return r
	}
	if err := undisguised("the MCP server's result", r.fields, "content", "structuredContent", "isError", "resultType", "_meta"); err != nil {
		r.unfit = err.Error()
		return r
	}
	if e := r.fields.Get("isError"); e != nil && string(e) != "true" && string(e) != "false" {
		r.unfit = "isError in the MCP server's result is not true or false"
	}
	return r
}

// output is what K8 judges of the server's answer: the whole result, which is
// all that the client would see, and for a tool that declared an output schema
// its structured content, which alone is held against the schema (null where
// it is missing). An error is a result too: the call was made, and ended with
// exit code 1.
func (t tool) output(r result) holdfast.Output {
	if r.Error != nil {
		return holdfast.Output{Body: wrapError(r.Error), ExitCode: 1}
	}
	out := holdfast.Output{Body: r.Result}
	if r.unfit != "" || string(r.fields.Get("isError")) == "true" {
		out.ExitCode = 1
		return out
	}
	if t.structured {
		if out.Structured = r.fields.Get("structuredContent"); out.Structured == nil {
			out.Structured = []byte("null")
		}
	}
	return out
}

// unfinished says why a resultType is of no final result, or "": since
// 2026-07-28 a server can answer with questions to the client, which nothing
// judges yet.
func unfinished(resultType []byte) string {
	if resultType == nil {
		return ""
	}
	if kind, _ := text(resultType); kind != "complete" {
		return fmt.Sprintf("the MCP server wants input from the client (resultType %.40s), which holdfast does not pass", resultType)
	}
	return ""
}
