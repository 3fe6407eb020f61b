package table_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/table"
)

type visit struct {
	Place string `json:"place" table:"place,index"`
	Count int64  `json:"-" table:"count,sum"`
}

type visitKey struct {
	Tenant string `table:"tenant"`
	Day    int64  `table:"day"`
}

// memory keeps the rows of one table. Only what a Table does with them is under test here;
// storetest has the contract of a store.
type memory struct {
	table.Writer
	rows []table.Row
}

func (m *memory) Row(_ *table.Def, key []any) (table.Row, error) {
	for _, r := range m.rows {
		if table.CompareKeys(r.Key, key) == 0 {
			return r, nil
		}
	}
	return table.Row{}, table.ErrNotFound
}

func (m *memory) InsertRow(_ *table.Def, r table.Row) error {
	r.Version = 1
	m.rows = append(m.rows, r)
	return nil
}

func TestTableDeclaresItsColumns(t *testing.T) {
	d := table.New[visitKey, visit]("visit", table.Options{Gates: true}).Def()
	if d.Name != "visit" || !d.Gates || !slices.Equal(d.Key, []table.Column{{Name: "tenant"}, {Name: "day",
		Whole: true}}) ||
		!slices.Equal(d.Indexes, []table.Column{{Name: "place"}}) || !slices.Equal(d.Sums, []string{"count"}) {
		t.Errorf("%+v", d)
	}
	if d := table.New[string, struct{}]("plain", table.Options{}).Def(); d.Key[0].Name != "id" || d.Gates {
		t.Errorf("%+v", d)
	}
}

func TestTableReadsWhatItWrote(t *testing.T) {
	visits := table.New[visitKey, visit]("visit", table.Options{})
	m := &memory{}
	k := visitKey{"acme", -3}
	if row, version, err := visits.Find(m, k); row != (visit{}) || version != 0 || err != nil {
		t.Errorf("%+v, %d, %v", row, version, err)
	}
	if err := visits.Put(m, k, visit{"here", 7}, 0); err != nil {
		t.Fatal(err)
	}
	if got, _, err := visits.Get(m, k); got != (visit{"here", 7}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if doc := string(m.rows[0].Doc); doc != `{"place":"here"}` {
		t.Errorf("the JSON is %s", doc)
	}
	for _, doc := range []string{`{"place":"here","more":1}`, `{"place":1}`, `{}{}`, `{}x`, ``} {
		m.rows[0].Doc = []byte(doc)
		damaged := (*table.DamagedError)(nil)
		if _, version, err := visits.Find(m, k); !errors.As(err, &damaged) || version != 1 ||
			!strings.Contains(err.Error(), "table visit") {
			t.Errorf("%s: version %d, %v", doc, version, err)
		}
	}
}

func TestWrongTypesPanic(t *testing.T) {
	type badKey struct {
		F float64 `table:"f"`
	}
	type noName struct{ A string }
	type badSum struct {
		N int64 `json:"n" table:"n,sum"`
	}
	type badTag struct {
		N int64 `table:"n,unique"`
	}
	type twice struct {
		ID string `table:"id,index"`
	}
	for what, declare := range map[string]func(){
		"a name":             func() { table.New[string, visit]("Visit 1", table.Options{}).Def() },
		"a key of a float":   func() { table.New[badKey, visit]("x", table.Options{}).Def() },
		"a key without name": func() { table.New[noName, visit]("x", table.Options{}).Def() },
		"an empty key":       func() { table.New[struct{}, visit]("x", table.Options{}).Def() },
		"rows of text":       func() { table.New[string, string]("x", table.Options{}).Def() },
		"a sum in the JSON":  func() { table.New[string, badSum]("x", table.Options{}).Def() },
		"an unknown tag":     func() { table.New[string, badTag]("x", table.Options{}).Def() },
		"a column twice":     func() { table.New[string, twice]("x", table.Options{}).Def() },
		"a reserved column":  func() { table.New[string, visit]("x", table.Options{Key: "version"}).Def() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", what)
				}
			}()
			declare()
		}()
	}
}

func TestCompareKeysIsAnOrder(t *testing.T) {
	keys := [][]any{{"b", int64(1)}, {"a", int64(10)}, {"a", int64(-2)}, {"", int64(9)}, {"a", int64(2)}}
	slices.SortFunc(keys, table.CompareKeys)
	want := [][]any{{"", int64(9)}, {"a", int64(-2)}, {"a", int64(2)}, {"a", int64(10)}, {"b", int64(1)}}
	if !slices.EqualFunc(keys, want, func(a, b []any) bool { return slices.Equal(a, b) }) {
		t.Errorf("%v", keys)
	}
}
