package daemon

import (
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
	_ "modernc.org/sqlite"
)

// pastTriggers changes a store behind Holdfast's back, which may be writing to it, and
// leaves the schema as it was.
func pastTriggers(t *testing.T, file string, change func(*testing.T, *sql.DB)) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	rows, err := db.Query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		t.Fatal(err)
	}
	drop, back := "", ""
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		drop, back = drop+"DROP TRIGGER "+name+";", back+text+";"
	}
	run(t, db, drop)
	change(t, db)
	run(t, db, back)
}

func run(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// cutTree takes away everything of a tenant beyond its first leaves, and makes
// the head fit what is left.
func cutTree(t *testing.T, db *sql.DB, tenant string, keep int64) {
	t.Helper()
	var id int64
	if err := db.QueryRow("SELECT id FROM tenant WHERE name = ?", tenant).Scan(&id); err != nil {
		t.Fatal(err)
	}
	run(t, db, "DELETE FROM leaf WHERE tenant = ? AND seq >= ?", id, keep)
	run(t, db, "DELETE FROM checkpoint WHERE tenant = ? AND size > ?", tenant, keep)
	run(t, db, "DELETE FROM tile WHERE tenant = ?", id)
	var tree ledger.Tree
	rows, err := db.Query("SELECT record FROM leaf WHERE tenant = ? ORDER BY id", id)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var b []byte
		if err := rows.Scan(&b); err != nil {
			t.Fatal(err)
		}
		tree.Append(ledger.LeafHash(b))
	}
	root := tree.Root()
	run(t, db, "UPDATE head SET size = ?, root = ?, settled = min(settled, ?) WHERE tenant = ?", keep, root[:], keep, id)
}

func takeAway(t *testing.T, db *sql.DB, tenant string) {
	t.Helper()
	run(t, db, "PRAGMA foreign_keys = 0")
	for _, table := range []string{"leaf", "tile", "head"} {
		run(t, db, "DELETE FROM "+table+" WHERE tenant = (SELECT id FROM tenant WHERE name = ?)", tenant)
	}
	run(t, db, "DELETE FROM tenant WHERE name = ?", tenant)
	run(t, db, "DELETE FROM checkpoint WHERE tenant = ?", tenant)
}

// A ledger that was cut back is not served, so that no second history is ever
// signed on top of what is left (D14).
func TestK6_INV2_no_fork_is_signed(t *testing.T) {
	t.Parallel()
	signed := filepath.Join(t.TempDir(), "s")
	for range 2 {
		d, err := Open(t.Context(), Options{State: signed, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		act(t, d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, *sql.DB)
		want  string
	}{
		"untouched":    {func(*testing.T, *sql.DB) {}, ""},
		"cut back":     {func(t *testing.T, db *sql.DB) { cutTree(t, db, holdfast.Local, 4) }, `the ledger was cut back: tenant "local" had`},
		"tenant gone":  {func(t *testing.T, db *sql.DB) { takeAway(t, db, holdfast.Local) }, `tenant "local" had`},
		"log gone":     {func(t *testing.T, db *sql.DB) { takeAway(t, db, ledger.CheckpointsTenant) }, "_checkpoints was cut back"},
		"log cut back": {func(t *testing.T, db *sql.DB) { cutTree(t, db, ledger.CheckpointsTenant, 1) }, "_checkpoints was cut back"},
		"a log of another": {func(t *testing.T, db *sql.DB) {
			cutTree(t, db, ledger.CheckpointsTenant, 1)
			cutTree(t, db, holdfast.Local, 1)
		}, `tenant "local" had`},
		"unsigned": {func(t *testing.T, db *sql.DB) { run(t, db, "DELETE FROM checkpoint") }, "the newest checkpoint of _checkpoints was taken away"},
		"a tenant unsigned": {func(t *testing.T, db *sql.DB) {
			run(t, db, "DELETE FROM checkpoint WHERE tenant = 'local'")
		}, "was taken away: _checkpoints records it"},
		"forged checkpoint": {func(t *testing.T, db *sql.DB) {
			run(t, db, "UPDATE checkpoint SET note = CAST(replace(CAST(note AS TEXT), 'at 2', 'at 3') AS BLOB)")
		}, "checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "s")
			copyState(t, signed, state)
			pastTriggers(t, PathsIn(state).DB, c.spoil)
			before, err := os.ReadFile(PathsIn(state).DB)
			if err != nil {
				t.Fatal(err)
			}
			d, err := Open(t.Context(), Options{State: state, Version: "test"})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			after, err := os.ReadFile(PathsIn(state).DB)
			if err != nil || string(before) != string(after) {
				t.Errorf("the file was written: %v", err)
			}
		})
	}
}

// copyState copies the state directory of a daemon that is closed.
func copyState(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(from, strings.TrimPrefix(path, to)))
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode().Perm())
	}); err != nil {
		t.Fatal(err)
	}
}

// act does a few things that are recorded.
func act(t *testing.T, d *Daemon) {
	t.Helper()
	tok, err := d.Mint(holdfast.Identity{Agent: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		// A refusal is recorded like anything else.
		_, _ = d.Kernel.Cross(t.Context(), holdfast.Request{Boundary: "test/nothing", Payload: []byte(`{}`), Token: tok}, nil)
	}
	var n int64
	err = d.store.View(t.Context(), func(tx kernel.Tx) error {
		hs, err := tx.Heads()
		for _, h := range hs {
			n += h.Size
		}
		return err
	})
	if err != nil || n < 4 {
		t.Fatalf("%d leaves, %v", n, err)
	}
}
