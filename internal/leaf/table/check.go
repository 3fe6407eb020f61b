package table

import (
	"fmt"
	"slices"
)

// CheckKey returns an error for a key that does not fit the table.
func (d *Def) CheckKey(key []any) error {
	if len(key) != len(d.Key) {
		return fmt.Errorf("table %s: a key of %d parts, expected %d", d.Name, len(key), len(d.Key))
	}
	return d.checkValues(d.Key, key)
}

// CheckRow returns an error for a row that does not fit the table.
func (d *Def) CheckRow(r *Row) error {
	if err := d.CheckKey(r.Key); err != nil {
		return err
	}
	switch {
	case len(r.Index) != len(d.Indexes) || len(r.Sums) != len(d.Sums):
		return fmt.Errorf("table %s: a row of %d indexed fields and %d sums, expected %d and %d", d.Name,
			len(r.Index), len(r.Sums), len(d.Indexes), len(d.Sums))
	case len(r.Doc) > MaxDoc:
		return fmt.Errorf("table %s: a row of %d bytes, more than %d", d.Name, len(r.Doc), MaxDoc)
	}
	return d.checkValues(d.Indexes, r.Index)
}

// CheckRange returns an error for a range that does not fit the table, and the columns
// that its prefix is of.
func (d *Def) CheckRange(r *Range) ([]Column, error) {
	columns := d.Key
	if r.Index != "" {
		i := slices.IndexFunc(d.Indexes, func(c Column) bool { return c.Name == r.Index })
		if i < 0 || len(r.Prefix) != 1 {
			return nil, fmt.Errorf("table %s: no scan of %d values of an index %q", d.Name, len(r.Prefix), r.Index)
		}
		columns = d.Indexes[i : i+1]
	}
	if len(r.Prefix) > len(columns) || r.Limit < 1 {
		return nil, fmt.Errorf("table %s: a scan by %d parts of %d, of at most %d rows", d.Name, len(r.Prefix),
			len(columns), r.Limit)
	}
	return columns[:len(r.Prefix)], d.checkValues(columns, r.Prefix)
}

func (d *Def) checkValues(columns []Column, values []any) error {
	for i, v := range values {
		c := columns[i]
		switch v := v.(type) {
		case int64:
			if c.Whole {
				continue
			}
		case string:
			if !c.Whole && len(v) > MaxKey {
				return fmt.Errorf("table %s: %s has %d bytes, more than %d", d.Name, c.Name, len(v), MaxKey)
			}
			if !c.Whole && (v != "" || c.Name != "tenant") {
				continue
			}
		}
		return fmt.Errorf("table %s: invalid %s: %T %.64q", d.Name, c.Name, v, fmt.Sprint(v))
	}
	return nil
}

// CompareKeys compares two keys of one table in the order of Scan.
func CompareKeys(a, b []any) int { return slices.CompareFunc(a, b, compareValues) }

func compareValues(a, b any) int {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return compare(a, b)
		}
		return -1
	case string:
		if b, ok := b.(string); ok {
			return compare(a, b)
		}
	}
	return 1
}

func compare[T int64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Matches reports whether a row is in the range, whatever its limit.
func (d *Def) Matches(r *Range, row *Row) bool {
	values := row.Key
	if r.Index != "" {
		i := slices.IndexFunc(d.Indexes, func(c Column) bool { return c.Name == r.Index })
		values = row.Index[i : i+1]
	}
	return CompareKeys(values[:len(r.Prefix)], r.Prefix) == 0
}
