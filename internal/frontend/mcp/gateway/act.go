package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/redaction"
)

// act is the one attempt to do what a call asks.
type act struct {
	s     *session
	f     *flight
	c     *call
	t     tool
	token string // the progress token that the server gets
	begun atomic.Bool
	// unsent says that the call provably never left for the server.
	unsent atomic.Bool
	got    atomic.Pointer[result]
}

// do sends the call to the server and waits for its answer. It is what the
// kernel runs, and nothing else sends a call.
func (a *act) do(ctx context.Context) (holdfast.Output, error) {
	if a.c.unknown {
		return holdfast.Output{}, &holdfast.Error{Kind: holdfast.KindNoBoundary,
			Why: fmt.Sprintf("the MCP server lists no tool %q", a.c.tool), Hint: "ask tools/list for the tools there are", Err: errUnsent}
	}
	if a.s.findRedact(a.c.boundary) != a.c.redact {
		return holdfast.Output{}, &holdfast.Error{Kind: holdfast.KindConflict, Rule: redaction.Rule,
			Why: "the contract's redact has changed since the call came", Hint: "call again", Err: errUnsent}
	}
	if !a.begun.CompareAndSwap(false, true) {
		return holdfast.Output{}, &holdfast.Error{Kind: holdfast.KindReentry, Why: "a call is made once"}
	}
	raw, err := a.s.sent(a.c, a.s.Traceparent(ctx), a.token)
	if err != nil {
		return holdfast.Output{}, fmt.Errorf("write the params of the call: %w", err)
	}
	r, err := a.s.ask(ctx, a.f, mcp.Message{Method: a.c.Method, Params: raw})
	if u, ok := a.s.server.(Unanswered); ok && err == nil && r.Error != nil {
		err = u.Unanswered(r.ID)
		a.c.unheard.Store(err != nil && !errors.Is(err, holdfast.ErrNotStarted))
	}
	if err != nil {
		a.unsent.Store(errors.Is(err, holdfast.ErrNotStarted))
		return holdfast.Output{}, a.lost(err)
	}
	if r, err = a.c.searchAnswer(r, false); err != nil {
		a.got.Store(&result{})
		return holdfast.Output{ExitCode: 1}, err
	}
	got := readResult(r, a.c)
	a.got.Store(&got)
	return a.t.output(got), nil
}

// lost says why no answer came.
func (a *act) lost(err error) error {
	var told *holdfast.Error
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, errCanceled), errors.Is(err, ErrClientGone), errors.Is(err, context.Canceled):
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
	// questions are what the server wants to know of the client before it
	// goes on, by their key; nil where the result is final.
	questions map[string]inputRequest
	// theirs is the state that the server wants back, nil for none.
	theirs *string
}

func readResult(m mcp.Message, c *call) result {
	r := result{Message: m}
	if m.Error != nil {
		r.questions, r.unfit = addresses(m.Error)
		return r
	}
	var err error
	if r.fields, err = mcp.ReadObject(m.Result); err != nil {
		r.unfit = "the MCP server's result is not an object"
		return r
	}
	if err := undisguised("the MCP server's result", r.fields, "content", "structuredContent", "isError", "resultType", "_meta",
		"inputRequests", "requestState", "contents", "messages", "completion"); err != nil {
		r.unfit = err.Error()
		return r
	}
	// Clients take questions for what they are, whatever the result calls
	// itself.
	if kind, _ := mcp.Text(r.fields.Get("resultType")); kind == "input_required" ||
		r.fields.Get("inputRequests") != nil {
		r.unfit = "the MCP server wants input from the client, which holdfast does not pass to a client of this protocol version"
		if asks(c.Method) && c.stateless {
			r.unfit = r.readQuestions()
		}
		return r
	}
	if r.unfit = unfinished(r.fields.Get("resultType")); r.unfit != "" || c.tool == "" {
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
// exit code 1, as does one that first wants to know something.
func (t tool) output(r result) holdfast.Output {
	if r.Error != nil {
		return holdfast.Output{Body: wrapError(r.Error), ExitCode: 1}
	}
	out := holdfast.Output{Body: r.Result}
	if r.unfit != "" || r.questions != nil || string(r.fields.Get("isError")) == "true" {
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

// unfinished says why a resultType is of no final result, or "".
func unfinished(resultType []byte) string {
	if resultType == nil {
		return ""
	}
	if kind, _ := mcp.Text(resultType); kind != "complete" {
		return fmt.Sprintf("the MCP server wants input from the client (resultType %.40s), which holdfast does not pass", resultType)
	}
	return ""
}
