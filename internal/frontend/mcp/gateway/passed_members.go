package gateway

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Bounds of the texts beside a call's arguments that reach the server, in
// bytes: nothing judges them.
const (
	maxState    = 512     // the W3C tracestate
	maxBaggage  = 1 << 10 // the W3C baggage
	maxProgress = 32      // the spelling of a number in a notification
	maxCount    = 1 << 53
)

// field is a member of an object: a name and valid JSON.
type field struct {
	name  string
	value []byte
}

// addMembers returns the object raw with members at its end.
func addMembers(raw []byte, ms []field) ([]byte, error) {
	for _, m := range ms {
		changed, err := mcp.Set(raw, m.value, m.name)
		if err != nil {
			return nil, err
		}
		raw = changed
	}
	return raw, nil
}

// passed returns the params with which a request that is no crossing reaches
// the server: the members that its method gives a meaning, nil where the client
// sent none. Nothing judges such a request, so that whatever else stands in it
// stays here.
func (s *session) passed(method string, p params) ([]byte, error) {
	if method == "ping" || p.Raw == nil && method != "logging/setLevel" {
		return nil, nil
	}
	var out mcp.Builder
	for _, name := range passedNames(method) {
		v, err := s.passedValue(name, p.Get(name))
		if err != nil {
			return nil, fmt.Errorf("params.%s %w", name, err)
		}
		out.Add(name, v)
	}
	if method == "logging/setLevel" && out.BytesOrNil() == nil {
		return nil, errors.New("params.level is missing")
	}
	meta, err := s.handshake(p)
	if err != nil {
		return nil, err
	}
	out.Add("_meta", meta)
	return out.Bytes(), nil
}

// passedNames is what the params of a request that is no crossing may hold
// beside _meta.
func passedNames(method string) []string {
	switch method {
	case "initialize":
		return []string{"protocolVersion", "capabilities", "clientInfo"}
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		return []string{"cursor"}
	case "logging/setLevel":
		return []string{"level"}
	}
	return nil
}

// passedValue returns a parameter as the server gets it, nil where there is
// none.
func (s *session) passedValue(name string, v []byte) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	switch name {
	case "protocolVersion":
		return word(v, mcp.MaxWord)
	case "capabilities":
		return s.shownCapabilities(v)
	case "clientInfo":
		return implementation(v)
	case "cursor":
		if string(v) == "null" {
			return nil, nil
		}
		return word(v, mcp.MaxCursor)
	case "level":
		return level(v)
	}
	return nil, nil
}

// sent returns the params of a crossing as the server gets them: the bytes that
// were judged, the answers that were, the server's own state, and a _meta that
// is made anew. A traceparent that is not "" replaces the client's, and token
// its progress token.
func (s *session) sent(c *call, traceparent, token string) ([]byte, error) {
	meta, err := s.sentMeta(c, traceparent, token)
	if err != nil {
		return nil, err
	}
	if c.tool == "" {
		out, err := addMembers(c.payload, c.retried())
		if err != nil || meta == nil {
			return out, err
		}
		return mcp.Set(out, meta, "_meta")
	}
	out := mcp.NewBuilder(len(c.payload) + len(meta) + len(c.tool) + 64)
	out.Add("name", mcp.Quote(c.tool))
	out.Add("arguments", c.payload)
	for _, m := range c.extra {
		out.Add(m.name, m.value)
	}
	for _, m := range c.retried() {
		out.Add(m.name, m.value)
	}
	out.Add("_meta", meta)
	return out.Bytes(), nil
}

