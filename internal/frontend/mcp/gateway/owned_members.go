package gateway

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// unowned is a JSON value without the members, at any depth, that only the
// gateway may write. Where there are none, as it should be, it is v itself.
func unowned(v []byte) ([]byte, error) {
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	enc := jsontext.NewEncoder(&out, jsontext.PreserveRawStrings(true))
	dropped := false
	for dec.PeekKind() != 0 {
		if inside, n := dec.StackIndex(dec.StackDepth()); inside == '{' && n%2 == 0 && dec.PeekKind() == '"' {
			raw, err := dec.ReadValue()
			if err != nil {
				return nil, err
			}
			if name, _ := mcp.Text(raw); own(name) {
				dropped = true
				if err := dec.SkipValue(); err != nil {
					return nil, err
				}
				continue
			}
			if err := enc.WriteValue(raw); err != nil {
				return nil, err
			}
			continue
		}
		if err := copyToken(enc, dec); err != nil {
			return nil, err
		}
	}
	if dec.StackDepth() != 0 || dec.InputOffset() == 0 {
		return nil, fmt.Errorf("the MCP server's JSON ends at byte %d", dec.InputOffset())
	}
	if !dropped {
		return v, nil
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// copyToken copies a bracket, or a value that has none.
func copyToken(enc *jsontext.Encoder, dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '{', '}', '[', ']':
		t, err := dec.ReadToken()
		if err != nil {
			return err
		}
		return enc.WriteToken(t)
	}
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	return enc.WriteValue(v)
}

// genuineError is a server's JSON-RPC error without what only the gateway may
// say: that a review waits, and where a person decides it.
func genuineError(e []byte) []byte {
	clean, err := unowned(e)
	if err != nil {
		return mcp.Encode(struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}{errorcode.Refused, "the MCP server answered with an error that cannot be read"})
	}
	return clean
}
