package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Bounds of the questions in one answer of a server.
const (
	maxInputs = 16
	maxKey    = 128 // bytes of a question's key
)

// codeAddress is the JSON-RPC error with which a server wants the client to
// open addresses before it asks again.
const codeAddress = -32042

// inputRequest is a question that a server asks of the client within its answer.
type inputRequest struct {
	method string
	// params are judged, and what the client gets.
	params []byte
}

// sorted returns the keys of m in their order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// own says whether a name in _meta is one that only Holdfast writes.
func own(name string) bool {
	return len(name) >= len(mcp.OwnPrefix) && (name[:len(mcp.OwnPrefix)] == mcp.OwnPrefix ||
		mcp.Disguised(name[:len(mcp.OwnPrefix)], mcp.OwnPrefix) != "")
}

// readQuestions reads the questions in a result that is not final. It returns
// why they are none, or "".
func (r *result) readQuestions() string {
	r.questions = map[string]inputRequest{}
	if t := r.fields.Get("requestState"); t != nil {
		state, ok := mcp.Text(t)
		if !ok || len(state) > maxTheirs {
			return fmt.Sprintf("the MCP server's requestState is not a string of at most %d bytes", maxTheirs)
		}
		r.theirs = &state
	}
	raw := r.fields.Get("inputRequests")
	if k := jsontext.Value(raw).Kind(); raw == nil || k == 'n' {
		return ""
	} else if k != '{' {
		return "the MCP server's inputRequests is not an object"
	}
	ms, err := mcp.Members(raw)
	if err != nil || len(ms) > maxInputs {
		return fmt.Sprintf("the MCP server asks more than %d questions at once", maxInputs)
	}
	for _, m := range ms {
		q, err := readQuestion(m.Value(raw))
		if err == nil && len(m.Name) > maxKey {
			err = fmt.Errorf("has a key of more than %d bytes", maxKey)
		}
		if err != nil {
			return fmt.Sprintf("the question %.40q of the MCP server %v", m.Name, err)
		}
		r.questions[m.Name] = q
	}
	return ""
}

func readQuestion(v []byte) (inputRequest, error) {
	o, err := readObject(v)
	if err != nil {
		return inputRequest{}, err
	}
	if err := undisguised("it", o, "method", "params"); err != nil {
		return inputRequest{}, errors.New("has a member that differs from its own only in case")
	}
	method, ok := mcp.Text(o.Get("method"))
	if !ok || method == "" || len(method) > mcp.MaxMethod {
		return inputRequest{}, fmt.Errorf("has no method of 1 to %d bytes", mcp.MaxMethod)
	}
	params := o.Get("params")
	if params == nil {
		params = []byte("{}")
	}
	if jsontext.Value(params).Kind() != '{' {
		return inputRequest{}, errors.New("has params that are no object")
	}
	params, err = withoutMeta(params)
	return inputRequest{method, params}, err
}

// withoutMeta is params without their _meta.
func withoutMeta(params []byte) ([]byte, error) {
	return mcp.Keep(params, func(name string) bool { return name != "_meta" })
}

// addresses reads the error that asks the client to open addresses, and says
// why it cannot be read. Any other error is none.
func addresses(e []byte) (map[string]inputRequest, string) {
	f := mcp.Fields(e)
	if n, err := strconv.ParseFloat(string(f["code"]), 64); err != nil || n != codeAddress {
		return nil, ""
	}
	items, err := mcp.Elements(mcp.Get(f["data"], "elicitations"))
	if err != nil || len(items) > maxInputs {
		return nil, fmt.Sprintf("the MCP server wants the client to open addresses (error %d), and not a list of at most %d", codeAddress, maxInputs)
	}
	qs := make(map[string]inputRequest, len(items))
	for i, item := range items {
		if jsontext.Value(item).Kind() != '{' {
			return nil, fmt.Sprintf("an address of the MCP server's error %d is not an object", codeAddress)
		}
		qs[fmt.Sprintf("address %02d", i)] = inputRequest{askElicit, item}
	}
	return qs, ""
}

// answered is the client's answers as the server gets them, nil for none.
func (c *call) answered() []byte {
	if c.answers == nil {
		return nil
	}
	var out mcp.Builder
	for _, key := range sorted(c.answers) {
		out.Add(key, c.answers[key])
	}
	return out.Bytes()
}

// retried is what the server gets beside the params of a request that it has
// asked questions about.
func (c *call) retried() []field {
	if c.state == nil {
		return nil
	}
	var ms []field
	if a := c.answered(); a != nil {
		ms = append(ms, field{"inputResponses", a})
	}
	if c.state.Theirs != nil {
		ms = append(ms, field{"requestState", mcp.Quote(*c.state.Theirs)})
	}
	return ms
}

