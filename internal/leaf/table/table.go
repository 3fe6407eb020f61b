// Package table declares the tables in which the kernel and its features keep rows, and
// gives each a Go type for its key and one for its row. A store makes a table from its Def
// alone, without SQL written for it; a Table reads and writes typed rows through whatever
// implements Reader and Writer.
package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Bounds of what is stored. A store refuses what is beyond them.
const (
	MaxKey = 1024    // bytes of one part of a key, or of one indexed field
	MaxDoc = 1 << 20 // bytes of a row as JSON
)

// What a Reader and a Writer return, wrapped or not.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrConflict = errors.New("changed in the meantime")
)

// Column is one column of a table: a part of the key, or an indexed field.
type Column struct {
	Name string
	// Whole says that it holds a 64-bit whole number; otherwise it holds text.
	Whole bool
}

// Def describes one table. It is made by New and must not be changed.
type Def struct {
	// Name is lower-case letters and "_". A store's table is called row_NAME.
	Name string
	// Key has the parts of the key, in order. A part that is called "tenant" is the row's
	// tenant; a table without one belongs to no tenant.
	Key []Column
	// Indexes has the indexed fields of a row, each with a separate index that is ordered by
	// the field and then by the key.
	Indexes []Column
	// Sums has the whole-number fields that Add changes. They are not in the JSON.
	Sums []string
	// Gates says that gates read the table: a crossing that follows must see what was
	// written, so that a write may not wait for another's commit.
	Gates bool
}

// Row is a row as a store keeps it. Values are string or int64. Slices belong to the
// receiver of the row.
type Row struct {
	Key []any
	// Version changes with each write, and differs between a row and one of the same key
	// that is inserted after it was deleted. The store sets it.
	Version int64
	Index   []any   // the values of Def.Indexes
	Sums    []int64 // the values of Def.Sums
	Doc     []byte  // the rest, as JSON
}

// Range is what Scan reads: the rows whose key begins with Prefix, in the order of the
// key; or, with an Index, those whose indexed field has that one value.
type Range struct {
	// Index is a field of Def.Indexes, or "" for the key.
	Index string
	// Prefix has the first parts of the key; with an Index, the field's value alone.
	Prefix []any
	// Limit is the most rows that are read, 1 or more.
	Limit int
}

// Reader reads rows. Implementations return ErrNotFound for a row that is not there.
type Reader interface {
	// Row returns the row of the key.
	Row(d *Def, key []any) (Row, error)
	// Scan calls fn for the rows of a range in order, stopping at the first error.
	Scan(d *Def, r Range, fn func(Row) error) error
}

// Writer changes rows.
type Writer interface {
	Reader
	// InsertRow adds a row: ErrExists if the key is there.
	InsertRow(d *Def, r Row) error
	// ReplaceRow replaces the row of r.Key if its version is still r.Version:
	// ErrConflict if it is another, ErrNotFound without one.
	ReplaceRow(d *Def, r Row) error
	// DeleteRow removes the row of the key; of a key that is not there it is nil.
	DeleteRow(d *Def, key []any) error
	// AddToRow adds n[i] to the sum i of the row. A sum stops at the ends of an int64.
	AddToRow(d *Def, key []any, n []int64) error
}

// Options say what the types of a table do not.
type Options struct {
	// Key names the key where its type is not a struct; "" is "id".
	Key string
	// Gates is Def.Gates.
	Gates bool
}

// Table is a table with a key of type K and rows of type R. It is safe for concurrent
// use.
//
// K is a string, an int64, or a struct of such fields, whose columns are named by the tag
// `table:"NAME"`. R is a struct that is kept as JSON, in which an unknown member is an
// error. A field of R with the tag `table:"NAME,index"` is also indexed. An int64 field
// with the tags `table:"NAME,sum"` and `json:"-"` is a sum.
type Table[K comparable, R any] struct {
	name    string
	options Options
	once    sync.Once // guards the rest, which is read from the types at the first use
	def     Def
	key     []int // fields of K; nil if K is one value
	index   []int // fields of R
	sums    []int // fields of R
}

// New declares a table. The types are read at the first use, so that a declaration costs a
// process nothing before that: a store that is opened with the table uses it. That panics if
// they are not those that Table describes.
func New[K comparable, R any](name string, o Options) *Table[K, R] {
	return &Table[K, R]{name: name, options: o}
}

