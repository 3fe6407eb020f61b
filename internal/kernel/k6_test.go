package kernel_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2026)) }

// sql runs a statement on the store's file past the store.
func (w *world) sql(q string) error {
	db, err := sql.Open("sqlite", "file:"+w.file()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(q)
	return err
}

// count asks the store's file for one number, past the store.
func (w *world) count(q string) int {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.file()+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow(q).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// nowhere fails if a text stands in any byte of the store's files.
func (w *world) nowhere(texts ...string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "*"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, s := range texts {
			for form, v := range forms(s) {
				if bytes.Contains(b, []byte(v)) {
					w.t.Errorf("%s holds %q as %s", filepath.Base(f), s, form)
				}
			}
		}
	}
}

// forms are the ways in which a text could hide in a file: as it is, in hex,
// and in base64 at each alignment.
func forms(s string) map[string]string {
	out := map[string]string{"itself": s, "hex": hex.EncodeToString([]byte(s))}
	for shift := range 3 {
		if len(s) < 12 {
			break
		}
		b := []byte(s)[(3-shift)%3:]
		out[fmt.Sprintf("base64 at %d", shift)] = base64.StdEncoding.EncodeToString(b[:len(b)/3*3])
	}
	return out
}

// decisionOf is the signed statement that an event keeps.
func decisionOf(t *testing.T, data []byte) operator.Signed {
	t.Helper()
	var s operator.Signed
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Things that must not be found in any byte that is written. Each is of a kind
// that redaction knows.
func canaries() []string {
	return []string{"AKIAIOSFODNN7CANARYX", "ghp_CaNaRy0123456789abcdefghijABCDEFGHIJ", "canary.person@example.org",
		"4111 1111 1111 1111", "sk-ant-api03-CANARYcanary0123456789abcdefCANARYcanary0123456789abcdef-AA"}
}

// buffer is a log that several goroutines may write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func logged(b *buffer) option {
	return func(c *kernel.Config, _ *world) {
		c.Log = slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
}

func TestK6_AC3_INV3_no_canary_anywhere(t *testing.T) {
	log := &buffer{}
	rules := "rules:\n  - {id: no, on: request, boundary: test/*, when: has(args.bad), message: bad}\n"
	w := newWorld(t, rules, logged(log), listed(
		holdfast.Contract{Boundary: "held/*", Risk: holdfast.High, RatePerMinute: 50, Source: "test:100"},
		holdfast.Contract{Boundary: "open/*", Risk: holdfast.Low, RatePerMinute: 50, Cooldown: time.Microsecond, Source: "test:101"}),
		limits(tokens(budget.Tenant, 1<<40)))
	for i, c := range canaries() {
		q, _ := json.Marshal(c)
		esc := strings.ReplaceAll(string(q), "a", "\\u0061")
		long := strings.Repeat("x ", 240) // the canary stands across the cut of a text
		cross := func(req holdfast.Request, act kernel.Act) *holdfast.Outcome {
			out, _ := w.k.Cross(t.Context(), req, act)
			return out
		}
		pay := fmt.Sprintf(`{"n":%d,"v":%s,"e":%s,%s:1,"deep":[{"password":%s}]}`, i, q, esc, q, q)
		for _, b := range []string{"test/low", "test/medium", "test/never", "test/schema", "test/perm", "test/output", "nowhere"} {
			cross(w.req(b, pay), ok)
		}
		cross(w.req("test/low", fmt.Sprintf(`{"bad":%s}`, q)), ok)
		cross(w.req("test/schema", fmt.Sprintf(`{"n":1,"s":%s}`, q)), ok)
		cross(w.req("test/schema", fmt.Sprintf(`{"n":1,%s:%s}`, q, q)), ok)
		cross(w.req("test/low", `{`+c), ok)
		// In what comes out, at the beginning, across each cut, and far in.
		for _, at := range []int{0, 1000, 1015, 2030, 4000, 65520, 70000} {
			pad := strings.Repeat("y ", at/2)
			cross(w.req("test/low", `{}`), withOutput(pad+c+" "+pad))
			cross(w.req("test/low", `{}`), withOutput(`{"p":"`+pad+`","v":`+string(q)+`}`))
		}
		many := strings.Repeat(c+" ", 200)
		cross(w.req("test/low", `{}`), withOutput(many))
		cross(w.req("test/output", `{}`), withOutput(`{"ok":`+string(q)+`,`+string(q)+`:1}`))
		cross(w.req("test/replay", pay), withOutput(`{"v":`+string(q)+`}`))
		if out := cross(w.req("test/replay", pay), ok); !out.Replayed || !strings.Contains(string(out.Output.Body), c) {
			t.Fatalf("the result is not given back as it was: %+v", out)
		}
		// In errors and panics, and across their cut.
		for _, text := range []string{c, long + strings.Repeat("x ", 8) + c, long + strings.Repeat("x ", 4) + c + " " + long} {
			fail := fmt.Errorf("upstream: %s", text)
			cross(w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, fail })
			cross(w.keyed("test/low", `{}`, fmt.Sprintf("k%d%d", i, len(text))), func(context.Context) (holdfast.Output, error) {
				return holdfast.Output{}, &holdfast.Error{Kind: holdfast.KindOperation, Why: "upstream " + text, Err: fail}
			})
			cross(w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) { panic(fail) })
		}
		// In names that an agent chooses.
		for _, name := range []string{c, strings.Repeat("z", 119) + "." + c, url.PathEscape(c)} {
			for _, prefix := range []string{"", "held/", "open/", "test/many/", "mcp/x/"} {
				cross(w.req(prefix+name, `{}`), ok)
			}
		}
		r := w.req("test/low", `{}`)
		r.Correlation, r.Traceparent, r.Tracestate = c, c, "v="+c
		cross(r, ok)
		cross(w.keyed("test/low", `{}`, c), ok)
		r = w.req("test/low", `{}`)
		r.Consumes = map[holdfast.Resource]int64{holdfast.Resource(c): 1}
		cross(r, ok)
		r = w.req("test/low", `{}`)
		r.Token = holdfast.NewSecret(c)
		cross(r, ok)
		// In what is put to a person, and in what people say.
		h := w.held(w.req("test/high", pay))
		w.approve(h.Review)
		cross(w.req("test/high", pay), withOutput(c))
		h = w.held(w.req("test/high", pay))
		_, _ = w.k.Decide(w.say(operator.Reject, h.Review, "because of "+c))
		_, _ = w.k.Pause(holdfast.Local, "alice", "user:carol", c)
		_, _ = w.k.Pause(holdfast.Local, "alice", "user:carol", strings.Repeat("w ", 124)+c)
		cross(w.req("test/low", `{}`), ok)
		if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice"})); err != nil {
			t.Fatal(err)
		}
		if err := w.k.Revoke(holdfast.Local, uuid4(), "user:carol", "lost with "+c); err != nil {
			t.Fatal(err)
		}
		if err := w.k.Record(kernel.Event{Tenant: holdfast.Local, Name: "noted", Who: "user:carol", Subject: "x", Data: map[string]any{"v": c}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.entries(holdfast.Local)) < 100 {
		t.Fatal("too little was written to say anything")
	}
	verifyStore(t, w)
	// While it is open: the database, its -wal and its -shm; then what is
	// left after closing; and the log.
	all := []string{}
	for _, c := range canaries() {
		all = append(all, c, c[:min(len(c), 16)], c[len(c)-min(len(c), 14):])
	}
	w.nowhere(all...)
	w.store.Close()
	w.nowhere(all...)
	for _, s := range all {
		if strings.Contains(log.String(), s) {
			i := strings.Index(log.String(), s)
			t.Errorf("the log holds %q: %s", s, log.String()[max(0, i-200):min(len(log.String()), i+100)])
		}
	}
	if !strings.Contains(log.String(), "trace.k1_") {
		t.Fatal("nothing was logged")
	}
}

// The view has the document's columns, all of them, in its order, and one row
// per entry with what the ledger says.
func TestK6_AC1_AC6_audit_wal(t *testing.T) {
	w := newWorld(t, "")
	out := w.passes(w.req("test/cost", `{"a":1}`))
	w.refused(w.req("test/schema", `{}`), holdfast.K1, holdfast.KindValidation)
	db, err := sql.Open("sqlite", "file:"+w.file()+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT * FROM audit_wal ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	have, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`id tenant_id correlation_id timestamp boundary_crossing caller_user_id caller_roles k1_schema_id k1_valid
		k2_required_permissions k2_granted_permissions k2_authorized k3_resource_type k3_budget_limit k3_usage_before k3_requested
		k3_within_budget k5_idempotency_key k7_confidence_score k7_human_approved k8_eval_passed operation_result exit_code
		redaction_rules_applied contains_pii_before_redaction created_at partition_date`)
	for _, c := range want {
		if !slices.Contains(have, c) {
			t.Errorf("no column %s", c)
		}
	}
	var got []map[string]any
	for rows.Next() {
		vals := make([]any, len(have))
		for i := range vals {
			vals[i] = new(any)
		}
		if err := rows.Scan(vals...); err != nil {
			t.Fatal(err)
		}
		m := map[string]any{}
		for i, c := range have {
			m[c] = *vals[i].(*any)
		}
		got = append(got, m)
	}
	if len(got) != 2 {
		t.Fatalf("%d rows", len(got))
	}
	a, b := got[0], got[1]
	for c, v := range map[string]any{"id": out.Crossing, "correlation_id": out.Correlation, "tenant_id": "local", "boundary_crossing": "test/cost",
		"caller_user_id": "user:alice", "k1_valid": int64(1), "k2_authorized": int64(1), "k3_resource_type": "llm_tokens", "k3_requested": int64(10),
		"k3_within_budget": int64(1), "k5_idempotency_key": out.Key, "exit_code": int64(0), "operation_result": `{"ok":true}`, "k7_confidence_score": nil} {
		if fmt.Sprint(a[c]) != fmt.Sprint(v) {
			t.Errorf("%s is %v, want %v", c, a[c], v)
		}
	}
	// NULL means that the gate was not asked (D14b).
	for c, v := range map[string]any{"k1_valid": int64(0), "k2_authorized": nil, "k3_within_budget": nil, "k8_eval_passed": nil, "exit_code": int64(1)} {
		if fmt.Sprint(b[c]) != fmt.Sprint(v) {
			t.Errorf("%s is %v, want %v", c, b[c], v)
		}
	}
	if fmt.Sprint(a["timestamp"])[:10] != fmt.Sprint(a["partition_date"]) {
		t.Errorf("%v %v", a["timestamp"], a["partition_date"])
	}
}

// The database itself refuses to change or delete what was written.
func TestK6_AC2_INV2_append_only(t *testing.T) {
	w := newWorld(t, "")
	w.passes(w.req("test/low", `{}`))
	before := w.entries(holdfast.Local)
	w.store.Close()
	for _, q := range []string{
		"UPDATE audit_wal SET exit_code = 0", "DELETE FROM audit_wal", "INSERT INTO audit_wal (id) VALUES ('x')",
		"UPDATE leaf SET record = x'7b7d'", "UPDATE leaf SET at = 0", "UPDATE leaf SET hash = zeroblob(32)", "UPDATE leaf SET kind = 3", "UPDATE leaf SET id = id + 1",
		"UPDATE leaf SET part = zeroblob(32)", "DELETE FROM leaf", "INSERT OR REPLACE INTO leaf (id, kind, at, hash, record) SELECT id, kind, at, hash, x'7b7d' FROM leaf",
		"UPDATE head SET size = 0", "DELETE FROM head"} {
		if err := w.sql(q); err == nil {
			t.Errorf("%s was obeyed", q)
		}
	}
	again := reopen(t, w.dir, "")
	after := again.entries(holdfast.Local)
	if len(after) != len(before) || !reflect.DeepEqual(after[0], before[0]) {
		t.Fatalf("%+v became %+v", before[0], after[0])
	}
	verifyStore(t, again)
}

func TestK6_AC4_INV5_tenant_isolation(t *testing.T) {
	who := holdfast.Identity{Principal: "user:a", Agent: "a", Session: "s", TokenID: "j", Roles: []string{"agent"}, Expires: time.Now().Add(time.Hour)}
	w := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Verifier = verifierFunc(func() holdfast.Identity { return who }) })
	ids := map[string]string{}
	for _, who.Tenant = range []string{"org_a", "org_b", "org_a", "org"} {
		for range 3 {
			ids[w.passes(w.req("test/low", `{}`)).Crossing] = who.Tenant
		}
	}
	for _, tenant := range []string{"org_a", "org_b", "org", "local"} {
		n := 0
		for _, e := range w.entries(tenant) {
			n++
			if ids[e.ID] != tenant || e.TenantID != tenant {
				t.Fatalf("%s stands under %s", e.ID, tenant)
			}
		}
		want := map[string]int{"org_a": 6, "org_b": 3, "org": 3, "local": 0}[tenant]
		if n != want || w.count("SELECT count(*) FROM audit_wal WHERE tenant_id = '"+tenant+"'") != want {
			t.Fatalf("%s has %d entries", tenant, n)
		}
	}
	err := w.store.View(t.Context(), func(tx kernel.Tx) error {
		for id, tenant := range ids {
			for _, other := range []string{"org_a", "org_b", "org", ""} {
				ls, err := tx.Crossing(other, id)
				if (other == tenant) != (err == nil && len(ls) == 2) {
					t.Errorf("%s of %s asked as %q: %d leaves, %v", id, tenant, other, len(ls), err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rs, err := w.k.Reviews(t.Context(), "org_b", "")
	if err != nil || len(rs) != 0 {
		t.Fatal(rs, err)
	}
}

// Criterion 5 and invariant 4: what is read in order is in order of time.
func TestK6_AC5_INV4_order(t *testing.T) {
	w := newWorld(t, "")
	var wg sync.WaitGroup
	for i := range 40 {
		req := w.req([]string{"test/low", "test/never"}[i%2], `{}`)
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, _ = w.k.Cross(context.Background(), req, ok)
		}()
	}
	wg.Wait()
	for range 5 {
		w.passes(w.req("test/low", `{}`))
	}
	var last time.Time
	for i, e := range w.entries(holdfast.Local) {
		if !e.CreatedAt.After(last) {
			t.Fatalf("entry %d was made at %v, the one before it at %v", i, e.CreatedAt, last)
		}
		last = e.CreatedAt
	}
	// One after the other, place and time agree.
	es := w.entries(holdfast.Local)[40:]
	for i := 1; i < len(es); i++ {
		if !es[i].CreatedAt.After(es[i-1].CreatedAt) || es[i].ID <= es[i-1].ID {
			t.Fatalf("%v after %v", es[i].CreatedAt, es[i-1].CreatedAt)
		}
	}
}

// Criterion 7 and failure predicate 1: the ledger cannot be written, so
// nothing is done, and the crossing is FAULTED.
func TestK6_AC7_FP1_ledger_unavailable(t *testing.T) {
	var counted int64
	w := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Refused = func(n int64) { counted = n } })
	w.passes(w.req("test/low", `{}`))
	w.mu.Lock()
	w.fault = func(string) error { return errGone }
	w.mu.Unlock()
	for i := range 4 {
		out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
			t.Error("acted without a record")
			return holdfast.Output{}, nil
		})
		wants(t, err, holdfast.KindWALWrite)
		if out.Output != nil || out.Verdict != holdfast.Deny || out.Opinions[5].State != "WRITE_FAILED" {
			t.Fatalf("%d: %+v", i, out)
		}
	}
	w.mu.Lock()
	w.fault = nil // the disk is back: the ledger stays poisoned (D14)
	w.mu.Unlock()
	_, err := w.cross(w.req("test/low", `{}`))
	wants(t, err, holdfast.KindWALWrite)
	if counted == 0 {
		t.Fatal("what was refused is not counted")
	}
	w.store.Close()
	again := reopen(t, w.dir, "")
	if _, err := again.k.Recover(counted); err != nil {
		t.Fatal(err)
	}
	ev := again.events(holdfast.Local, "refused_while_poisoned")
	if len(ev) != 1 || !strings.Contains(string(ev[0].Data), fmt.Sprint(counted)) {
		t.Fatalf("%+v", ev)
	}
	again.passes(again.req("test/low", `{}`))
	verifyStore(t, again)
}

