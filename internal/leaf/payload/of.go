package payload

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
)

// Of makes a document of a Go value, for callers inside the process: nil,
// bool, string, json.Number, the integer types and float64, and map[string]any
// and []any of these. The result is Parse of its JSON text, so every rule of
// Parse holds.
//
// Anything else is a TypeError; a container inside itself, NaN, an infinity
// and a string that is not UTF-8 are CanonicalizeError (spec 003 section 1.6).
func Of(v any) (*Doc, error) {
	w := writer{}
	if err := w.value(v, ""); err != nil {
		return nil, err
	}
	return Parse(w.out)
}

type writer struct {
	out  []byte
	open []uintptr // the containers around the place
}

func (w *writer) value(v any, at string) error {
	switch v := v.(type) {
	case nil:
		w.out = append(w.out, "null"...)
	case bool:
		w.out = strconv.AppendBool(w.out, v)
	case string:
		return w.str(v, at)
	case json.Number:
		w.out = append(w.out, v...)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return misfit(holdfast.KindCanonicalize, "NaN and infinities are not JSON", at)
		}
		w.out = jsontext.AppendFloat(w.out, v, 64)
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		w.out = fmt.Append(w.out, v)
	case map[string]any:
		return w.object(v, at)
	case []any:
		return w.array(v, at)
	default:
		return misfit(holdfast.KindType, fmt.Sprintf("a Go value of type %T has no JSON form", v), at)
	}
	return w.room(at)
}

// room ends the writing of what Parse would refuse for its size anyway.
func (w *writer) room(at string) error {
	if len(w.out) > holdfast.MaxPayload {
		return misfit(holdfast.KindPayloadTooLarge, "document is above the limit of bytes", at)
	}
	return nil
}

func (w *writer) str(s, at string) error {
	if !utf8.ValidString(s) {
		return misfit(holdfast.KindCanonicalize, "a string is not valid UTF-8", at)
	}
	w.out, _ = jsontext.AppendQuote(w.out, s)
	return w.room(at)
}

// enter refuses a container that is already open, and more containers than
// Parse would take, so that the walk ends.
func (w *writer) enter(v any, at string) error {
	ptr := reflect.ValueOf(v).Pointer()
	for _, p := range w.open {
		if p == ptr && reflect.ValueOf(v).Len() > 0 {
			return misfit(holdfast.KindCanonicalize, "a container holds itself", at)
		}
	}
	if len(w.open) == holdfast.MaxDepth {
		return misfit(holdfast.KindPayloadTooLarge, fmt.Sprintf("more than %d containers inside each other", holdfast.MaxDepth), at)
	}
	w.open = append(w.open, ptr)
	return nil
}

func (w *writer) object(m map[string]any, at string) error {
	if err := w.enter(m, at); err != nil {
		return err
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	w.out = append(w.out, '{')
	for i, name := range names {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		here := at + "/" + escape(name)
		if err := w.str(name, here); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		if err := w.value(m[name], here); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	w.open = w.open[:len(w.open)-1]
	return nil
}

func (w *writer) array(list []any, at string) error {
	if err := w.enter(list, at); err != nil {
		return err
	}
	w.out = append(w.out, '[')
	for i, v := range list {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(v, at+"/"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	w.open = w.open[:len(w.open)-1]
	return nil
}

// misfit is refuse for a value that has no bytes yet.
func misfit(kind holdfast.Kind, why, pointer string) error {
	return &holdfast.Error{Kind: kind, Gate: holdfast.K5, Why: why + " at " + shown(pointer)}
}