// readTypes fills the table from its types, once.
func (t *Table[K, R]) readTypes() {
	t.once.Do(func() {
		t.def.Name, t.def.Gates = t.name, t.options.Gates
		panicUnless(isName(t.name), "the table %q has a name of other letters than a to z", t.name)
		key := t.options.Key
		if key == "" {
			key = "id"
		}
		t.readKey(reflect.TypeFor[K](), key)
		t.readRow(reflect.TypeFor[R]())
		seen := map[string]bool{"version": true, "doc": true}
		for _, c := range t.def.columnNames() {
			panicUnless(isName(c) && !seen[c],
				"the table %q has a column %q twice or of other letters than a to z", t.name, c)
			seen[c] = true
		}
	})
}

// isName reports whether a name is lower-case letters and "_", and begins with a letter.
func isName(s string) bool {
	for i, r := range s {
		if (r < 'a' || r > 'z') && (r != '_' || i == 0) {
			return false
		}
	}
	return s != ""
}

func panicUnless(ok bool, format string, args ...any) {
	if !ok {
		panic("table: " + fmt.Sprintf(format, args...))
	}
}

func (d *Def) columnNames() []string {
	var out []string
	for _, c := range slices.Concat(d.Key, d.Indexes) {
		out = append(out, c.Name)
	}
	return append(out, d.Sums...)
}

func columnOf(name string, t reflect.Type) Column {
	panicUnless(t.Kind() == reflect.String || t.Kind() == reflect.Int64,
		"column %q is neither text nor a whole number", name)
	return Column{Name: name, Whole: t.Kind() == reflect.Int64}
}

func (t *Table[K, R]) readKey(k reflect.Type, name string) {
	if k.Kind() != reflect.Struct {
		t.def.Key = []Column{columnOf(name, k)}
		return
	}
	for i := range k.NumField() {
		f := k.Field(i)
		t.def.Key = append(t.def.Key, columnOf(f.Tag.Get("table"), f.Type))
		t.key = append(t.key, i)
	}
	panicUnless(len(t.key) > 0, "the table %q has no key", t.def.Name)
}

func (t *Table[K, R]) readRow(r reflect.Type) {
	panicUnless(r.Kind() == reflect.Struct, "the table %q has rows of no struct", t.def.Name)
	for i := range r.NumField() {
		f := r.Field(i)
		name, use, _ := strings.Cut(f.Tag.Get("table"), ",")
		switch use {
		case "":
			panicUnless(name == "", "the field %s of table %q is neither index nor sum", f.Name, t.def.Name)
		case "index":
			t.def.Indexes, t.index = append(t.def.Indexes, columnOf(name, f.Type)), append(t.index, i)
		case "sum":
			panicUnless(f.Type.Kind() == reflect.Int64 && f.Tag.Get("json") == "-",
				"the sum %s of table %q is no int64 outside of the JSON", f.Name, t.def.Name)
			t.def.Sums, t.sums = append(t.def.Sums, name), append(t.sums, i)
		default:
			panicUnless(false, "the field %s of table %q has the tag %q", f.Name, t.def.Name, use)
		}
	}
}

// Def returns the table's description, for the store.
func (t *Table[K, R]) Def() *Def {
	t.readTypes()
	return &t.def
}

func valueOf(v reflect.Value) any {
	if v.Kind() == reflect.Int64 {
		return v.Int()
	}
	return v.String()
}

// Key returns the parts of a key as a store takes them.
func (t *Table[K, R]) Key(k K) []any {
	t.readTypes()
	v := reflect.ValueOf(k)
	if t.key == nil {
		return []any{valueOf(v)}
	}
	out := make([]any, len(t.key))
	for i, f := range t.key {
		out[i] = valueOf(v.Field(f))
	}
	return out
}

func (t *Table[K, R]) keyOf(parts []any) (k K, err error) {
	if len(parts) != len(t.def.Key) {
		return k, fmt.Errorf("read table %s: a key of %d parts, expected %d", t.def.Name, len(parts), len(t.def.Key))
	}
	v := reflect.ValueOf(&k).Elem()
	for i, p := range parts {
		to := v
		if t.key != nil {
			to = v.Field(t.key[i])
		}
		switch p := p.(type) {
		case int64:
			if to.Kind() != reflect.Int64 {
				return k, fmt.Errorf("read table %s: %s is a number, expected text", t.def.Name, t.def.Key[i].Name)
			}
			to.SetInt(p)
		case string:
			if to.Kind() != reflect.String {
				return k, fmt.Errorf("read table %s: %s is text, expected a number", t.def.Name, t.def.Key[i].Name)
			}
			to.SetString(p)
		}
	}
	return k, nil
}

