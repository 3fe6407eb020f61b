package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// object builds a JSON object. The zero object is empty.
type object struct{ raw []byte }

// add appends a member unless v is nil. v must be valid JSON.
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

// newObject returns an empty object with room for size bytes.
func newObject(size int) object { return object{make([]byte, 0, size)} }

// bytes returns the object, "{}" if nothing was added.
func (o *object) bytes() []byte {
	if len(o.raw) == 0 {
		return []byte("{}")
	}
	return append(o.raw, '}')
}

// member returns the object, nil if nothing was added.
func (o *object) member() []byte {
	if len(o.raw) == 0 {
		return nil
	}
	return o.bytes()
}

// encode returns v as JSON. Callers pass strings, booleans and raw JSON that was
// parsed before, which cannot fail; an error returns null.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// quote returns s as a JSON string.
func quote(s string) []byte { return encode(s) }

// text returns the value of a JSON string, and whether v is one.
func text(v []byte) (string, bool) {
	if jsontext.Value(v).Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err == nil
}

// failure returns the line of a JSON-RPC error. A nil id is written as null.
func failure(id []byte, code int, why, hint string) []byte {
	if id == nil {
		id = []byte("null")
	}
	data := ""
	if hint != "" {
		data = `,"data":{"hint":` + string(quote(hint)) + `}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}`, id, code, quote(why), data)
}

// respond returns the line of a JSON-RPC result.
func respond(id, result []byte) []byte {
	return mcp.Message{ID: id, Result: result}.Line()
}
