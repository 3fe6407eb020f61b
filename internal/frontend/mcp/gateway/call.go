package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/redaction"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// call is one request of the client that is a crossing.
type call struct {
	mcp.Message
	// params are the client's; the server gets what sent makes of them.
	params
	boundary string
	// tool is the tool's name, "" where another method is called.
	tool string
	// unknown says that the server lists no such tool.
	unknown bool
	// unheard says that the server was asked, and its answer was lost on the
	// way: there is no tool's result to tell of.
	unheard atomic.Bool
	// payload is the bytes that the kernel judges and the server gets: a
	// tool's arguments, or the params of another method.
	payload []byte
	// extra and extraMeta are members without a meaning here, which a
	// contract lets pass; extras is the document by which a tool's are judged, or nil.
	extra, extraMeta []field
	extras           []byte
	// asked is the hash of what the client asked, before anything was masked.
	asked string

	// redact is the contract's. search has searched the request by it; nil if the contract has none.
	redact  holdfast.Redaction
	search  *redaction.Search
	denials []holdfast.Opinion

	// state is what came back with a retry, nil where nothing did.
	state *state
	// answers are the client's to the questions in state, by their key.
	answers map[string][]byte
	// accepted says that the client opened what it was pointed to.
	accepted bool
}

// retries says whether the client brings a state back. Answers without one are
// to questions that nobody is known to have asked.
func (c *call) retries() bool {
	return asks(c.Method) && c.stateless && c.Get("requestState") != nil
}

// readCall reads a request that is a crossing. Its error is the client's fault.
func (s *session) readCall(m mcp.Message, p params) (*call, error) {
	c := &call{Message: m, params: p}
	var err error
	if m.Method == mcp.MethodCallTool {
		err = s.readTool(c)
	} else {
		c.boundary = s.boundaryOf(m.Method)
		err = s.readOther(c)
	}
	if err != nil {
		return nil, err
	}
	c.asked = fingerprint(c.payload, c.extras)
	return c, s.readRetry(c)
}

// readTool reads a tools/call.
func (s *session) readTool(c *call) error {
	name, ok := mcp.Text(c.Get("name"))
	if !ok || !nameable(name) {
		return fmt.Errorf("params.name is not a string of 1 to %d bytes", maxName)
	}
	c.tool, c.boundary, c.payload = name, Boundary(s.Server, name), []byte("{}")
	if a := c.Get("arguments"); a != nil {
		if jsontext.Value(a).Kind() != '{' {
			return errors.New("params.arguments is not an object")
		}
		c.payload = a
	}
	if !s.named(mcp.MethodCallTool) {
		if c.Get("task") != nil {
			return errors.New("params.task is not passed: nothing judges it yet")
		}
		return nil
	}
	for _, m := range c.Members {
		switch {
		case m.Name == "name", m.Name == "arguments", m.Name == "_meta":
		case c.retries() && (m.Name == "inputResponses" || m.Name == "requestState"):
		default:
			c.extra = append(c.extra, field{m.Name, m.Value(c.Object.Raw)})
		}
	}
	c.extraMeta = c.strangeMeta()
	var out mcp.Builder
	out.Add("_meta", membersOf(c.extraMeta).BytesOrNil())
	for _, m := range c.extra {
		out.Add(m.name, m.value)
	}
	c.extras = out.BytesOrNil()
	return nil
}

// readOther reads a crossing that is no tool's call: all its params are judged,
// without the _meta that the protocol gives a meaning. What else stands in
// _meta goes only where a contract names the method.
func (s *session) readOther(c *call) error {
	var out mcp.Builder
	for _, m := range c.Members {
		retry := asks(c.Method) && (m.Name == "inputResponses" || m.Name == "requestState")
		if m.Name != "_meta" && !retry {
			out.Add(m.Name, m.Value(c.Object.Raw))
		}
	}
	switch c.Method {
	case mcp.MethodReadResource, mcp.MethodSubscribe, mcp.MethodUnsubscribe, mcp.MethodGetPrompt, mcp.MethodComplete:
	default:
		c.extraMeta = c.strangeMeta()
		out.Add("_meta", membersOf(c.extraMeta).BytesOrNil())
	}
	c.payload = out.Bytes()
	if uri, ok := mcp.Text(c.Get("uri")); c.Method == mcp.MethodSubscribe && (!ok || !s.subs.room(uri)) {
		return fmt.Errorf("params.uri is not a string of at most %d bytes, or more than %d are subscribed to", maxAddress, maxSubs)
	}
	return nil
}

