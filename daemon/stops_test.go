package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
)

// TestStatusNamesStops: a stop that the store has is active after a restart, and its refusal
// points to the status, which has the reason.
func TestStatusNamesStops(t *testing.T) {
	state := filepath.Join(t.TempDir(), "s")
	d, err := Open(t.Context(), Options{State: state})
	if err != nil {
		t.Fatal(err)
	}
	db := d.Paths.DB
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: db, Tables: feature.Tables()})
	if err != nil {
		t.Fatal(err)
	}
	all := kernel.Tables()
	of := all[slices.IndexFunc(all, func(d *table.Def) bool { return d.Name == "stop" })]
	err = s.Update(t.Context(), func(tx kernel.Tx) error {
		return tx.InsertRow(of, table.Row{Key: []any{holdfast.Local, "s1"},
			Doc: []byte(`{"agent":"ada","cause":"handler_failed",` +
				`"why":"the feature spend failed at entry","since":"2026-01-01T00:00:00Z"}`)})
	})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(t.Context(), Options{State: state}); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	st, err := d.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "the agent ada is stopped since 2026-01-01T00:00:00Z: the feature spend failed at entry"
	if !slices.Contains(st.Problems, want) {
		t.Errorf("%q", st.Problems)
	}
	tok, err := d.Mint(holdfast.Identity{Agent: "ada", Session: "ada-s"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Kernel.Cross(context.Background(), holdfast.Request{Boundary: "agent/step", Payload: []byte(`{}`),
		Token: tok}, paidFor)
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Kind != holdfast.KindPaused || !strings.Contains(e.Hint, "holdfast status") {
		t.Errorf("%+v", err)
	}
}
