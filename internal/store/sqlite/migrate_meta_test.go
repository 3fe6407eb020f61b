package sqlite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/schema"
	"github.com/holdfast-dev/holdfast/internal/store/storetest"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestDeclaredTablesAreThoseOfVersion3: the tables that a migration made have the columns
// that the code declares today.
func TestDeclaredTablesAreThoseOfVersion3(t *testing.T) {
	tables, err := newRowTables(feature.Tables())
	if err != nil {
		t.Fatal(err)
	}
	columns := func(c *connection.Conn, name string) (out []string) {
		err := c.Query("SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?)", func(r connection.Row) error {
			out = append(out, fmt.Sprint(r.Text(0), " ", r.Text(1), r.Int(2), r.Int(3)))
			return nil
		}, name)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	dir := t.TempDir()
	made := openStore(t, dir)
	defer made.Close()
	path := filepath.Join(dir, "other.db")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), raw(t, path, "CREATE TABLE x (y)")); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if err := raw(t, path, table.objects[0].sql); err != nil {
			t.Fatal(err)
		}
	}
	c, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	later := []string{"row_model_value", "row_model_value_end"} // a store makes them when they are declared
	for d := range tables {
		name := tableName(d)
		if slices.Contains(later, name) {
			continue
		}
		if got, want := columns(made.side, name), columns(c, name); len(got) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s has the columns %q, and is declared as %q", name, got, want)
		}
	}
}

