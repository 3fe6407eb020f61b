package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Builder builds a JSON object. The zero Builder is empty.
type Builder struct{ raw []byte }

// Add appends a member unless v is nil. v must be valid JSON.
func (o *Builder) Add(name string, v []byte) {
	if v == nil {
		return
	}
	comma := byte(',')
	if len(o.raw) == 0 {
		comma = '{'
	}
	o.raw = append(append(append(append(o.raw, comma), Quote(name)...), ':'), v...)
}

// NewBuilder returns an empty object with room for size bytes.
func NewBuilder(size int) Builder { return Builder{make([]byte, 0, size)} }

// Bytes returns the object, "{}" if nothing was added.
func (o *Builder) Bytes() []byte {
	if len(o.raw) == 0 {
		return []byte("{}")
	}
	return append(o.raw, '}')
}

// BytesOrNil returns the object, nil if nothing was added.
func (o *Builder) BytesOrNil() []byte {
	if len(o.raw) == 0 {
		return nil
	}
	return o.Bytes()
}

// Encode returns v as JSON. Callers pass strings, booleans and raw JSON that was
// parsed before, which cannot fail; an error returns null.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Quote returns s as a JSON string.
func Quote(s string) []byte { return Encode(s) }

// Text returns the value of a JSON string, and whether v is one.
func Text(v []byte) (string, bool) {
	if jsontext.Value(v).Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err == nil
}

// Failure returns the line of a JSON-RPC error. A nil id is written as null.
func Failure(id []byte, code int, why, hint string) []byte {
	if id == nil {
		id = []byte("null")
	}
	data := ""
	if hint != "" {
		data = `,"data":{"hint":` + string(Quote(hint)) + `}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}`, id, code, Quote(why), data)
}

// Respond returns the line of a JSON-RPC result.
func Respond(id, result []byte) []byte {
	return Message{ID: id, Result: result}.Line()
}
