package gateway

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/mcp"
)

// Bounds of the texts beside a call's arguments that reach the server, in
// bytes: nothing judges them.
const (
	maxWord     = 256     // versions, names, titles and the W3C traceparent
	maxState    = 512     // the W3C tracestate
	maxBaggage  = 1 << 10 // the W3C baggage
	maxCursor   = 1 << 10
	maxProgress = 32 // the spelling of a number in a notification
)

// object is a JSON object in the making; the zero object is empty.
type object struct{ raw []byte }

// add writes a member at the end, unless v is nil. v must be valid JSON.
func (o *object) add(name string, v []byte) {
	if v == nil {
		return
	}
	comma := byte(',')
	if len(o.raw) == 0 {
		comma = '{'
	}
	o.raw = append(append(append(append(o.raw, comma), quote(name)...), ':'), v...)
}

// bytes returns the object, "{}" where nothing was added.
func (o *object) bytes() []byte {
	if len(o.raw) == 0 {
		return []byte("{}")
	}
	return append(o.raw, '}')
}

// member is bytes, or nil where nothing was added.
func (o *object) member() []byte {
	if len(o.raw) == 0 {
		return nil
	}
	return o.bytes()
}

// passed returns the params with which a request that is no crossing reaches
// the server: the members that its method gives a meaning, nil where the client
// sent none. Nothing judges such a request, so that whatever else stands in it
// stays here.
func (p params) passed(method string) ([]byte, error) {
	if method == "ping" || p.Raw == nil && method != "logging/setLevel" {
		return nil, nil
	}
	var out object
	for _, name := range passedNames(method) {
		v, err := passedValue(name, p.Get(name))
		if err != nil {
			return nil, fmt.Errorf("params.%s %w", name, err)
		}
		out.add(name, v)
	}
	if method == "logging/setLevel" && len(out.raw) == 0 {
		return nil, errors.New("params.level is missing")
	}
	meta, err := p.handshake()
	if err != nil {
		return nil, err
	}
	out.add("_meta", meta)
	return out.bytes(), nil
}

// passedNames is what the params of a request that is no crossing may hold
// beside _meta.
func passedNames(method string) []string {
	switch method {
	case "initialize":
		return []string{"protocolVersion", "capabilities", "clientInfo"}
	case "tools/list":
		return []string{"cursor"}
	case "logging/setLevel":
		return []string{"level"}
	}
	return nil
}

// passedValue returns a parameter as the server gets it, nil where there is
// none.
func passedValue(name string, v []byte) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	switch name {
	case "protocolVersion":
		return word(v, maxWord)
	case "capabilities":
		return none(v)
	case "clientInfo":
		return implementation(v)
	case "cursor":
		if string(v) == "null" {
			return nil, nil
		}
		return word(v, maxCursor)
	case "level":
		return level(v)
	}
	return nil, nil
}

// sent returns the params of the tools/call that the server gets: the tool, the
// bytes that were judged, and a _meta that is made anew. A traceparent that is
// not "" replaces the client's.
func (c call) sent(traceparent string) ([]byte, error) {
	meta, err := c.sentMeta(traceparent)
	if err != nil {
		return nil, err
	}
	out := object{make([]byte, 0, len(c.args)+len(meta)+len(c.tool)+64)}
	out.add("name", quote(c.tool))
	out.add("arguments", c.args)
	out.add("_meta", meta)
	return out.bytes(), nil
}

func (c call) sentMeta(traceparent string) ([]byte, error) {
	var meta object
	for _, m := range c.meta.Members {
		if m.Name == metaTraceparent && traceparent != "" {
			continue
		}
		v, err := callMeta(m.Name, m.Value(c.meta.Raw))
		if err != nil {
			return nil, fmt.Errorf("params._meta.%s %w", m.Name, err)
		}
		meta.add(m.Name, v)
	}
	if traceparent != "" {
		meta.add(metaTraceparent, quote(traceparent))
	}
	return meta.member(), nil
}

// callMeta returns a member of a call's _meta as the server gets it, or nil
// where it does not: hosts write there what they like.
func callMeta(name string, v []byte) ([]byte, error) {
	most := maxWord
	switch name {
	case metaProgress:
		if mcp.IDKey(v) == "" {
			return nil, fmt.Errorf("is not a string or a number of at most %d bytes", mcp.MaxID)
		}
		return v, nil
	case metaTraceparent:
	case metaTracestate:
		most = maxState
	case metaBaggage:
		most = maxBaggage
	default:
		return handshakeMeta(name, v)
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
func (p params) handshake() ([]byte, error) {
	var out object
	for _, m := range p.meta.Members {
		v, err := handshakeMeta(m.Name, m.Value(p.meta.Raw))
		if err != nil {
			return nil, fmt.Errorf("params._meta.%s %w", m.Name, err)
		}
		out.add(m.Name, v)
	}
	return out.member(), nil
}

// handshakeMeta is callMeta for the members that stand for a handshake. The
// client's capabilities are emptied: each would invite the server to ask the
// client something, and the gateway refuses each such question.
func handshakeMeta(name string, v []byte) ([]byte, error) {
	switch name {
	case metaProtocol:
		return word(v, maxWord)
	case metaClientInfo:
		return implementation(v)
	case metaCapabilities:
		return none(v)
	case metaLogLevel:
		return level(v)
	}
	return nil, nil
}

// word returns a string of at most n bytes.
func word(v []byte, n int) ([]byte, error) {
	s, ok := text(v)
	if !ok || len(s) > n {
		return nil, fmt.Errorf("is not a string of at most %d bytes", n)
	}
	return quote(s), nil
}

// implementation returns what a program says of itself: its name, title and
// version.
func implementation(v []byte) ([]byte, error) {
	o, err := readObject(v)
	if err != nil {
		return nil, err
	}
	var out object
	for _, name := range []string{"name", "title", "version"} {
		part := o.Get(name)
		if part == nil {
			continue
		}
		w, err := word(part, maxWord)
		if err != nil {
			return nil, fmt.Errorf("has a %s that %w", name, err)
		}
		out.add(name, w)
	}
	return out.bytes(), nil
}

// none returns an object without its members.
func none(v []byte) ([]byte, error) {
	if _, err := readObject(v); err != nil {
		return nil, err
	}
	return []byte("{}"), nil
}

func readObject(v []byte) (mcp.Object, error) {
	if jsontext.Value(v).Kind() != '{' {
		return mcp.Object{}, errors.New("is not an object")
	}
	return mcp.ReadObject(v)
}

// level returns a severity, which is one of RFC 5424's as MCP spells them.
func level(v []byte) ([]byte, error) {
	s, _ := text(v)
	if !slices.Contains([]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}, s) {
		return nil, errors.New("is not one of debug, info, notice, warning, error, critical, alert and emergency")
	}
	return quote(s), nil
}

// number returns v where it is a JSON number of few bytes, else nil.
func number(v []byte) []byte {
	if len(v) > maxProgress || jsontext.Value(v).Kind() != '0' {
		return nil
	}
	return v
}
