package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a schema, checked before anything is compiled. They are far above
// what tools declare.
const (
	MaxSchema     = 1 << 20 // bytes
	maxNesting    = 128     // containers inside each other
	maxContainers = 4096    // objects, arrays and booleans, any of which may be a schema
	maxList       = 256     // elements of an array that holds containers
	maxExponent   = 400     // of a number, either sign
	maxDigits     = 400     // characters of a number
)

// reader builds the tree that is compiled.
type reader struct {
	dec        *jsontext.Decoder
	depth      int
	containers int
}

func read(raw []byte) (any, error) {
	if len(raw) > MaxSchema {
		return nil, &flaw{why: fmt.Sprintf("%d bytes are above the limit of %d", len(raw), MaxSchema)}
	}
	r := reader{dec: jsontext.NewDecoder(bytes.NewBuffer(raw))}
	doc, err := r.value()
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.ReadToken(); err != io.EOF {
		return nil, &flaw{why: fmt.Sprintf("something follows the schema (byte %d)", r.dec.InputOffset())}
	}
	return doc, nil
}

func (r *reader) value() (any, error) {
	t, err := r.dec.ReadToken()
	if err != nil {
		return nil, r.syntax(err)
	}
	switch t.Kind() {
	case '{', '[', 't', 'f':
		r.containers++
		if r.containers > maxContainers {
			return nil, r.flaw("more than %d subschemas and lists", maxContainers)
		}
	}
	switch t.Kind() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return t.String(), nil
	case 't', 'f':
		return t.Bool(), nil
	case 'n':
		return nil, nil
	}
	n := t.String()
	if !exactly(n) {
		return nil, r.flaw("a number is too long to compare exactly")
	}
	return json.Number(n), nil
}

func (r *reader) object() (any, error) {
	if r.depth++; r.depth > maxNesting {
		return nil, r.flaw("more than %d levels", maxNesting)
	}
	m := map[string]any{}
	for r.dec.PeekKind() != '}' {
		t, err := r.dec.ReadToken()
		if err != nil {
			return nil, r.syntax(err)
		}
		name := t.String()
		if m[name], err = r.value(); err != nil {
			return nil, err
		}
		if n, ok := m[name].(json.Number); ok && counts(name) && !countable(n) {
			return nil, r.flaw("a length or count is out of range")
		}
	}
	r.depth--
	_, err := r.dec.ReadToken()
	return m, r.syntax(err)
}

func (r *reader) array() (any, error) {
	if r.depth++; r.depth > maxNesting {
		return nil, r.flaw("more than %d levels", maxNesting)
	}
	list, nested := []any{}, false
	for r.dec.PeekKind() != ']' {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		switch v.(type) {
		case map[string]any, []any:
			nested = true
		}
		if list = append(list, v); nested && len(list) > maxList {
			return nil, r.flaw("a list of more than %d", maxList)
		}
	}
	r.depth--
	_, err := r.dec.ReadToken()
	return list, r.syntax(err)
}

func (r *reader) flaw(format string, args ...any) error {
	return &flaw{pointer: string(r.dec.StackPointer()), why: fmt.Sprintf(format, args...)}
}

func (r *reader) syntax(err error) error {
	if err == nil {
		return nil
	}
	f := &flaw{why: fmt.Sprintf("not valid JSON (byte %d)", r.dec.InputOffset())}
	var s *jsontext.SyntacticError
	if errors.As(err, &s) {
		f.pointer = string(s.JSONPointer)
		f.why = fmt.Sprintf("not valid JSON (byte %d)", s.ByteOffset)
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		f.why, f.hint = "a member name occurs twice", "give each member of an object its own name"
	}
	return f
}

// counts says whether a keyword holds a length or a count, which must fit into
// an int.
func counts(keyword string) bool {
	switch keyword {
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		return true
	}
	return false
}

func countable(n json.Number) bool {
	d, ok := parseDecimal(string(n))
	return ok && d.compare(decimal{digits: "1", exp: 15}) < 0
}

// exactly says whether a number is short enough to be compared digit by
// digit and to be turned into a fraction.
func exactly(n string) bool {
	if len(n) > maxDigits {
		return false
	}
	i := strings.IndexAny(n, "eE")
	if i < 0 {
		return true
	}
	e, err := strconv.Atoi(n[i+1:])
	return err == nil && -maxExponent <= e && e <= maxExponent
}
