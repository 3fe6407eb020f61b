package filter

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
)

// KeyForm is the form in which WriteKey writes a document's key.
type KeyForm int

// The forms.
const (
	KeyHash      KeyForm = iota // the RFC 8785 key
	KeyExact                    // the exact hash
	KeyCanonical                // the canonical form itself
	KeyJSON                     // key, exact hash and sizes, as JSON
)

// WriteKey writes the key of the JSON document b, which messages call name.
func WriteKey(out io.Writer, name string, b []byte, form KeyForm) error {
	doc, err := payload.Parse(b)
	if err != nil {
		return AddPlace(name, err)
	}
	switch form {
	case KeyJSON:
		return WriteJSON(out, map[string]any{"key": doc.Key(), "exact_hash": doc.Exact(), "bytes": doc.Size(), "depth": doc.Depth()})
	case KeyCanonical:
		_, err = out.Write(append(slices.Clip(doc.Canonical()), '\n'))
	case KeyExact:
		_, err = fmt.Fprintln(out, doc.Exact())
	default:
		_, err = fmt.Fprintln(out, doc.Key())
	}
	return err
}

// WriteJSON writes one value as JSON for people.
func WriteJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
