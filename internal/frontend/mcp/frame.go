// Package mcp holds what both sides of the MCP gateway share: reading one
// JSON-RPC message from a line that anybody may have written, writing one anew
// from the members that have a meaning, and editing a value without touching
// the bytes that are not meant.
//
// Nothing here decodes a value and encodes it again: ids such as 1.5 and
// 9007199254740993, and all that stands inside params, results and errors,
// leave as the bytes that came. What stands beside those members, in the
// message itself, does not leave.
package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
)

// Limits of one frame. They hold before anything is parsed.
const (
	// MaxLine is the longest line in bytes, without its newline: a payload
	// (D7) and room for the envelope around it.
	MaxLine = holdfast.MaxPayload + 64<<10
	// MaxDepth is the deepest nesting of a frame, its root at 1. The
	// payload inside has the tighter limit of D7, which is K1's to judge.
	MaxDepth = 64
	// MaxID and MaxMethod bound the two texts that are kept while a
	// request is in flight, in bytes.
	MaxID     = 256
	MaxMethod = 128
)

// The JSON-RPC error codes of the protocol; what Holdfast refuses is errorcode.Refused.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeNoMethod       = -32601
	CodeBadParams      = -32602
	CodeInternal       = -32603
	// MCP 2026-07-28 adds these for HTTP.
	CodeHeaders    = -32020 // a header differs from the body, or cannot equal it
	CodeCapability = -32021 // a capability that the client does not have
	CodeVersion    = -32022 // a protocol version that is not spoken
)

// Fault says why a line was refused. The stream behind it goes on: the next
// line is read as if this one had not been there.
type Fault struct {
	// Code is CodeParse or CodeInvalidRequest.
	Code int
	// Why names the place; Hint says what to do, and may be empty.
	Why, Hint string
	// ID is the message's id where one could be read, else nil.
	ID []byte
	// Response says that the line looks like an answer, so that nobody
	// waits for an answer to it.
	Response bool
}

// Error returns Why.
func (f *Fault) Error() string { return f.Why }

// Message is a view of one line. All slices share the line's memory, keep its
// bytes, and must not be changed; nil means that the member is absent.
type Message struct {
	// Raw is the line without surrounding white space.
	Raw []byte
	// ID is a JSON string or number. A request without one is a
	// notification.
	ID []byte
	// Method is empty for a response.
	Method string
	// Params is a JSON object; Result any JSON value; Error an object. A
	// response has exactly one of Result and Error.
	Params, Result, Error []byte
	// Unknown is the name of the first member that JSON-RPC gives no
	// meaning; nil where there is none.
	Unknown *string
	// Header is what an HTTP request said of this message in its
	// Mcp-Param-* headers, by their names in lower case; nil elsewhere.
	Header map[string]string
}

