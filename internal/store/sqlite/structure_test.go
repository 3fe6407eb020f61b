package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
)

func faults(t *testing.T, path string) (out []string) {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fs, err := s.Structure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		out = append(out, f.Error())
	}
	return out
}

func TestStructureOfAnHonestFileHasNoFault(t *testing.T) {
	path := fill(t)
	if fs := faults(t, path); len(fs) != 0 {
		t.Error(fs)
	}
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if fs, err := s.Structure(t.Context()); err != nil || len(fs) != 0 {
		t.Errorf("while it is open: %v, %v", fs, err)
	}
	back := filepath.Join(t.TempDir(), "backup.db")
	if err := s.Backup(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if fs := faults(t, back); len(fs) != 0 {
		t.Errorf("a backup: %v", fs)
	}
	empty := filepath.Join(t.TempDir(), "empty.db")
	e, err := Open(t.Context(), Options{Path: empty})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if fs := faults(t, empty); len(fs) != 0 {
		t.Errorf("an empty store: %v", fs)
	}
}

// A schema that is not Holdfast's, and leaves that belong to no tree, are named
// and nobody serves from them.
func TestK6_AC2_structure_that_was_changed(t *testing.T) {
	for name, c := range map[string]struct {
		sql, want string
		past      bool // the triggers stand again afterwards
	}{
		"trigger taken away": {"DROP TRIGGER leaf_no_delete", "the append-only trigger leaf_no_delete is missing", false},
		"trigger made empty": {"DROP TRIGGER leaf_no_delete; CREATE TRIGGER leaf_no_delete BEFORE DELETE ON leaf BEGIN SELECT 1; END",
			"the append-only trigger leaf_no_delete was changed", false},
		"trigger added":     {"CREATE TRIGGER quiet BEFORE INSERT ON leaf BEGIN SELECT RAISE(IGNORE); END", "quiet", false},
		"index":             {"DROP INDEX leaf_crossing", "the index leaf_crossing is missing", false},
		"column":            {"ALTER TABLE leaf ADD COLUMN x INTEGER", "the table leaf was changed", false},
		"table":             {"DROP TABLE revocation", "the table revocation is missing", false},
		"head gone":         {"DELETE FROM head", "\"acme\", leaf 0: leaves 0 to 299 belong to no head", true},
		"head smaller":      {"UPDATE head SET size = 100", "\"acme\", leaf 100: the head counts 100 leaves", true},
		"all but the name":  {"DELETE FROM head; DELETE FROM leaf; DELETE FROM tile", "\"acme\": the tenant has no head", true},
		"name gone":         {"PRAGMA foreign_keys = 0; DELETE FROM tenant", "belong to no head", true},
		"leaves of nobody":  {"INSERT INTO leaf (id, kind, at, hash, record) SELECT id + (9 << 40), 3, at, hash, record FROM leaf", "leaves 0 to 299 belong to no head", true},
		"leaves before all": {"INSERT INTO leaf (id, kind, at, hash, record) SELECT id - (9 << 40), 3, at, hash, record FROM leaf", "belong to no head", true},
	} {
		path := fill(t)
		run := func() error { return raw(t, path, c.sql) }
		if c.past {
			run = func() error { return pastTriggers(t, path, c.sql) }
		}
		if err := run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if all := strings.Join(faults(t, path), "\n"); !strings.Contains(all, c.want) {
			t.Errorf("%s: %q, want %q", name, all, c.want)
		}
		if s, err := Open(t.Context(), Options{Path: path}); err == nil || !strings.Contains(err.Error(), "hint:") {
			t.Errorf("%s: opened: %v", name, err)
			s.Close()
		}
	}
}

func TestNoTreeAtAll(t *testing.T) {
	path := fill(t)
	if err := pastTriggers(t, path, "DELETE FROM head; DELETE FROM leaf; DELETE FROM tile; DELETE FROM tenant; DELETE FROM checkpoint"); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(faults(t, path), "\n"); !strings.Contains(all, "the ledger was taken away") {
		t.Errorf("%q", all)
	}
}

func TestCheckpointsOfNoTree(t *testing.T) {
	path := fill(t)
	for sql, want := range map[string]string{
		"INSERT INTO checkpoint VALUES ('gone', 7, zeroblob(32), 0, x'00')":   "\"gone\": a checkpoint of 7 leaves is there, and no tree",
		"INSERT INTO checkpoint VALUES ('acme', 999, zeroblob(32), 0, x'00')": "\"acme\": a checkpoint of 999 leaves is there, and the head counts 300",
	} {
		if err := raw(t, path, sql); err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(faults(t, path), "\n"); !strings.Contains(all, want) {
			t.Errorf("%q, want %q", all, want)
		}
	}
}

// TestSchemaDigestIsOfTheMigrations: an untouched schema is known without making one.
func TestSchemaDigestIsOfTheMigrations(t *testing.T) {
	all, err := migrateInMemory()
	if err != nil {
		t.Fatal(err)
	}
	if got := digestSchema(all); got != schemaDigest {
		t.Errorf("the migrations make %s: set schemaDigest to it", got)
	}
}
