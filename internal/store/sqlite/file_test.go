package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/internal/store/storetest"
	"github.com/holdfast-dev/holdfast/ledger"
)

// raw runs statements on the file as somebody with a SQLite shell would.
func raw(t testing.TB, path string, statements ...string) error {
	t.Helper()
	c, err := connection.Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, sql := range statements {
		if err := c.Script(sql); err != nil {
			return err
		}
	}
	return nil
}

func appendN(t testing.TB, s *Store, from, n int) {
	t.Helper()
	err := s.Update(t.Context(), func(tx kernel.Tx) error {
		for i := from; i < from+n; i++ {
			if _, err := tx.Append(storetest.Leaf(t, "acme", ledger.KindBegin, storetest.Crossing(i), fmt.Sprint(i))); err != nil {
				return err
			}
		}
		return putValue(tx, "last", fmt.Sprint(from))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fill makes a store with a bit of everything and closes it.
func fill(t testing.TB) (path string) {
	t.Helper()
	filled.Do(func() {
		dir := t.TempDir()
		s := openStore(t, dir)
		appendN(t, s, 0, 300)
		err := s.Update(t.Context(), func(tx kernel.Tx) error {
			return errors.Join(tx.Revoke("acme", "jti", time.Now()),
				tx.PutCheckpoint(ledger.SignedCheckpoint{Head: ledger.Head{Tenant: "acme", Size: 1}, Note: []byte("n")}))
		})
		if err = errors.Join(err, s.Close()); err == nil {
			filled.file, err = os.ReadFile(filepath.Join(dir, "state", "holdfast.db"))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	path = filepath.Join(t.TempDir(), "state", "holdfast.db")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, filled.file, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// filled is the file of which fill makes copies.
var filled struct {
	sync.Once
	file []byte
}

func TestK6_AC2_append_only(t *testing.T) {
	path := fill(t)
	for _, sql := range []string{
		"DELETE FROM leaf WHERE id > 0",
		"UPDATE leaf SET record = x'00'",
		"UPDATE leaf SET hash = x'00'",
		"UPDATE leaf SET part = x'00'",
		"UPDATE leaf SET kind = 3",
		"UPDATE leaf SET at = at + 1",
		"UPDATE leaf SET id = id + 1000",
		"UPDATE leaf SET part = NULL, crossing = NULL",
		"REPLACE INTO leaf (id, kind, at, hash, crossing, record) SELECT id, kind, at, hash, crossing, x'00' FROM leaf",
		"REPLACE INTO leaf (id, kind, at, hash, crossing, record) SELECT id + 5000, kind, at, hash, crossing, x'00' FROM leaf",
		"INSERT OR REPLACE INTO head (tenant, size, root, settled) SELECT tenant, 1, root, 0 FROM head",
		"REPLACE INTO tile SELECT tenant, level, n, zeroblob(32), hashes FROM tile",
		"REPLACE INTO checkpoint SELECT tenant, size, root, at, x'00' FROM checkpoint",
		"UPDATE tile SET root = zeroblob(32)",
		"DELETE FROM tile",
		"UPDATE checkpoint SET note = x'00'",
		"DELETE FROM checkpoint",
		"DELETE FROM head",
		"UPDATE head SET size = size - 1",
		"DELETE FROM revocation",
		"UPDATE revocation SET jti = 'other'",
	} {
		if err := raw(t, path, sql); err == nil {
			t.Errorf("the database allowed %s", sql)
		}
	}
	if err := raw(t, path, "UPDATE leaf SET part = NULL"); err != nil {
		t.Errorf("a part cannot be erased: %v", err)
	}
	s := openStore(t, filepath.Dir(filepath.Dir(path)))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// pastTriggers runs sql without any trigger, and puts them back as they were.
func pastTriggers(t *testing.T, path, sql string) error {
	t.Helper()
	all, err := migrateInMemory()
	if err != nil {
		t.Fatal(err)
	}
	drop, back := "", ""
	for _, o := range all {
		if o.kind == "trigger" {
			drop, back = drop+"DROP TRIGGER "+o.name+";", back+";"+o.sql
		}
	}
	return raw(t, path, drop+sql+back)
}

// Whoever goes round the triggers is found out when the store is opened, as
// far as the end of the tree shows it.
func TestTamperedTailIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ sql, want string }{
		"a record":       {"UPDATE leaf SET record = '{\"note\":\"forged\"}' || '' WHERE seq = 299", ""},
		"record bytes":   {"UPDATE leaf SET record = CAST('{}' AS BLOB) WHERE seq = 299", "leaf 299"},
		"record, hash":   {"UPDATE leaf SET record = CAST('{}' AS BLOB), hash = (SELECT hash FROM leaf WHERE seq = 1) WHERE seq = 299", "leaf 299"},
		"a lost leaf":    {"DELETE FROM leaf WHERE seq = 299", "298"},
		"a leaf between": {"DELETE FROM leaf WHERE seq = 280", "280"},
		"the head":       {"UPDATE head SET size = 298", "298"},
		"the root":       {"UPDATE head SET root = zeroblob(32)", "root"},
		"a tile":         {"UPDATE tile SET root = zeroblob(32)", "root"},
		"a short hash":   {"UPDATE leaf SET hash = x'00' WHERE seq = 299", "leaf 299: a hash of 1 bytes stands beside the record"},
		"no hash":        {"UPDATE leaf SET hash = x'' WHERE seq = 299", "leaf 299: a hash of 0 bytes stands beside the record"},
		"a long hash":    {"UPDATE leaf SET hash = zeroblob(33) WHERE seq = 299", "leaf 299: a hash of 33 bytes stands beside the record"},
		"a short root":   {unchecked + "UPDATE head SET root = x'00'", "the head has a root of 1 bytes"},
		"a tile's root":  {unchecked + "UPDATE tile SET root = x'00'", "tile 0 at level 0 has a root of 1 bytes"},
	} {
		path := fill(t)
		if err := pastTriggers(t, path, c.sql); err != nil {
			if c.want == "" {
				continue // the table's types refused it already
			}
			t.Fatalf("%s: %v", name, err)
		}
		s, err := Open(t.Context(), Options{Path: path})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "acme") {
			t.Errorf("%s was changed and opening says %v, want %q", name, err, c.want)
		}
		if s != nil {
			s.Close()
		}
	}
}

func TestSchemaVersions(t *testing.T) {
	path := fill(t)
	if err := raw(t, path, "PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	for _, ro := range []bool{false, true} {
		_, err := Open(t.Context(), Options{Path: path, ReadOnly: ro})
		if !errors.Is(err, kernel.ErrNewer) || !strings.Contains(err.Error(), "hint:") {
			t.Errorf("a newer store, read-only %v: %v", ro, err)
		}
	}
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := raw(t, foreign, "CREATE TABLE x (y)"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: foreign}); err == nil {
		t.Error("somebody else's database was taken for a store")
	}
	if err := raw(t, foreign, "PRAGMA application_id = 7"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: foreign}); err == nil || !strings.Contains(err.Error(), "another application") {
		t.Errorf("another application's database: %v", err)
	}
	for name, text := range map[string]string{"text": strings.Repeat("not a database ", 999), "truncated": "SQLite format 3\x00"} {
		bad := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(t.Context(), Options{Path: bad}); err == nil {
			t.Errorf("a file of %s was opened", name)
			s.Close()
		}
	}
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("a store without a path was opened")
	}
	if _, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "none"), ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading a store that is not there: %v", err)
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b#c%20", "state")
	path := filepath.Join(dir, "holdfast.db")
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	appendN(t, s, 0, 1)
	for name, mode := range map[string]os.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode().Perm(), mode, err)
		}
	}
	if err := os.Symlink(path, path+".link"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: path + ".link"}); err == nil {
		t.Error("a store was opened through a link")
	}
}

