package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

// rowChange is what a batch makes of a row.
type rowChange struct {
	t    *rowTable
	row  table.Row
	gone bool
}

// rowKey names a row among those of all tables.
func rowKey(d *table.Def, key []any) string {
	b := append(make([]byte, 0, 64), d.Name...)
	for _, v := range key {
		switch v := v.(type) {
		case string:
			b = fmt.Appendf(b, "\x00%d:%s", len(v), v)
		case int64:
			b = fmt.Appendf(b, "\x00%d", v)
		}
	}
	return string(b)
}

// firstVersion is the version of a row that is inserted. It differs from those that the
// same key had before it was deleted, so that a comparison of versions finds a change.
func firstVersion() int64 { return 1 + rand.Int64N(math.MaxInt64/2) }

func cloneRow(r table.Row) table.Row {
	r.Key, r.Index, r.Sums, r.Doc = slices.Clone(r.Key), slices.Clone(r.Index), slices.Clone(r.Sums), bytes.Clone(r.Doc)
	return r
}

func (s *Store) rowTable(d *table.Def) (*rowTable, error) {
	t := s.tables[d]
	if t == nil {
		return nil, fmt.Errorf("the store was opened without the table %q", d.Name)
	}
	return t, nil
}

// findRow returns a row as the running update sees it.
func (tx *updateTx) findRow(d *table.Def, key []any) (t *rowTable, r table.Row, ok bool, err error) {
	if tx.over {
		return nil, r, false, errOver
	}
	if t, err = tx.s.rowTable(d); err == nil {
		err = d.CheckKey(key)
	}
	if err != nil {
		return nil, r, false, err
	}
	name := rowKey(d, key)
	for _, b := range [...]*batch{tx.b, tx.s.fly} {
		if b == nil {
			continue
		}
		if ch, ok := b.rows[name]; ok {
			return t, cloneRow(ch.row), !ch.gone, nil
		}
	}
	r, ok, err = readRow(tx.s.side, t, key)
	return t, r, ok, err
}

func readRow(c *connection.Conn, t *rowTable, key []any) (table.Row, bool, error) {
	r, err := c.One(t.get, key...)
	if err != nil || r == nil {
		return table.Row{}, false, err
	}
	return t.readRow(r), true, nil
}

func noRow(d *table.Def, key []any) error {
	return notFound("row %q of table %s", fmt.Sprint(key...), d.Name)
}

func (tx *updateTx) Row(d *table.Def, key []any) (table.Row, error) {
	_, r, ok, err := tx.findRow(d, key)
	if err == nil && !ok {
		err = noRow(d, key)
	}
	return r, err
}

func (tx *updateTx) setRow(t *rowTable, r table.Row, gone bool) {
	b, name := tx.b, rowKey(t.def, r.Key)
	if b.rows == nil {
		b.rows = make(map[string]rowChange)
	}
	before, had := b.rows[name]
	b.rows[name] = rowChange{t, r, gone}
	tx.undone(func() {
		if had {
			b.rows[name] = before
		} else {
			delete(b.rows, name)
		}
	})
}

func (tx *updateTx) InsertRow(d *table.Def, r table.Row) error {
	if err := d.CheckRow(&r); err != nil {
		return err
	}
	t, _, ok, err := tx.findRow(d, r.Key)
	if err != nil {
		return err
	}
	if ok {
		return fmt.Errorf("insert row %q of table %s: %w", fmt.Sprint(r.Key...), d.Name, kernel.ErrExists)
	}
	r = cloneRow(r)
	r.Version = firstVersion()
	tx.setRow(t, r, false)
	return nil
}

func (tx *updateTx) ReplaceRow(d *table.Def, r table.Row) error {
	if err := d.CheckRow(&r); err != nil {
		return err
	}
	t, was, ok, err := tx.findRow(d, r.Key)
	switch {
	case err != nil:
		return err
	case !ok:
		return noRow(d, r.Key)
	case was.Version != r.Version:
		return fmt.Errorf("replace row %q of table %s: %w", fmt.Sprint(r.Key...), d.Name, kernel.ErrConflict)
	}
	r = cloneRow(r)
	r.Version++
	tx.setRow(t, r, false)
	return nil
}

