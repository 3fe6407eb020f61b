package modelvalue

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
)

// testHost is a kernel.Host on a real store. The clock is the test's.
type testHost struct {
	kernel.Host
	t     *testing.T
	file  string
	store *sqlite.Store
	clock time.Time
}

type testTx struct {
	kernel.FeatureTx
	tx    kernel.Tx
	after *[]func()
}

func (h *testHost) Now() time.Time    { return h.clock }
func (h *testHost) Log() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
func (h *testHost) View(ctx context.Context, fn func(kernel.Reader) error) error {
	return h.store.View(ctx, func(tx kernel.Tx) error { return fn(tx) })
}

func (h *testHost) Commit(ctx context.Context, fn func(kernel.FeatureTx) error) error {
	var after []func()
	err := h.store.Update(ctx, func(tx kernel.Tx) error { return fn(&testTx{tx: tx, after: &after}) })
	if err == nil {
		for _, f := range after {
			f()
		}
	}
	return err
}

func (x *testTx) Row(d *table.Def, key []any) (table.Row, error) { return x.tx.Row(d, key) }
func (x *testTx) Scan(d *table.Def, r table.Range, fn func(table.Row) error) error {
	return x.tx.Scan(d, r, fn)
}
func (x *testTx) InsertRow(d *table.Def, r table.Row) error { return x.tx.InsertRow(d, r) }
func (x *testTx) DeleteRow(d *table.Def, key []any) error   { return x.tx.DeleteRow(d, key) }
func (x *testTx) After(fn func())                           { *x.after = append(*x.after, fn) }

type testSealer struct{ cipher.AEAD }

func (s testSealer) Seal(plain, with []byte) ([]byte, error) {
	return s.AEAD.Seal(nil, nil, plain, with), nil
}
func (s testSealer) Open(sealed, with []byte) ([]byte, error) {
	return s.AEAD.Open(nil, nil, sealed, with)
}

// openValues returns the values of a daemon that begins with the host's file.
func (h *testHost) openValues() *Values {
	h.t.Helper()
	if h.store != nil {
		if err := h.store.Close(); err != nil {
			h.t.Fatal(err)
		}
	}
	var err error
	h.store, err = sqlite.Open(h.t.Context(), sqlite.Options{Path: h.file, Now: h.Now, Tables: Tables()})
	if err != nil {
		h.t.Fatal(err)
	}
	block, err := aes.NewCipher([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		h.t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		h.t.Fatal(err)
	}
	v := New(testSealer{aead}, func(string, string, string) {})
	v.Feature(h)
	return v
}

func newTestHost(t *testing.T) *testHost {
	h := &testHost{t: t, file: filepath.Join(t.TempDir(), "state.db"), clock: time.Unix(1_700_000_000, 0)}
	t.Cleanup(func() { _ = h.store.Close() })
	return h
}

func testOwner(change func(*mapping.Owner)) mapping.Owner {
	o := mapping.Owner{Tenant: "red", Agent: "alice", Session: "s1", Row: "api.example.com"}
	if change != nil {
		change(&o)
	}
	return o
}

func batchOf(values ...string) (b mapping.Batch) {
	for i, v := range values {
		b.Values = append(b.Values, mapping.Value{Rule: "email", Value: []byte(v), Placeholder: fmt.Sprint("p", i)})
	}
	return b
}

func mustSave(t *testing.T, v *Values, o mapping.Owner, b mapping.Batch, drop ...string) []string {
	t.Helper()
	ids, err := v.SaveBatch(t.Context(), o, b, drop)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// loadValues returns the values of one session, as "row: value".
func loadValues(t *testing.T, v *Values, o mapping.Owner) (list []string) {
	t.Helper()
	batches, err := v.LoadBatches(t.Context(), o.Tenant, o.Agent, o.Session)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		for _, value := range b.Values {
			list = append(list, b.Row+": "+string(value.Value))
		}
	}
	return list
}

const secret = "alice.sealed@corp-example.com"

// TestValuesAreSealed: no file of the state has a value, in any encoding.
func TestValuesAreSealed(t *testing.T) {
	h := newTestHost(t)
	v := h.openValues()
	mustSave(t, v, testOwner(nil), batchOf(secret))
	check := func() {
		t.Helper()
		files, err := filepath.Glob(h.file + "*")
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				in64 := base64.RawStdEncoding.EncodeToString([]byte(secret[i:]))
				for _, form := range []string{secret, in64[:len(in64)-2], hex.EncodeToString([]byte(secret)),
					strings.ToUpper(hex.EncodeToString([]byte(secret))), "alice" + "\x00" + "s1"} {
					if bytes.Contains(b, []byte(form)) {
						t.Errorf("%s has %q", filepath.Base(file), form)
					}
				}
			}
		}
	}
	check()
	v = h.openValues()
	check()
	if got := loadValues(t, v, testOwner(nil)); len(got) != 1 || got[0] != "api.example.com: "+secret {
		t.Errorf("after a restart: %q", got)
	}
}