// strangeMeta is what stands in _meta without a meaning here.
func (p params) strangeMeta() []field {
	var ms []field
	for _, m := range p.meta.Members {
		switch m.Name {
		case mcp.MetaProtocol, mcp.MetaCapabilities, mcp.MetaClientInfo, mcp.MetaLogLevel, mcp.MetaProgress,
			mcp.MetaTraceparent, mcp.MetaTracestate, mcp.MetaBaggage:
			continue
		}
		if !own(m.Name) {
			ms = append(ms, field{m.Name, m.Value(p.meta.Raw)})
		}
	}
	return ms
}

func membersOf(ms []field) *mcp.Builder {
	var out mcp.Builder
	for _, m := range ms {
		out.Add(m.name, m.value)
	}
	return &out
}

// unjudged refuses a call with members that nothing judges: the server might
// give them a meaning. Unknown members of a tool's _meta are no grounds, since
// hosts add their own; they do not reach the server.
func (s *session) unjudged(c *call) error {
	refuse := func(place, name string) error {
		return &holdfast.Error{Kind: holdfast.KindValue, Why: fmt.Sprintf("%s member %.100q is not passed: nothing judges it", place, name),
			Hint: "put what the tool needs into params.arguments"}
	}
	if c.Unknown != nil {
		return refuse("message", *c.Unknown)
	}
	for _, m := range c.Members {
		switch m.Name {
		case "name", "arguments", "_meta", "inputResponses", "requestState":
		default:
			if c.tool != "" && c.extras == nil {
				return refuse("params", m.Name)
			}
		}
	}
	if _, err := s.sentMeta(c, "", ""); err != nil {
		return &holdfast.Error{Kind: holdfast.KindValue, Why: err.Error()}
	}
	return nil
}

// crossing says to the kernel what is asked.
func (s *session) crossing(ctx context.Context, c *call) (holdfast.Request, error) {
	r, err := s.requestOf(ctx, c, c.boundary, c.payload)
	if err != nil {
		return r, err
	}
	if key := c.meta.Get(mcp.MetaIdempotency); key != nil {
		var ok bool
		if r.IdempotencyKey, ok = mcp.Text(key); !ok || r.IdempotencyKey == "" {
			return r, &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K5,
				Why: "params._meta[" + mcp.MetaIdempotency + "] is not a string with text in it"}
		}
	}
	r.Beside, r.Denials = c.besides(), c.denials
	if c.answers != nil {
		r.IdempotencyKey = s.retryKey(c, r.IdempotencyKey)
	}
	return r, nil
}

// besides is what the server gets with the payload: a person who approves the
// call approves it too. The server's own state stands there by its hash. Nil
// where there is nothing.
func (c *call) besides() []byte {
	more := c.retried()
	if more == nil {
		return c.extras
	}
	var out mcp.Builder
	if c.extras != nil {
		out.Add("_meta", membersOf(c.extraMeta).BytesOrNil())
		for _, m := range c.extra {
			out.Add(m.name, m.value)
		}
	}
	for _, m := range more {
		if m.name == "requestState" {
			sum := sha256.Sum256(m.value)
			m.value = mcp.Quote("sha256:" + hex.EncodeToString(sum[:]))
		}
		out.Add(m.name, m.value)
	}
	return out.BytesOrNil()
}

// requestOf is a request for any crossing that the call c needs.
func (s *session) requestOf(ctx context.Context, c *call, boundary string, payload []byte) (holdfast.Request, error) {
	token, err := s.Token(ctx)
	if err != nil {
		return holdfast.Request{}, fmt.Errorf("get a token: %w", err)
	}
	r := holdfast.Request{Boundary: boundary, Payload: payload, Token: token}
	r.Traceparent, _ = mcp.Text(c.meta.Get(mcp.MetaTraceparent))
	r.Tracestate, _ = mcp.Text(c.meta.Get(mcp.MetaTracestate))
	return r, nil
}