func (s *session) sentMeta(c *call, traceparent, token string) ([]byte, error) {
	var meta mcp.Builder
	for _, m := range c.meta.Members {
		if m.Name == mcp.MetaTraceparent && traceparent != "" || m.Name == mcp.MetaProgress && token != "" {
			continue
		}
		if c.search != nil && (m.Name == mcp.MetaTracestate || m.Name == mcp.MetaBaggage) &&
			!c.search.IsClean(m.Value(c.meta.Raw)) {
			continue
		}
		v, err := s.callMeta(m.Name, m.Value(c.meta.Raw))
		if err != nil {
			return nil, fmt.Errorf("params._meta.%s %w", m.Name, err)
		}
		meta.Add(m.Name, v)
	}
	if traceparent != "" {
		meta.Add(mcp.MetaTraceparent, mcp.Quote(traceparent))
	}
	if token != "" {
		meta.Add(mcp.MetaProgress, []byte(token))
	}
	for _, m := range c.extraMeta {
		meta.Add(m.name, m.value)
	}
	return meta.BytesOrNil(), nil
}

// callMeta returns a member of a call's _meta as the server gets it, or nil
// where it does not: hosts write there what they like.
func (s *session) callMeta(name string, v []byte) ([]byte, error) {
	most := mcp.MaxWord
	switch name {
	case mcp.MetaProgress:
		if mcp.IDKey(v) == "" {
			return nil, fmt.Errorf("is not a string or a number of at most %d bytes", mcp.MaxID)
		}
		return v, nil
	case mcp.MetaTraceparent:
	case mcp.MetaTracestate:
		most = maxState
	case mcp.MetaBaggage:
		most = maxBaggage
	default:
		return s.handshakeMeta(name, v)
	}
	// A trace that cannot be read is begun anew, as W3C has it.
	w, err := word(v, most)
	if err != nil {
		return nil, nil
	}
	return w, nil
}

// handshake returns what a request's _meta says in place of a handshake, nil
// where it says nothing.
func (s *session) handshake(p params) ([]byte, error) {
	var out mcp.Builder
	for _, m := range p.meta.Members {
		v, err := s.handshakeMeta(m.Name, m.Value(p.meta.Raw))
		if err != nil {
			return nil, fmt.Errorf("params._meta.%s %w", m.Name, err)
		}
		out.Add(m.Name, v)
	}
	return out.BytesOrNil(), nil
}

// handshakeMeta is callMeta for the members that stand for a handshake.
func (s *session) handshakeMeta(name string, v []byte) ([]byte, error) {
	switch name {
	case mcp.MetaProtocol:
		return word(v, mcp.MaxWord)
	case mcp.MetaClientInfo:
		return implementation(v)
	case mcp.MetaCapabilities:
		return s.shownCapabilities(v)
	case mcp.MetaLogLevel:
		return level(v)
	}
	return nil, nil
}

// word returns a string of at most n bytes.
func word(v []byte, n int) ([]byte, error) {
	s, ok := mcp.Text(v)
	if !ok || len(s) > n {
		return nil, fmt.Errorf("is not a string of at most %d bytes", n)
	}
	return mcp.Quote(s), nil
}

// implementation returns what a program says of itself: its name, title and
// version.
func implementation(v []byte) ([]byte, error) {
	o, err := readObject(v)
	if err != nil {
		return nil, err
	}
	var out mcp.Builder
	for _, name := range []string{"name", "title", "version"} {
		part := o.Get(name)
		if part == nil {
			continue
		}
		w, err := word(part, mcp.MaxWord)
		if err != nil {
			return nil, fmt.Errorf("has a %s that %w", name, err)
		}
		out.Add(name, w)
	}
	return out.Bytes(), nil
}

func readObject(v []byte) (mcp.Object, error) {
	if jsontext.Value(v).Kind() != '{' {
		return mcp.Object{}, errors.New("is not an object")
	}
	return mcp.ReadObject(v)
}

// level returns a severity, which is one of RFC 5424's as MCP spells them.
func level(v []byte) ([]byte, error) {
	s, _ := mcp.Text(v)
	if !slices.Contains([]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}, s) {
		return nil, errors.New("is not one of debug, info, notice, warning, error, critical, alert and emergency")
	}
	return mcp.Quote(s), nil
}

// number returns v where it is a JSON number of few bytes, else nil.
func number(v []byte) []byte {
	if len(v) > maxProgress || jsontext.Value(v).Kind() != '0' {
		return nil
	}
	return v
}
