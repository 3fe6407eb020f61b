package sqlite

import (
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
)

// values is a table that every store has, for tests to which it does not matter which.
var values = kernel.Tables()[slices.IndexFunc(kernel.Tables(),
	func(d *table.Def) bool { return d.Name == "remembered_tenant" })]

// putValue writes the text of a name, whether or not it is there.
func putValue(tx kernel.Tx, name, text string) error {
	r := table.Row{Key: []any{name}, Doc: []byte(text)}
	was, err := tx.Row(values, r.Key)
	if errors.Is(err, kernel.ErrNotFound) {
		return tx.InsertRow(values, r)
	}
	r.Version = was.Version
	return errors.Join(err, tx.ReplaceRow(values, r))
}

func getValue(tx kernel.Tx, name string) (string, error) {
	r, err := tx.Row(values, []any{name})
	return string(r.Doc), err
}

func rangeOf(limit int) table.Range { return table.Range{Limit: limit} }
