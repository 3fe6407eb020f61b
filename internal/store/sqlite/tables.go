package sqlite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/schema"
)

// rowTable is one declared table with its statements.
type rowTable struct {
	def *table.Def
	// objects are the table and its indexes, as they are created.
	objects             []object
	get, upsert, delete string
	columns             string
}

// tableName is the name of a declared table in the file.
func tableName(d *table.Def) string { return rowPrefix + d.Name }

// rowPrefix begins the name of each declared table and of its indexes.
const rowPrefix = "row_"

func newRowTable(d *table.Def) *rowTable {
	t := &rowTable{def: d}
	name := tableName(d)
	var create, all, key, isKey, set []string
	add := func(c table.Column, isPart bool) {
		kind := "TEXT"
		if c.Whole {
			kind = "INTEGER"
		}
		create, all = append(create, fmt.Sprintf("%q %s NOT NULL", c.Name, kind)), append(all, fmt.Sprintf("%q",
			c.Name))
		if isPart {
			key, isKey = append(key, fmt.Sprintf("%q", c.Name)), append(isKey, fmt.Sprintf("%q = ?", c.Name))
		} else {
			set = append(set, fmt.Sprintf("%[1]q = excluded.%[1]q", c.Name))
		}
	}
	for _, c := range d.Key {
		add(c, true)
	}
	for _, c := range d.Indexes {
		add(c, false)
	}
	for _, s := range d.Sums {
		add(table.Column{Name: s, Whole: true}, false)
	}
	add(table.Column{Name: "version", Whole: true}, false)
	add(table.Column{Name: "doc"}, false)
	keys := strings.Join(key, ", ")
	t.objects = append(t.objects, object{"table", name,
		fmt.Sprintf("CREATE TABLE %s (%s, PRIMARY KEY (%s)) STRICT, WITHOUT ROWID", name, strings.Join(create,
			", "), keys)})
	for _, c := range d.Indexes {
		index := name + "_" + c.Name
		t.objects = append(t.objects, object{"index", index, fmt.Sprintf("CREATE INDEX %s ON %s (%q, %s)", index,
			name, c.Name, keys)})
	}
	t.columns = strings.Join(all, ", ")
	t.get = fmt.Sprintf("SELECT %s FROM %s WHERE %s", t.columns, name, strings.Join(isKey, " AND "))
	t.delete = fmt.Sprintf("DELETE FROM %s WHERE %s", name, strings.Join(isKey, " AND "))
	t.upsert = fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (%s) DO UPDATE SET %s", name, t.columns,
		strings.TrimSuffix(strings.Repeat("?, ", len(all)), ", "), keys, strings.Join(set, ", "))
	return t
}

// scanSQL returns the statement of a range whose prefix is of those columns.
func (t *rowTable) scanSQL(columns []table.Column, index string) string {
	where, order := "", ""
	for i, c := range columns {
		where += map[bool]string{true: " WHERE ", false: " AND "}[i == 0] + fmt.Sprintf("%q = ?", c.Name)
	}
	for i, c := range t.def.Key {
		order += map[bool]string{true: "", false: ", "}[i == 0] + fmt.Sprintf("%q", c.Name)
	}
	if index != "" {
		index = fmt.Sprintf(" INDEXED BY %s_%s", tableName(t.def), index)
	}
	return fmt.Sprintf("SELECT %s FROM %s%s%s ORDER BY %s LIMIT ?", t.columns, tableName(t.def), index, where, order)
}

// bindRow returns a row's values in the order of columns.
func (t *rowTable) bindRow(r *table.Row) []any {
	args := slices.Concat(r.Key, r.Index)
	for _, n := range r.Sums {
		args = append(args, n)
	}
	return append(args, r.Version, string(r.Doc))
}

// readRow returns a row of the file.
func (t *rowTable) readRow(r connection.Row) table.Row {
	var out table.Row
	i := 0
	next := func(c table.Column) (v any) {
		if c.Whole {
			v = r.Int(i)
		} else {
			v = r.Text(i)
		}
		i++
		return v
	}
	for _, c := range t.def.Key {
		out.Key = append(out.Key, next(c))
	}
	for _, c := range t.def.Indexes {
		out.Index = append(out.Index, next(c))
	}
	for range t.def.Sums {
		out.Sums = append(out.Sums, r.Int(i))
		i++
	}
	out.Version, out.Doc = r.Int(i), []byte(r.Text(i+1))
	return out
}

// newRowTables returns the tables by their descriptions. Names must differ.
func newRowTables(defs []*table.Def) (map[*table.Def]*rowTable, error) {
	out, names := make(map[*table.Def]*rowTable), make(map[string]bool)
	for _, d := range append(kernel.Tables(), defs...) {
		if names[d.Name] {
			return nil, fmt.Errorf("the table %q is declared twice", d.Name)
		}
		out[d], names[d.Name] = newRowTable(d), true
	}
	return out, nil
}

// laterObjects returns the objects of the tables that no migration makes, by name.
func laterObjects(tables map[*table.Def]*rowTable) map[string]object {
	out := make(map[string]object)
	for _, t := range tables {
		if schema.IsInVersion3(tableName(t.def)) {
			continue
		}
		for _, o := range t.objects {
			out[o.name] = o
		}
	}
	return out
}

// createTables creates the declared tables that no migration makes and the file does not
// have yet. It refuses a file with a table that is not declared: a newer Holdfast keeps
// something there that this one would not look at.
func createTables(c *connection.Conn, tables map[*table.Def]*rowTable, readOnly bool) error {
	have, err := readSchema(c)
	if err != nil {
		return err
	}
	names := make(map[string]bool, len(tables))
	for d := range tables {
		names[tableName(d)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if have[name].kind == "table" && strings.HasPrefix(name, rowPrefix) && !names[name] &&
			!schema.IsInVersion3(name) {
			return fmt.Errorf("%w: the file has the table %.80q, which this Holdfast does not know; hint: use the Holdfast that wrote it, or a newer one", kernel.ErrNewer, name)
		}
	}
	want := laterObjects(tables)
	script := ""
	for _, name := range slices.SortedFunc(maps.Keys(want), func(a, b string) int {
		return compareObjects(want[a],
			want[b])
	}) {
		if have[name] == (object{}) {
			script += want[name].sql + ";\n"
		}
	}
	switch {
	case script == "":
		return nil
	case readOnly:
		return fmt.Errorf("the store has no table for something that this Holdfast keeps; hint: start `holdfast up` once, which makes it")
	}
	if err := c.Script("BEGIN IMMEDIATE;\n" + script + "COMMIT"); err != nil {
		_ = c.Script("ROLLBACK")
		return fmt.Errorf("create tables: %w", err)
	}
	return nil
}

// compareObjects sorts tables before indexes, and then by name.
func compareObjects(a, b object) int {
	return cmp.Or(strings.Compare(b.kind, a.kind), strings.Compare(a.name, b.name))
}