func (tx *updateTx) DeleteRow(d *table.Def, key []any) error {
	t, _, ok, err := tx.findRow(d, key)
	if err == nil && ok {
		tx.setRow(t, table.Row{Key: slices.Clone(key)}, true)
	}
	return err
}

func (tx *updateTx) AddToRow(d *table.Def, key []any, n []int64) error {
	t, r, ok, err := tx.findRow(d, key)
	switch {
	case err != nil:
		return err
	case !ok:
		return noRow(d, key)
	case len(n) != len(r.Sums):
		return fmt.Errorf("add to row %q of table %s: %d numbers for %d sums", fmt.Sprint(key...), d.Name, len(n),
			len(r.Sums))
	}
	for i := range n {
		r.Sums[i] = budget.AddCapped(r.Sums[i], n[i])
	}
	r.Version++
	tx.setRow(t, r, false)
	return nil
}

func (tx *updateTx) Scan(d *table.Def, in table.Range, fn func(table.Row) error) error {
	if tx.over {
		return errOver
	}
	over := make(map[string]rowChange) // of the range or of a row that left it
	for _, b := range tx.layers() {
		for name, ch := range b.rows {
			if ch.t.def == d {
				over[name] = ch
			}
		}
	}
	wide := in
	wide.Limit += len(over) // as many as may be gone
	rows, err := readRows(tx.s, tx.s.side, d, wide)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r table.Row) bool { _, changed := over[rowKey(d, r.Key)]; return changed })
	for _, ch := range over {
		if !ch.gone && d.Matches(&in, &ch.row) {
			rows = append(rows, cloneRow(ch.row))
		}
	}
	slices.SortFunc(rows, func(a, b table.Row) int { return table.CompareKeys(a.Key, b.Key) })
	return eachRow(rows[:min(len(rows), in.Limit)], fn)
}

func eachRow(rows []table.Row, fn func(table.Row) error) error {
	for i := range rows {
		if err := fn(rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// readRows reads the rows of a range from the file.
func readRows(s *Store, c *connection.Conn, d *table.Def, in table.Range) ([]table.Row, error) {
	t, err := s.rowTable(d)
	if err != nil {
		return nil, err
	}
	columns, err := d.CheckRange(&in)
	if err != nil {
		return nil, err
	}
	var out []table.Row
	err = c.Query(t.scanSQL(columns, in.Index), func(r connection.Row) error {
		out = append(out, t.readRow(r))
		return nil
	}, append(slices.Clone(in.Prefix), int64(in.Limit))...)
	return out, err
}

// writeRows writes the changed rows.
func (b *batch) writeRows(c *connection.Conn) error {
	for _, ch := range b.rows {
		var n int64 = 1
		var err error
		if ch.gone {
			_, err = c.Exec(ch.t.delete, ch.row.Key...)
		} else {
			n, err = c.Exec(ch.t.upsert, ch.t.bindRow(&ch.row)...)
		}
		if err == nil && n != 1 {
			err = errors.New("no row was written")
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", ch.t.def.Name, err)
		}
	}
	return nil
}

func (tx *viewTx) Row(d *table.Def, key []any) (r table.Row, err error) {
	t, err := tx.s.rowTable(d)
	if err == nil {
		err = d.CheckKey(key)
	}
	if err != nil {
		return r, err
	}
	var ok bool
	err = tx.do(func(c *connection.Conn) (err error) { r, ok, err = readRow(c, t, key); return err })
	if err == nil && !ok {
		err = noRow(d, key)
	}
	return r, err
}

func (tx *viewTx) Scan(d *table.Def, in table.Range, fn func(table.Row) error) error {
	var rows []table.Row
	err := tx.do(func(c *connection.Conn) (err error) { rows, err = readRows(tx.s, c, d, in); return err })
	if err != nil {
		return err
	}
	return eachRow(rows, fn)
}

func (tx *viewTx) InsertRow(*table.Def, table.Row) error     { return readOnly("insert row") }
func (tx *viewTx) ReplaceRow(*table.Def, table.Row) error    { return readOnly("replace row") }
func (tx *viewTx) DeleteRow(*table.Def, []any) error         { return readOnly("delete row") }
func (tx *viewTx) AddToRow(*table.Def, []any, []int64) error { return readOnly("add to row") }
