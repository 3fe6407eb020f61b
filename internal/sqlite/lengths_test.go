package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/budget"
	"github.com/holdfast-dev/holdfast/kernel"
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