// TestValuesBelongToOneOwner: another tenant, agent or session gets nothing, and a row its own alone.
func TestValuesBelongToOneOwner(t *testing.T) {
	h := newTestHost(t)
	v := h.openValues()
	mustSave(t, v, testOwner(nil), batchOf(secret))
	mustSave(t, v, testOwner(func(o *mapping.Owner) { o.Row = "other.example.com" }), batchOf("other"))
	for name, change := range map[string]func(*mapping.Owner){
		"tenant":  func(o *mapping.Owner) { o.Tenant = "blue" },
		"agent":   func(o *mapping.Owner) { o.Agent = "bob" },
		"session": func(o *mapping.Owner) { o.Session = "s2" },
		"joined":  func(o *mapping.Owner) { o.Agent, o.Session = "alice\x00s1", "" },
	} {
		if got := loadValues(t, v, testOwner(change)); len(got) != 0 {
			t.Errorf("another %s got %q", name, got)
		}
	}
	if got := strings.Join(loadValues(t, v, testOwner(nil)), " "); got != "api.example.com: "+secret+
		" other.example.com: other" {
		t.Errorf("%q", got)
	}
	// A row that was moved to another owner in the file cannot be opened there.
	var k batchKey
	var row batchRow
	err := h.View(t.Context(), func(r kernel.Reader) error {
		return batchRows.Scan(r, table.Range{Limit: 1}, func(at batchKey, b batchRow, _ int64) error {
			k, row = at, b
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	k.Who = hashOwner("mallory", "s1")
	insert := func(tx kernel.FeatureTx) error { return batchRows.Insert(tx, k, row) }
	if err := h.Commit(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	if got := loadValues(t, v, testOwner(func(o *mapping.Owner) { o.Agent = "mallory" })); len(got) != 0 {
		t.Errorf("a moved row gave %q", got)
	}
}

func countRows(t *testing.T, h *testHost) (batches, ends int) {
	t.Helper()
	if err := h.View(t.Context(), func(r kernel.Reader) error {
		in := table.Range{Limit: 10 * maxRows}
		return errors.Join(
			batchRows.Scan(r, in, func(batchKey, batchRow, int64) error { batches++; return nil }),
			endRows.Scan(r, in, func(endKey, struct{}, int64) error { ends++; return nil }))
	}); err != nil {
		t.Fatal(err)
	}
	return batches, ends
}

// TestValuesEndWithinADay: they are not loaded after their time, and a sweep erases them; also those of a merged
// batch, which keeps the time of its oldest value.
func TestValuesEndWithinADay(t *testing.T) {
	h := newTestHost(t)
	v := h.openValues()
	ids := mustSave(t, v, testOwner(nil), batchOf(secret))
	begun := h.clock
	h.clock = begun.Add(12 * time.Hour)
	merged := batchOf(secret, "later")
	merged.Saved = begun
	mustSave(t, v, testOwner(nil), merged, ids...)
	h.clock = begun.Add(24*time.Hour - time.Second)
	if got := loadValues(t, v, testOwner(nil)); len(got) != 0 {
		t.Errorf("after a day: %q", got)
	}
	if err := v.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if batches, ends := countRows(t, h); batches != 0 || ends != 0 {
		t.Errorf("%d batches and %d ends are left", batches, ends)
	}
}

// TestValuesAreErasedWithTheirSession: an erasure leaves nothing of it, and what others have.
func TestValuesAreErasedWithTheirSession(t *testing.T) {
	h := newTestHost(t)
	v := h.openValues()
	other := testOwner(func(o *mapping.Owner) { o.Session = "s2" })
	for range 3 {
		mustSave(t, v, testOwner(nil), batchOf(secret))
	}
	mustSave(t, v, other, batchOf("other"))
	if err := h.Commit(t.Context(), func(tx kernel.FeatureTx) error {
		return v.eraseOwner(tx, "red", owner{"alice", "s1"})
	}); err != nil {
		t.Fatal(err)
	}
	if batches, ends := countRows(t, h); batches != 1 || ends != 1 || len(loadValues(t, v, testOwner(nil))) != 0 {
		t.Errorf("%d batches and %d ends are left", batches, ends)
	}
	if _, err := v.OnSignal(nil, signal.Stopped{}); err != nil {
		t.Error(err)
	}
}

// TestRowsOfASessionAreBounded: a session that has too many rows keeps no further ones, also after a restart. Other
// sessions and the rows that it has are not affected, and rows that end make place for others.
func TestRowsOfASessionAreBounded(t *testing.T) {
	h := newTestHost(t)
	v := h.openValues()
	o, other := testOwner(nil), testOwner(func(o *mapping.Owner) { o.Session = "s2" })
	fill := func(from, to int) {
		t.Helper()
		if err := h.Commit(t.Context(), func(tx kernel.FeatureTx) error {
			for i := from; i < to; i++ {
				k := batchKey{o.Tenant, hashOwner(o.Agent, o.Session), o.Row, fmt.Sprintf("%016x", i)}
				end := h.clock.Add(keptFor).Unix()
				if err := errors.Join(batchRows.Insert(tx, k, batchRow{Sealed: []byte("x"), End: end}),
					endRows.Insert(tx, endKey{end, k.Tenant, k.Who, k.Place, k.ID}, struct{}{})); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	fill(0, maxRows-1)
	ids := mustSave(t, v, o, batchOf(secret))
	for _, when := range []string{"full", "full after a restart"} {
		_, err := v.SaveBatch(t.Context(), o, batchOf("too many"), nil)
		var known *holdfast.Error
		if !errors.As(err, &known) || known.Hint == "" {
			t.Errorf("%s: %v", when, err)
		}
		mustSave(t, v, other, batchOf("other"))
		v = h.openValues()
	}
	if got := loadValues(t, v, o); len(got) != 1 || !strings.HasSuffix(got[0], secret) {
		t.Errorf("kept %q", got)
	}
	mustSave(t, v, o, batchOf("in its place"), ids...)
	h.clock = h.clock.Add(24 * time.Hour)
	if err := v.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSave(t, v, o, batchOf("another day"))
}

// TestLargeBatchesAreSplit: a batch of any size is kept, each row within its bound.
func TestLargeBatchesAreSplit(t *testing.T) {
	h := newTestHost(t)
	v := h.openValues()
	var b mapping.Batch
	for i := range 40 {
		value := bytes.Repeat([]byte{byte(i)}, 64<<10)
		b.Values = append(b.Values, mapping.Value{Value: value, Placeholder: fmt.Sprint(i)})
	}
	for i := range 20_000 {
		b.Signed = append(b.Signed, fmt.Appendf(nil, "%032d", i))
	}
	ids := mustSave(t, v, testOwner(nil), b)
	list, err := h.openValues().LoadBatches(t.Context(), "red", "alice", "s1")
	values, signed := 0, 0
	for _, have := range list {
		values, signed = values+len(have.Values), signed+len(have.Signed)
	}
	if err != nil || len(ids) < 3 || len(list) != len(ids) || values != 40 || signed != 20_000 {
		t.Errorf("%d rows of %d, %d values, %d signed, %v", len(list), len(ids), values, signed, err)
	}
}