// oldStore returns a file as version 1 or 2 of the schema has it, with those values in meta,
// and how its tree ended.
func oldStore(t *testing.T, version int, values map[string]string) (path string, head ledger.Head) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := openWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	for v := range version {
		if err := schema.RunStep(c, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Script(fmt.Sprintf("PRAGMA application_id = 0x48465354; PRAGMA user_version = %d",
		version)); err != nil {
		t.Fatal(err)
	}
	b := newBatch(1)
	tree := new(ledger.Tree)
	tk := &trunk{tenantID: tenantID{"acme", 1}, tree: tree}
	b.tenants = append(b.tenants, tk.tenantID)
	for i := range 5 {
		l := storetest.Leaf(t, "acme", ledger.KindEvent, "", fmt.Sprint(i))
		hash := ledger.LeafHash(l.Record.Bytes())
		b.leaves = append(b.leaves, leafRow{tk, ledger.Stored{Place: ledger.Place{Tenant: "acme", Seq: int64(i),
			Hash: hash}, Kind: l.Kind, At: l.At, Record: l.Record.Bytes()}})
		tree.Append(hash)
	}
	head = tree.Head("acme")
	b.heads = append(b.heads, headRow{tk, head, 0})
	if err := b.writeTo(c); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(`INSERT INTO agent (tenant, name, doc) VALUES ('acme', 'ada', '{"tenant_id":"acme","name":"ada"}')`); err != nil {
		t.Fatal(err)
	}
	for name, v := range values {
		if _, err := c.Exec("INSERT INTO meta (name, value) VALUES (?, ?)", name, []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return path, head
}

// metaValues has a value of each kind that version 2 kept, and the row that it becomes.
func metaValues() (values, rows map[string]string) {
	acme, ada, period := hashHex("acme"), hashHex("acme\x00ada"), "spend/"+hashHex("acme")[:16]+"/day3"
	values = map[string]string{
		"halted":                    "yes",
		"statement/s1":              "2026-03-01T12:00:00Z",
		"rule/rr_1":                 `{"word":{"statement":"eA==","signature":"eQ=="}}`,
		"rule-use/rr_1":             `{"uses":3,"last":"2026-03-01T12:00:00Z"}`,
		"rules-of/abc":              `["rr_1","rr_2"]`,
		"rules/acme":                `["rr_1"]`,
		"rule-text/v1":              `{"id":"a","on":"request"}`,
		"subagents/" + ada:          "17\n12 first\n13 second\n",
		"subagents/0123":            "0\n",
		"goals-pause/acme":          `{"paused":true}`,
		"goals-pause/hurt":          `{"paused":fal`,
		"erased/acme":               "4",
		"pin/mcp/a/b":               "2:x",
		"changed/mcp/a/b":           "2:y",
		"pin/mcp/a/c":               "z",
		"pins/a":                    "2",
		"sight/mcp/a/b":             `{"pin":"x","at":"2026-03-01T12:00:00Z","says":{}}`,
		"sight-now/mcp/a/b":         `{"pin":"y","at":"2026-03-01T12:00:00Z","says":{}}`,
		"judge-scores/ab":           `[{"key":"ab1","scores":{},"at":"2026-03-01T12:00:00Z"}]`,
		"budget-granted/c1":         `{"window":5,"amount":7}`,
		"budget-asked/c1":           "rv_1",
		"budget-question/rv_1":      `{"key":"k","window":5,"amount":7,"budget":"b"}`,
		"budget-blocks":             `{"acme":{"tenant_id":"acme","budget":"b"}}`,
		"chain-ended/" + ada:        `{"at":"2026-03-01T12:00:00Z","budget":"b","crossing":"c"}`,
		"chains-ended/" + acme:      "2",
		period + "/index":           `{"period":"2026-02-25","rows":["r1","gone"]}`,
		period + "/r1":              `{"period":"2026-02-25","tenant_id":"acme","agent":"ada","owner":"bob","model":"m","calls":2,"input_tokens":10,"money_micro":99,"unpriced":1}`,
		period + "/old":             `{"period":"2026-02-18","tenant_id":"acme","agent":"ada","model":"m","calls":9}`,
		period[:22] + "/day4/index": `{"period":`,
	}
	rows = map[string]string{
		"halt everything":             `{"halted":true}`,
		"statement s1":                `{"at":"2026-03-01T12:00:00Z"}`,
		"remembered_rule rr_1":        values["rule/rr_1"],
		"remembered_use rr_1":         values["rule-use/rr_1"],
		"remembered_caller abc":       `{"ids":["rr_1","rr_2"]}`,
		"remembered_tenant acme":      `{"ids":["rr_1"]}`,
		"rule_text v1":                values["rule-text/v1"],
		"subagent_tree acme ada":      `{"told":17,"within":"12 first\n13 second\n"}`,
		"subagent_tree _unknown 0123": `{"told":0,"within":""}`,
		"goals_pause acme":            `{"paused":true}`,
		"goals_pause hurt":            `{"paused":fal`,
		"erased_part acme":            `{"to":4}`,
		"tool_pin mcp/a/b":            `{"first":"2:x","told":"2:y"}`,
		"tool_pin mcp/a/c":            `{"first":"z"}`,
		"tool_count a":                `{"pins":2}`,
		"tool_sight mcp/a/b first":    values["sight/mcp/a/b"],
		"tool_sight mcp/a/b changed":  values["sight-now/mcp/a/b"],
		"judge_score ab":              `{"kept":` + values["judge-scores/ab"] + `}`,
		"budget_grant c1":             values["budget-granted/c1"],
		"budget_asked c1":             `{"review":"rv_1"}`,
		"budget_question rv_1":        values["budget-question/rv_1"],
		"budget_block acme":           `{"tenant_id":"acme","budget":"b"}`,
		"chain_ended " + ada:          values["chain-ended/"+ada],
		"chain_count acme":            `{"ended":2}`,
		"spend acme day3 r1":          `{"period":"2026-02-25","agent":"ada","owner":"bob","model":"m"} [2 0 10 0 0 0 99 1]`,
		"spend_period acme day3":      `{"period":"2026-02-25","rows":2}`,
		"spend_period acme day4":      `{"period":`,
	}
	return values, rows
}

// allRows reads every row of every table.
func allRows(t *testing.T, s *Store) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for d := range s.tables {
		rows, err := readRows(s, s.side, d, rangeOf(1000))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			name := strings.TrimSpace(fmt.Sprintln(append([]any{d.Name}, r.Key...)...))
			out[name] = string(r.Doc)
			if len(r.Sums) > 0 {
				out[name] += fmt.Sprint(" ", r.Sums)
			}
		}
	}
	return out
}

// TestMigrationFromVersion2: every value becomes its row, and the ledger is unchanged.
func TestMigrationFromVersion2(t *testing.T) {
	values, want := metaValues()
	path, head := oldStore(t, 2, values)
	if _, err := Open(t.Context(), Options{Path: path, ReadOnly: true}); err == nil ||
		!strings.Contains(err.Error(), "holdfast up") {
		t.Errorf("a reader of the version before: %v", err)
	}
	s, err := Open(t.Context(), Options{Path: path, Tables: feature.Tables()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := allRows(t, s)
	for name, doc := range want {
		if got[name] != doc {
			t.Errorf("%s is %s, expected %s", name, got[name], doc)
		}
		delete(got, name)
	}
	for name, doc := range got {
		t.Errorf("%s came from nowhere: %s", name, doc)
	}
	if fs, err := s.Structure(t.Context()); err != nil || len(fs) > 0 {
		t.Errorf("%v, %v", fs, err)
	}
	err = s.View(t.Context(), func(tx kernel.Tx) error {
		hs, err := tx.Heads()
		if len(hs) != 1 || hs[0] != head {
			t.Errorf("the heads are %+v, expected %+v", hs, head)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMigrationIsAllOrNothing: a step that fails or is interrupted leaves the version before
// unchanged, and names the value that has no table.
func TestMigrationIsAllOrNothing(t *testing.T) {
	values, _ := metaValues()
	values["something/else"] = "x"
	path, _ := oldStore(t, 2, values)
	before := metaOf(t, path)
	if _, err := Open(t.Context(), Options{Path: path}); err == nil || !strings.Contains(err.Error(),
		"something/else") {
		t.Fatalf("a value without a table: %v", err)
	}
	if got := metaOf(t, path); !slices.Equal(got, before) {
		t.Errorf("a migration that failed left %q, expected %q", got, before)
	}
	// A crash before the commit: the log has no commit of the step.
	c, err := openWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Script("BEGIN IMMEDIATE; DELETE FROM meta WHERE name = 'something/else'"),
		schema.RunStep(c, 2)); err != nil {
		t.Fatal(err)
	}
	crashed := filepath.Join(t.TempDir(), "db")
	for _, part := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + part)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err = errors.Join(err, os.WriteFile(crashed+part, b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(c.Script("ROLLBACK"), c.Close()); err != nil {
		t.Fatal(err)
	}
	if got := metaOf(t, crashed); !slices.Equal(got, before) {
		t.Errorf("an interrupted migration left %q, expected %q", got, before)
	}
	if err := raw(t, crashed, "DELETE FROM meta WHERE name = 'something/else'"); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Path: crashed})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// metaOf returns the names and values of meta in a file of version 2.
func metaOf(t *testing.T, path string) (out []string) {
	t.Helper()
	c, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	version, err := c.Scalar("PRAGMA user_version")
	if err == nil {
		err = c.Query("SELECT name, value FROM meta ORDER BY name", func(r connection.Row) error {
			out = append(out, r.Text(0)+"="+string(r.Blob(1)))
			return nil
		})
	}
	if err != nil || version != 2 {
		t.Fatalf("version %d, %v", version, err)
	}
	return out
}

// TestUnknownTableIsNewer: a file with a table that is not declared was written by a newer
// Holdfast; one that lacks a declared table gets it from the owner, and is refused to readers.
func TestUnknownTableIsNewer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: path, ReadOnly: true, Tables: storetest.Tables()}); err == nil ||
		!strings.Contains(err.Error(), "holdfast up") {
		t.Errorf("a reader of a file without a table: %v", err)
	}
	if s, err = Open(t.Context(), Options{Path: path, Tables: storetest.Tables()}); err != nil {
		t.Fatal(err)
	}
	if fs, err := s.Structure(t.Context()); err != nil || len(fs) > 0 {
		t.Errorf("%v, %v", fs, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		if _, err := Open(t.Context(), Options{Path: path, ReadOnly: readOnly}); !errors.Is(err,
			kernel.ErrNewer) || !strings.Contains(err.Error(), "row_test_") {
			t.Errorf("a file with more tables: %v", err)
		}
	}
	if err := raw(t, path,
		"DROP INDEX row_test_job_state; CREATE INDEX row_test_job_state ON row_test_job (prio)"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: path, Tables: storetest.Tables()}); err == nil ||
		!strings.Contains(err.Error(), "row_test_job_state was changed") {
		t.Errorf("a changed index: %v", err)
	}
}

// hashHex returns the hash by which the old names of values tell tenants and agents apart.
func hashHex(s string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(s)))
}