// retryKey is the idempotency key of a request that brings answers. What was
// settled for the request without them must not be given back for it.
func (s *session) retryKey(c *call, key string) string {
	if contract, ok := s.Kernel.Listed(c.boundary); key == "" && !(ok && contract.Replay == "payload") {
		return ""
	}
	theirs := ""
	if c.state.Theirs != nil {
		theirs = *c.state.Theirs
	}
	sum := sha256.Sum256([]byte(fingerprint([]byte(key), []byte(theirs), c.answered())))
	return "answers:" + hex.EncodeToString(sum[:])
}

// call makes the crossing and returns the line for the client.
func (s *session) call(ctx context.Context, f *flight, m mcp.Message, p params) []byte {
	end := time.Now().Add(s.Wait)
	c, err := s.readCall(m, p)
	if err != nil {
		return mcp.Failure(m.ID, mcp.CodeBadParams, err.Error(), "")
	}
	if !c.stateless && !s.greeted.Load() {
		return mcp.Failure(m.ID, errorcode.Refused, "the session is not initialized",
			"send initialize and wait for its answer")
	}
	if err := s.unjudged(c); err != nil {
		return s.refusal(c, nil, err, notBegun)
	}
	a := &act{s: s, f: f, c: c, token: s.expectProgress(f, c.meta.Get(mcp.MetaProgress))}
	if c.tool != "" {
		var known bool
		a.t, known, err = s.learn(ctx, f, c.tool, c.params)
		c.unknown = err == nil && !known
		if why := a.t.mismatch(c.Header, c.payload); why != "" {
			return mcp.Failure(m.ID, mcp.CodeHeaders, why, "")
		}
	} else {
		err = s.introduce(ctx)
	}
	if err != nil {
		return s.failed(m.ID, fmt.Errorf("look up what is called: %w", err))
	}
	s.searchCall(c)
	s.quiet(f, s.Kernel.Withholds(c.boundary) || c.search != nil && c.search.SearchesResults())
	if c.denials == nil {
		if line := s.before(ctx, f, c, end); line != nil {
			return line
		}
	}
	o, err := s.patient(ctx, f, c, end, func(ctx context.Context) (*holdfast.Outcome, error) {
		req, err := s.crossing(ctx, c)
		if err != nil {
			return nil, err
		}
		return s.Kernel.Cross(ctx, req, a.do)
	})
	return s.present(ctx, a, o, err)
}

// before makes the crossings that the call needs before its own: what stands
// beside its arguments, and each answer to a question. It returns the line for
// the client where one is not allowed.
func (s *session) before(ctx context.Context, f *flight, c *call, end time.Time) []byte {
	if c.extras != nil {
		if line := s.permit(ctx, f, c, end, s.boundaryOf(mcp.MethodCallTool), c.extras,
			holdfast.Output{Body: []byte("{}")}); line != nil {
			return line
		}
	}
	for _, key := range sorted(c.answers) {
		q := c.state.Asked[key]
		var payload mcp.Builder
		payload.Add("question", []byte(q.Params))
		payload.Add("answer", c.answers[key])
		line := s.permit(ctx, f, c, end, methodBoundary("client", s.Server, q.Method), payload.Bytes(),
			holdfast.Output{Body: c.answers[key]})
		if line != nil {
			return line
		}
	}
	return nil
}

// permit makes a crossing whose act is that something may be passed on; what
// out says of it is judged. It returns nil where it may, and else the line for
// the client.
func (s *session) permit(ctx context.Context, f *flight, c *call, end time.Time, boundary string, payload []byte, out holdfast.Output) []byte {
	o, err := s.patient(ctx, f, c, end, func(ctx context.Context) (*holdfast.Outcome, error) {
		req, err := s.requestOf(ctx, c, boundary, payload)
		if err != nil {
			return nil, err
		}
		return s.Kernel.Cross(ctx, req, func(context.Context) (holdfast.Output, error) { return out, nil })
	})
	switch {
	case o != nil && o.Verdict == holdfast.Hold:
		return s.onHold(c, o)
	case o == nil || o.Verdict != holdfast.Allow || err != nil:
		return s.refusal(c, o, err, notBegun)
	}
	return nil
}