// readRetry reads what a client brings with a retry. Its error is the client's
// fault.
func (s *session) readRetry(c *call) error {
	raw, t := c.Get("inputResponses"), c.Get("requestState")
	if raw == nil && t == nil || !asks(c.Method) || c.extras != nil && !c.retries() {
		return nil
	}
	if !c.stateless {
		return errors.New("params.inputResponses and params.requestState are not of this protocol version")
	}
	if t == nil {
		return nil // answers to nothing that was asked stay here
	}
	given, ok := mcp.Text(t)
	if !ok {
		return errors.New("params.requestState is not the string that came with the questions")
	}
	st, err := s.unseal(given, c, time.Now())
	if err != nil {
		return err
	}
	c.state = &st
	brought := mcp.Fields(raw)
	if raw != nil && jsontext.Value(raw).Kind() != '{' {
		return errors.New("params.inputResponses is not an object")
	}
	if st.Review != "" {
		action, _ := mcp.Text(mcp.Get(brought[approvalKey], "action"))
		c.accepted = action == "accept"
		if st.Answers == "" {
			return nil
		}
		brought, raw = mcp.Fields([]byte(st.Answers)), []byte(st.Answers)
	}
	if raw == nil {
		return nil
	}
	return c.takeAnswers(brought)
}

// takeAnswers keeps what answers a question that was asked. What else the
// client brought stays here.
func (c *call) takeAnswers(brought map[string][]byte) error {
	c.answers = map[string][]byte{}
	for key, v := range brought {
		q, ok := c.state.Asked[key]
		if !ok {
			continue
		}
		if err := fits(q.Method, v); err != nil {
			return fmt.Errorf("params.inputResponses[%.40q] %w", key, err)
		}
		c.answers[key] = v
	}
	return nil
}

// fits says why a value is no answer to a question. A server may take an
// answer for one to another question by the members that it has.
func fits(method string, v []byte) error {
	o, err := readObject(v)
	if err != nil {
		return err
	}
	var names []string
	switch method {
	case askRoots:
		names = []string{"roots"}
	case askElicit:
		names = []string{"action", "content"}
	case askSampling:
		names = []string{"role", "content", "model", "stopReason"}
	default:
		return nil
	}
	for _, m := range o.Members {
		if m.Name != "_meta" && m.Name != "resultType" && !slices.Contains(names, m.Name) {
			return fmt.Errorf("has a member %.40q, which no answer to %s has", m.Name, method)
		}
	}
	return nil
}

// abilities is what the client of a call can be asked.
func (s *session) abilities(c *call) abilities {
	if c.stateless {
		return readAbilities(c.meta.Get(mcp.MetaCapabilities))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clientCan
}

// questioned passes the server's questions on: each is a crossing of its own,
// and where one is not allowed the call has failed.
func (s *session) questioned(ctx context.Context, a *act, o *holdfast.Outcome, got result) []byte {
	can := s.abilities(a.c)
	for _, key := range sorted(got.questions) {
		q := got.questions[key]
		boundary := methodBoundary("client", s.Server, q.method)
		switch {
		case !s.mayAsk(q.method):
			return s.unfit(a, o, fmt.Sprintf("the MCP server asks the client for %.100s, which holdfast does not pass", q.method),
				"a contract for "+boundary+" would let it ask")
		case !can.can(q.method) || got.Error != nil && !can.url:
			return s.unfit(a, o, fmt.Sprintf("the MCP server asks the client for %.100s, of which the client did not say that it can", q.method), "")
		}
		if line := s.permit(ctx, a.f, a.c, time.Now().Add(s.Wait), boundary, q.params, holdfast.Output{Body: []byte("{}"), ExitCode: 1}); line != nil {
			return line
		}
	}
	if got.Error != nil {
		return mcp.Message{ID: a.c.ID, Error: got.Error}.Line()
	}
	st := state{Boundary: a.c.boundary, Request: a.c.asked, Until: time.Now().Add(askedFor).Unix(),
		Theirs: got.theirs, Asked: map[string]askedOf{}}
	var asks mcp.Builder
	for _, key := range sorted(got.questions) {
		q := got.questions[key]
		st.Asked[key] = askedOf{q.method, string(q.params)}
		var one mcp.Builder
		one.Add("method", mcp.Quote(q.method))
		one.Add("params", q.params)
		asks.Add(key, one.Bytes())
	}
	sealed, err := s.seal(st)
	if err != nil {
		return s.unfit(a, o, "the MCP server's questions cannot be passed: "+err.Error(), "")
	}
	return s.withQuestions(a, o, got, asks.BytesOrNil(), sealed)
}

// withQuestions is the server's result with the questions that were judged and
// our state.
func (s *session) withQuestions(a *act, o *holdfast.Outcome, got result, asks []byte, sealed string) []byte {
	raw, err := mcp.Keep(genuine(got.fields), func(name string) bool { return name != "inputRequests" })
	for _, m := range []field{{"resultType", []byte(`"input_required"`)}, {"inputRequests", asks},
		{"requestState", mcp.Quote(sealed)}} {
		if err == nil && m.value != nil {
			raw, err = mcp.Set(raw, m.value, m.name)
		}
	}
	if err != nil {
		return s.unfit(a, o, "the MCP server's questions cannot be passed: "+err.Error(), "")
	}
	return mcp.Respond(a.c.ID, raw)
}