// A disk that is full refuses everything and loses nothing.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, err := Open(t.Context(), Options{Path: path, MaxPages: 80})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; n < 10_000 && err == nil; n++ {
		err = s.Update(t.Context(), func(tx kernel.Tx) error {
			_, err := tx.Append(storetest.Leaf(t, "acme", ledger.KindEntry, storetest.Crossing(n), strings.Repeat("x", 1000)))
			return err
		})
	}
	if !errors.Is(err, kernel.ErrPoisoned) || !strings.Contains(err.Error(), "full") {
		t.Fatalf("after %d updates: %v", n, err)
	}
	if err := s.Update(t.Context(), func(kernel.Tx) error { return nil }); !errors.Is(err, kernel.ErrPoisoned) {
		t.Errorf("an update after the disk was full: %v", err)
	}
	count := func(s *Store) (size int64) {
		err := s.View(t.Context(), func(tx kernel.Tx) error {
			hs, err := tx.Heads()
			if err == nil {
				size = hs[0].Size
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return size
	}
	if got := count(s); got != int64(n-1) {
		t.Errorf("the full store shows %d leaves, %d were acknowledged", got, n-1)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close a full store: %v", err)
	}
	s, err = Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := count(s); got != int64(n-1) {
		t.Errorf("opened with room again: %d leaves, %d were acknowledged", got, n-1)
	}
	appendN(t, s, n, 10)
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	defer s.Close()
	appendN(t, s, 0, 10)
	r, err := Open(t.Context(), Options{Path: s.opt.Path, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	called := false
	if err := r.Update(t.Context(), func(kernel.Tx) error { called = true; return nil }); !errors.Is(err, kernel.ErrReadOnly) || called {
		t.Errorf("an update of a store that is open for reading: %v, called %v", err, called)
	}
	for n := 10; n < 15; n++ {
		appendN(t, s, n, 1)
		err := r.View(t.Context(), func(tx kernel.Tx) error {
			hs, err := tx.Heads()
			if err != nil || len(hs) != 1 || hs[0].Size != int64(n+1) {
				t.Errorf("the reader sees %v after %d leaves, %v", hs, n+1, err)
			}
			appendN(t, s, 1000+n*2, 0) // the owner commits beside it
			l, err := tx.Leaf("acme", int64(n))
			if err != nil || l.Crossing != storetest.Crossing(n) {
				t.Errorf("leaf %d: %+v, %v", n, l, err)
			}
			_, err = ledger.TreeOf(tx.Nodes("acme"), int64(n))
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// An entry's row in audit_wal has every column of spec 003 section 1.7.
func TestAuditView(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	part := ledger.NewPart([ledger.SaltSize]byte{1, 2, 3}, []byte(`{"ok":true}`))
	hash := ledger.PartHash(part)
	yes, score := true, 0.25
	limit := int64(1 << 40)
	at := time.Date(2026, 3, 1, 23, 59, 59, 5000, time.UTC)
	e := ledger.Entry{ID: storetest.Crossing(1), TenantID: "acme", ResultHash: &hash, Correlation: "corr", Timestamp: at, Boundary: "exec/bash",
		Caller: "ann", Roles: []string{"dev", "ops"}, Valid: &yes, Required: []string{"p"}, Authorized: &yes, BudgetLimit: &limit,
		Confidence: &score, ExitCode: 3, CreatedAt: at, State: holdfast.Idle, Outcome: ledger.Done}
	doc, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := engine.Seal(doc, "id", "correlation_id", "operation_result_hash")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx kernel.Tx) error {
		_, err := tx.Append(ledger.Leaf{Tenant: "acme", Kind: ledger.KindEntry, Crossing: e.ID, At: at, Record: rec, Part: part})
		return err
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := openReader(s.opt.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for column, want := range map[string]any{
		"id": e.ID, "tenant_id": "acme", "correlation_id": "corr", "timestamp": "2026-03-01T23:59:59.000005Z",
		"boundary_crossing": "exec/bash", "caller_user_id": "ann", "caller_roles": `["dev","ops"]`, "k1_schema_id": nil,
		"k1_valid": int64(1), "k2_required_permissions": `["p"]`, "k2_granted_permissions": nil, "k2_authorized": int64(1),
		"k3_resource_type": nil, "k3_budget_limit": limit, "k3_usage_before": nil, "k3_requested": nil, "k3_within_budget": nil,
		"k5_idempotency_key": nil, "k7_confidence_score": 0.25, "k7_human_approved": nil, "k8_eval_passed": nil,
		"operation_result": `{"ok":true}`, "exit_code": int64(3), "redaction_rules_applied": nil,
		"contains_pii_before_redaction": nil, "created_at": "2026-03-01T23:59:59.000005Z", "partition_date": "2026-03-01",
	} {
		r, err := c.One("SELECT " + column + " FROM audit_wal")
		if err != nil || len(r) != 1 || r[0] != want {
			t.Errorf("audit_wal.%s is %v, want %v (%v)", column, r, want, err)
		}
	}
}

func TestBackupOpens(t *testing.T) {
	s := openStore(t, t.TempDir())
	defer s.Close()
	appendN(t, s, 0, 600)
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := s.Backup(context.Background(), file); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), Options{Path: file})
	if err != nil {
		t.Fatalf("the backup does not open: %v", err)
	}
	defer c.Close()
	appendN(t, c, 600, 1)
}
