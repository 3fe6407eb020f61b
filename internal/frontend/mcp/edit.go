package mcp

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// span is a half-open range of bytes.
type span struct{ from, to int }

// Member is one member of an object, by its place in the object's bytes.
type Member struct {
	Name string
	// from is where the name begins; value where the value stands.
	from  int
	value span
}

// Value returns the member's value, as a part of the object it was listed of.
func (m Member) Value(obj []byte) []byte { return obj[m.value.from:m.value.to:m.value.to] }

// Members lists the members of an object in their order, without looking
// inside the values. obj must be valid JSON.
func Members(obj []byte) ([]Member, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(obj), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, fmt.Errorf("not an object")
	}
	var ms []Member
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m := Member{from: int(d.InputOffset()) - len(name)}
		s, err := jsontext.AppendUnquote(nil, name)
		if err != nil {
			return nil, err
		}
		m.Name = string(s)
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = span{int(d.InputOffset()) - len(v), int(d.InputOffset())}
		ms = append(ms, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	return ms, nil
}

// Object is an object whose members have been found once. The zero Object has
// none.
type Object struct {
	Raw     []byte
	Members []Member
}

// ReadObject finds the members of raw, which must be valid JSON.
func ReadObject(raw []byte) (Object, error) {
	ms, err := Members(raw)
	return Object{raw, ms}, err
}

// Get returns a member's value, as a part of Raw, or nil.
func (o Object) Get(name string) []byte {
	for _, m := range o.Members {
		if m.Name == name {
			return m.Value(o.Raw)
		}
	}
	return nil
}

// With returns a copy of Raw in which the member's value is v; a member that
// is missing is added at the end. All other bytes stay.
func (o Object) With(name string, v []byte) ([]byte, error) {
	for _, m := range o.Members {
		if m.Name == name {
			return bytes.Join([][]byte{o.Raw[:m.value.from], v, o.Raw[m.value.to:]}, nil), nil
		}
	}
	end, comma := bytes.LastIndexByte(o.Raw, '}'), ","
	if len(o.Members) == 0 {
		comma = ""
	}
	if end < 0 {
		return nil, fmt.Errorf("not an object")
	}
	quoted, err := jsontext.AppendQuote([]byte(comma), name)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{o.Raw[:end], quoted, []byte(":"), v, o.Raw[end:]}, nil), nil
}

// Fields returns the values of an object by name, as parts of obj. A value
// that is no object has none.
func Fields(obj []byte) map[string][]byte {
	ms, err := Members(obj)
	if err != nil {
		return nil
	}
	fs := make(map[string][]byte, len(ms))
	for _, m := range ms {
		fs[m.Name] = m.Value(obj)
	}
	return fs
}

// Get returns the value at a path of names, or nil.
func Get(obj []byte, path ...string) []byte {
	for _, name := range path {
		if obj = Fields(obj)[name]; obj == nil {
			return nil
		}
	}
	return obj
}

// Set returns a copy of obj in which the value at path is v. Objects that are
// missing on the way are made at the end of theirs; a value on the way that is
// no object is an error. All other bytes stay.
func Set(obj, v []byte, path ...string) ([]byte, error) {
	if len(path) == 0 {
		return v, nil
	}
	o, err := ReadObject(obj)
	if err != nil {
		return nil, err
	}
	was := o.Get(path[0])
	if was == nil {
		was = []byte("{}")
	}
	in, err := Set(was, v, path[1:]...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path[0], err)
	}
	return o.With(path[0], in)
}

// Keep returns obj with only the members whose names keep accepts. Where none
// goes, it is obj itself; else the bytes of those that stay are as they were.
func Keep(obj []byte, keep func(name string) bool) ([]byte, error) {
	ms, err := Members(obj)
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, 0, len(ms))
	for _, m := range ms {
		if keep(m.Name) {
			parts = append(parts, obj[m.from:m.value.to])
		}
	}
	return rebuild(obj, parts, len(ms), "{", "}"), nil
}

// Elements returns the values of an array, as parts of arr.
func Elements(arr []byte) ([][]byte, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(arr), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, fmt.Errorf("not an array")
	}
	var vs [][]byte
	for k := d.PeekKind(); k != ']'; k = d.PeekKind() {
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(d.InputOffset())
		vs = append(vs, arr[end-len(v):end:end])
	}
	return vs, nil
}

// KeepElements is Keep for an array, by the index of each element.
func KeepElements(arr []byte, keep func(i int) bool) ([]byte, error) {
	vs, err := Elements(arr)
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, 0, len(vs))
	for i, v := range vs {
		if keep(i) {
			parts = append(parts, v)
		}
	}
	return rebuild(arr, parts, len(vs), "[", "]"), nil
}

func rebuild(whole []byte, parts [][]byte, was int, left, right string) []byte {
	if len(parts) == was {
		return whole
	}
	return bytes.Join([][]byte{[]byte(left), bytes.Join(parts, []byte(",")), []byte(right)}, nil)
}

// ReplaceLineEnds replaces each line end of valid JSON, which is white space there, by a
// space, in place. It returns b.
func ReplaceLineEnds(b []byte) []byte {
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return b
}