// Failure predicate 2: a store whose table is gone does not open.
func TestK6_FP2_table_missing(t *testing.T) {
	w := newWorld(t, "")
	w.passes(w.req("test/low", `{}`))
	w.store.Close()
	if err := w.sql("DROP VIEW audit_wal; DROP TABLE leaf"); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: w.file(), Tables: testTables()})
	if err == nil {
		s.Close()
		t.Fatal("opened without its ledger")
	}
	if !strings.Contains(err.Error(), "leaf") {
		t.Fatalf("the error does not name what is missing: %v", err)
	}
}

// Failure predicate 4: without a working redactor nothing is written, and so
// nothing is done.
func TestK6_FP4_redaction_failure(t *testing.T) {
	w := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Redact = &redact.Engine{} })
	_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
		t.Error("acted")
		return holdfast.Output{}, nil
	})
	wants(t, err, holdfast.KindRedaction)
	if len(w.entries(holdfast.Local)) != 0 {
		t.Fatal("written without redaction")
	}
}

// What redaction found is said, as it was before redaction (D13).
func TestK6_D13_contains_pii(t *testing.T) {
	w := newWorld(t, "")
	for body, found := range map[string]bool{`{"ok":1}`: false, `{"m":"canary.person@example.org"}`: true} {
		if _, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), withOutput(body)); err != nil {
			t.Fatal(err)
		}
		es := w.entries(holdfast.Local)
		e := es[len(es)-1]
		if e.ContainsPII == nil || *e.ContainsPII != found || (len(e.Applied) > 0) != found {
			t.Fatalf("%s: %v %v", body, e.ContainsPII, e.Applied)
		}
	}
}
