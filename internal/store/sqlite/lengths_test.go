package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// unchecked goes round what the schema says of a row.
const unchecked = "PRAGMA ignore_check_constraints = 1;"

// What is of another length than the schema asks for is named wherever it is read,
// in updates and in views, and nothing panics on it.
func TestOtherLengthsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		sql, want string
		read      func(kernel.Tx) error
		quiet     bool // verification has no need of it
	}{
		"a leaf":     {"UPDATE leaf SET hash = zeroblob(31) WHERE seq = 7", `"acme", leaf 7: a hash of 31 bytes`, func(tx kernel.Tx) error { _, err := tx.Leaf("acme", 7); return err }, true},
		"leaves":     {"UPDATE leaf SET hash = x'' WHERE seq = 257", `"acme", leaf 257: a hash of 0 bytes`, func(tx kernel.Tx) error { _, err := tx.Nodes("acme").LeafHashes(256, 300); return err }, true},
		"a tile":     {"UPDATE tile SET hashes = zeroblob(31)", `"acme": tile 0 at level 0 has hashes of 31 bytes`, func(tx kernel.Tx) error { _, err := tx.Nodes("acme").Tile(0, 0); return err }, false},
		"more of it": {"UPDATE tile SET hashes = zeroblob(8193)", `"acme": tile 0 at level 0 has hashes of 8193 bytes`, func(tx kernel.Tx) error { _, err := tx.Nodes("acme").LeafHashes(3, 9); return err }, false},
		"its root": {"UPDATE tile SET root = zeroblob(64)", `"acme": tile 0 at level 0 has a root of 64 bytes`, func(tx kernel.Tx) error {
			_, err := tx.Nodes("acme").(ledger.Roots).Roots(0, 0, 1)
			return err
		}, false},
		"a signed root": {"UPDATE checkpoint SET root = x'00'", `"acme": the checkpoint of 1 leaves has a root of 1 bytes`, func(tx kernel.Tx) error { _, err := tx.Checkpoint("acme"); return err }, true},
		"a rate": {"INSERT INTO rate VALUES ('r', 0, 0, zeroblob(12))", `rate "r": 12 bytes`, func(tx kernel.Tx) error {
			_, err := tx.PeekRate([]budget.Rate{{Key: "r", Limit: 1, Window: time.Second}}, time.Now())
			return err
		}, true},
	} {
		path := fill(t)
		s := openStore(t, filepath.Dir(filepath.Dir(path)))
		if err := pastTriggers(t, path, unchecked+c.sql); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for how, look := range map[string]func(context.Context, func(kernel.Tx) error) error{"view": s.View, "update": s.Update} {
			if err := look(t.Context(), c.read); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, in a %s: %v, want %q", name, how, err, c.want)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(faults(t, path), "\n"); !c.quiet != strings.Contains(all, c.want) {
			t.Errorf("%s: the file's faults are %q", name, all)
		}
	}
}

// A tile that is not the tree's is found though every leaf is as it was, whatever of it
// was changed, and so is one that is gone.
func TestStructureLooksIntoTiles(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	const leaves = 256*256 + 300
	for from := 0; from < leaves; from += 1024 {
		appendN(t, s, from, min(1024, leaves-from))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "state", "holdfast.db")
	if all := faults(t, path); len(all) > 0 {
		t.Fatalf("of an honest file: %q", all)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ sql, want string }{
		"hashes":         {"UPDATE tile SET hashes = zeroblob(8192) WHERE level = 0 AND n = 7", `"acme": tile 7 at level 0 has another root than its hashes give`},
		"a root":         {"UPDATE tile SET root = zeroblob(32) WHERE level = 0 AND n = 7", `"acme": tile 7 at level 0 has another root than tile 0 at level 1 says`},
		"another's":      {"UPDATE tile SET (root, hashes) = (SELECT root, hashes FROM tile WHERE level = 0 AND n = 8) WHERE level = 0 AND n = 7", `tile 7 at level 0 has another root than tile 0 at level 1 says`},
		"at the edge":    {"UPDATE tile SET (root, hashes) = (SELECT root, hashes FROM tile WHERE level = 0 AND n = 8) WHERE level = 0 AND n = 256", `"acme": the tiles and the last leaves give the root `},
		"one is gone":    {"DELETE FROM tile WHERE level = 0 AND n = 7", `"acme": what is below tile 0 at level 1: `},
		"one too many":   {"INSERT INTO tile SELECT tenant, level, 258, root, hashes FROM tile WHERE level = 0 AND n = 7", `"acme": tile 258 at level 0 is not of a tree of 65836 leaves`},
		"far beyond":     {"INSERT INTO tile SELECT tenant, level, 1 << 56, root, hashes FROM tile WHERE level = 1", `is not of a tree of 65836 leaves`},
		"too high":       {"INSERT INTO tile SELECT tenant, 8, n, root, hashes FROM tile WHERE level = 1", `"acme": tile 0 at level 8 is not of a tree of 65836 leaves`},
		"too low":        {"INSERT INTO tile SELECT tenant, -1, n, root, hashes FROM tile WHERE level = 1", `"acme": tile 0 at level -1 is not of a tree of 65836 leaves`},
		"before it":      {"INSERT INTO tile SELECT tenant, level, -1, root, hashes FROM tile WHERE level = 1", `"acme": tile -1 at level 1 is not of a tree of 65836 leaves`},
		"so at the edge": {"DELETE FROM tile WHERE level = 0 AND n = 256", `"acme": the tree of 65836 leaves: `},
	} {
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := pastTriggers(t, path, c.sql); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if all := strings.Join(faults(t, path), "\n"); !strings.Contains(all, c.want) {
			t.Errorf("%s: the file's faults are %q", name, all)
		}
	}
}