// IsRequest says whether an answer is expected.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification says whether this is a method call that wants no answer.
func (m Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse says whether this answers a request.
func (m Message) IsResponse() bool { return m.Method == "" }

// Key returns a form of the id that is equal for equal ids: numbers by their
// text, strings by their value. The two never meet.
func (m Message) Key() string { return IDKey(m.ID) }

// IDKey is Key for an id that stands elsewhere, such as the requestId of a
// cancellation. It returns "" for what is no id.
func IDKey(id []byte) string {
	if len(id) == 0 || len(id) > MaxID {
		return ""
	}
	switch jsontext.Value(id).Kind() {
	case '0':
		return "n" + string(id)
	case '"':
		s, err := jsontext.AppendUnquote(nil, id)
		if err != nil {
			return ""
		}
		return "s" + string(s)
	}
	return ""
}

// Line writes the message from ID, Method, Params, Result and Error alone, each
// that is not absent; Raw and Unknown do not matter. Their bytes must be valid
// JSON of the right kind, as Parse leaves them.
func (m Message) Line() []byte {
	out := make([]byte, 0, len(m.ID)+len(m.Method)+len(m.Params)+len(m.Result)+len(m.Error)+64)
	out = append(out, `{"jsonrpc":"2.0"`...)
	add := func(name string, v []byte) {
		if v != nil {
			out = append(append(append(append(out, `,"`...), name...), `":`...), v...)
		}
	}
	add("id", m.ID)
	if m.Method != "" {
		add("method", quoted(m.Method))
	}
	add("params", m.Params)
	add("result", m.Result)
	add("error", m.Error)
	return append(out, '}')
}

// quoted writes a text that has been read from JSON, or by ourselves; were it
// no UTF-8, what is not would be replaced.
func quoted(s string) []byte {
	q, _ := jsontext.AppendQuote(nil, s)
	return q
}

// Parse reads one line. It refuses, with a *Fault, what is not exactly one
// JSON-RPC 2.0 message: other JSON, batches (gone since MCP 2025-06-18),
// duplicate names, invalid UTF-8, nesting below MaxDepth, names that differ
// from the protocol's only in case (a lax peer would read them as the real
// ones), and values of the wrong type.
func Parse(line []byte) (Message, error) {
	raw := bytes.TrimSpace(line)
	m := Message{Raw: raw}
	if err := check(raw); err != nil {
		err.ID = salvage(raw)
		return m, err
	}
	if err := m.read(); err != nil {
		err.ID, err.Response = m.ID, looksAnswered(m)
		return m, err
	}
	if err := m.shape(); err != nil {
		err.ID, err.Response = m.ID, looksAnswered(m)
		return m, err
	}
	return m, nil
}

func looksAnswered(m Message) bool {
	return m.Method == "" && (m.Result != nil || m.Error != nil)
}

// check judges the line as bytes.
func check(raw []byte) *Fault {
	if len(raw) > MaxLine {
		return tooLong()
	}
	if len(raw) == 0 {
		return &Fault{Code: CodeParse, Why: "the line is empty"}
	}
	if raw[0] == '[' {
		return &Fault{Code: CodeInvalidRequest, Why: "a batch is not accepted",
			Hint: "send one message on each line (batches left MCP with 2025-06-18)"}
	}
	if raw[0] != '{' {
		return &Fault{Code: CodeParse, Why: "the line is not a JSON object"}
	}
	if !utf8.Valid(raw) {
		return &Fault{Code: CodeParse, Why: fmt.Sprintf("invalid UTF-8 at byte %d", badUTF8(raw))}
	}
	if at := tooDeep(raw); at >= 0 {
		return &Fault{Code: CodeInvalidRequest, Why: fmt.Sprintf("nested deeper than %d at byte %d", MaxDepth, at)}
	}
	return nil
}

func tooLong() *Fault {
	return &Fault{Code: CodeInvalidRequest,
		Why:  fmt.Sprintf("the line is longer than %d bytes", MaxLine),
		Hint: fmt.Sprintf("a message holds at most %d bytes of payload", holdfast.MaxPayload)}
}

func badUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// tooDeep returns where the nesting passes MaxDepth, or -1. It runs before
// the parser, so that no depth can cost the parser its stack.
func tooDeep(raw []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// read finds the envelope's members.
func (m *Message) read() *Fault {
	d := jsontext.NewDecoder(bytes.NewBuffer(m.Raw))
	if _, err := d.ReadToken(); err != nil {
		return syntax(err)
	}
	version := false
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return syntax(err)
		}
		key := name.String()
		v, err := d.ReadValue()
		if err != nil {
			return syntax(err)
		}
		end := int(d.InputOffset())
		v = m.Raw[end-len(v) : end : end]
		if key == "jsonrpc" {
			version = string(v) == `"2.0"`
			continue
		}
		if f := m.member(key, v); f != nil {
			return f
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return syntax(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return &Fault{Code: CodeParse, Why: fmt.Sprintf("something follows the message at byte %d", d.InputOffset())}
	}
	if !version {
		return &Fault{Code: CodeInvalidRequest, Why: `jsonrpc is not "2.0"`}
	}
	return nil
}

// envelope is every name that JSON-RPC gives a meaning.
const envelope = "jsonrpc id method params result error"

func (m *Message) member(key string, v jsontext.Value) *Fault {
	kind := v.Kind()
	switch key {
	case "id":
		if (kind != '"' && kind != '0') || len(v) > MaxID {
			return &Fault{Code: CodeInvalidRequest, Why: fmt.Sprintf("id is not a string or a number of at most %d bytes", MaxID)}
		}
		m.ID = v
	case "method":
		s, err := jsontext.AppendUnquote(nil, v)
		if kind != '"' || err != nil || len(s) == 0 || len(s) > MaxMethod {
			return &Fault{Code: CodeInvalidRequest, Why: fmt.Sprintf("method is not a string of 1 to %d bytes", MaxMethod)}
		}
		m.Method = string(s)
	case "params":
		if kind != '{' {
			return &Fault{Code: CodeInvalidRequest, Why: "params is not an object"}
		}
		m.Params = v
	case "result":
		m.Result = v
	case "error":
		if kind != '{' {
			m.Error = v
			return &Fault{Code: CodeInvalidRequest, Why: "error is not an object"}
		}
		m.Error = v
	default:
		if real := Disguised(key, strings.Fields(envelope)...); real != "" {
			return &Fault{Code: CodeInvalidRequest, Why: fmt.Sprintf("member %q differs from %q only in case", key, real)}
		}
		if m.Unknown == nil {
			m.Unknown = &key
		}
	}
	return nil
}

// shape judges which members stand together.
func (m *Message) shape() *Fault {
	bad := func(why string) *Fault { return &Fault{Code: CodeInvalidRequest, Why: why} }
	switch {
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return bad("a message has both a method and an answer")
	case m.Method != "":
		return nil
	case m.Result != nil && m.Error != nil:
		return bad("an answer has both a result and an error")
	case m.Result == nil && m.Error == nil:
		return bad("a message has neither a method nor an answer")
	case m.ID == nil:
		return bad("an answer has no id")
	}
	return nil
}

// Disguised returns the name of names that key equals in every respect but
// letter case, or "". Decoders that ignore case would take one for the other,
// so that what was judged is not what is done.
func Disguised(key string, names ...string) string {
	for _, n := range names {
		if key != n && strings.EqualFold(key, n) {
			return n
		}
	}
	return ""
}

func syntax(err error) *Fault {
	var e *jsontext.SyntacticError
	if !errors.As(err, &e) {
		return &Fault{Code: CodeParse, Why: "the JSON ends too early"}
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return &Fault{Code: CodeParse, Why: fmt.Sprintf("duplicate name at %s", e.JSONPointer)}
	}
	return &Fault{Code: CodeParse, Why: fmt.Sprintf("not JSON at byte %d", e.ByteOffset)}
}
