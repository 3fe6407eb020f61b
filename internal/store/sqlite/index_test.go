package sqlite

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/internal/store/storetest"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestPagesReadByIndexes asks the database how it would answer what the pages
// ask: never by reading a table, whatever its size.
func TestPagesReadByIndexes(t *testing.T) {
	path := fill(t)
	c, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waiting, _ := reviewFilter("", review.Pending)
	own, _ := reviewFilter("acme", review.None)
	for query, index := range map[string]string{
		leafColumns + "WHERE crossing = ? AND kind = 3 AND id >= ? AND id < ? ORDER BY id LIMIT ?": "leaf_event",
		"SELECT id, kind FROM leaf WHERE crossing = ? AND kind < 3":                                "leaf_crossing",
		leafColumns + "WHERE id >= ? AND id < ? ORDER BY id":                                       "INTEGER PRIMARY KEY",
		"SELECT doc FROM review WHERE " + waiting + " ORDER BY created DESC, id DESC LIMIT ?":      "review_state",
		"SELECT doc FROM review WHERE " + own + " ORDER BY created DESC, id DESC LIMIT ?":          "review_tenant",
		"SELECT doc FROM review WHERE id = ?":                                                      "sqlite_autoindex_review_1",
	} {
		var plan []string
		if err := c.Query("EXPLAIN QUERY PLAN "+query, func(r connection.Row) error {
			plan = append(plan,
				r.Text(3))
			return nil
		}, make([]any, strings.Count(query, "?"))...); err != nil {
			t.Fatal(err)
		}
		said := strings.Join(plan, "; ")
		if !strings.Contains(said, index) || strings.Contains(said, "SCAN") || strings.Contains(said, "TEMP B-TREE") {
			t.Errorf("%s\nis answered by: %s", query, said)
		}
	}
}

// A store that an earlier version made gets the index, and loses nothing.
func TestMigrationFromVersion1(t *testing.T) {
	values, _ := metaValues()
	path, head := oldStore(t, 1, values)
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	faults, err := schemaFaults(s.side, s.tables)
	if err != nil || len(faults) > 0 {
		t.Error(faults, err)
	}
	err = s.Update(t.Context(), func(tx kernel.Tx) error {
		hs, err := tx.Heads()
		if len(hs) != 1 || hs[0] != head {
			t.Errorf("the heads are %+v, expected %+v", hs, head)
		}
		if _, fault := tx.Append(storetest.Leaf(t, "acme", ledger.KindEvent, storetest.Crossing(0),
			"after")); err == nil {
			err = fault
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