func (t *Table[K, R]) encodeRow(k K, row R) (Row, error) {
	doc, err := json.Marshal(row)
	if err != nil {
		return Row{}, fmt.Errorf("write table %s: %w", t.def.Name, err)
	}
	out := Row{Key: t.Key(k), Doc: doc}
	v := reflect.ValueOf(row)
	for _, f := range t.index {
		out.Index = append(out.Index, valueOf(v.Field(f)))
	}
	for _, f := range t.sums {
		out.Sums = append(out.Sums, v.Field(f).Int())
	}
	return out, nil
}

func (t *Table[K, R]) decodeRow(r *Row) (row R, err error) {
	d := json.NewDecoder(bytes.NewReader(r.Doc))
	d.DisallowUnknownFields()
	if err = d.Decode(&row); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("more than one JSON value")
		}
	}
	if err == nil && len(r.Sums) != len(t.sums) {
		err = fmt.Errorf("%d sums, expected %d", len(r.Sums), len(t.sums))
	}
	if err != nil {
		return row, &DamagedError{Table: t.def.Name, Key: r.Key, Err: err}
	}
	v := reflect.ValueOf(&row).Elem()
	for i, f := range t.sums {
		v.Field(f).SetInt(r.Sums[i])
	}
	return row, nil
}

// DamagedError is a stored row that is not one of its table.
type DamagedError struct {
	Table string
	Key   []any
	Err   error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("read table %s: the row %q is damaged: %v", e.Table, fmt.Sprint(e.Key...), e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// Get returns the row of k and its version. It returns the reader's error for a row that
// is not there, and a *DamagedError for one that cannot be read.
func (t *Table[K, R]) Get(r Reader, k K) (row R, version int64, err error) {
	got, err := r.Row(t.Def(), t.Key(k))
	if err != nil {
		return row, 0, err
	}
	row, err = t.decodeRow(&got)
	return row, got.Version, err
}

// Insert adds a row.
func (t *Table[K, R]) Insert(w Writer, k K, row R) error {
	r, err := t.encodeRow(k, row)
	if err != nil {
		return err
	}
	return w.InsertRow(t.Def(), r)
}

// Replace replaces the row of k if its version is still the given one.
func (t *Table[K, R]) Replace(w Writer, k K, row R, version int64) error {
	r, err := t.encodeRow(k, row)
	if err != nil {
		return err
	}
	r.Version = version
	return w.ReplaceRow(t.Def(), r)
}

// Put writes the row of k whether or not there is one. version is the one that Get
// returned, and 0 for a new row.
func (t *Table[K, R]) Put(w Writer, k K, row R, version int64) error {
	if version == 0 {
		return t.Insert(w, k, row)
	}
	return t.Replace(w, k, row, version)
}

// Delete removes the row of k, if there is one.
func (t *Table[K, R]) Delete(w Writer, k K) error { return w.DeleteRow(t.Def(), t.Key(k)) }

// Add adds n to the sums of the row of k, in the order of the fields.
func (t *Table[K, R]) Add(w Writer, k K, n ...int64) error {
	if len(n) != len(t.Def().Sums) {
		return fmt.Errorf("add to table %s: %d numbers, expected %d", t.def.Name, len(n), len(t.sums))
	}
	return w.AddToRow(t.Def(), t.Key(k), n)
}

// Scan calls fn for the rows of a range in order, stopping at the first error.
func (t *Table[K, R]) Scan(r Reader, in Range, fn func(k K, row R, version int64) error) error {
	return r.Scan(t.Def(), in, func(got Row) error {
		k, err := t.keyOf(got.Key)
		if err != nil {
			return err
		}
		row, err := t.decodeRow(&got)
		if err != nil {
			return err
		}
		return fn(k, row, got.Version)
	})
}

// Find is Get, with a zero row and version 0 for a row that is not there.
func (t *Table[K, R]) Find(r Reader, k K) (row R, version int64, err error) {
	row, version, err = t.Get(r, k)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return row, version, err
}
