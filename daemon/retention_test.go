package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestStartErasesOldParts: also a process that ends soon erases the parts of records whose
// time is over.
func TestStartErasesOldParts(t *testing.T) {
	opt := Options{State: filepath.Join(t.TempDir(), "s"), Config: filepath.Join(t.TempDir(), "holdfast.yaml")}
	if err := os.WriteFile(opt.Config, []byte("version: 1\nledger: {retention: 1ms}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for start := range 2 {
		d, err := Open(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if start == 0 {
			tok, err := d.Mint(holdfast.Identity{Agent: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			req := holdfast.Request{Boundary: "agent/step", Payload: []byte(`{}`), Token: tok}
			if _, err := d.Kernel.Cross(t.Context(), req, paidFor); err != nil {
				t.Fatal(err)
			}
		}
		parts, events := 0, 0
		err = d.store.View(t.Context(), func(tx kernel.Tx) error {
			return tx.Leaves(holdfast.Local, 0, 1000, func(s ledger.Stored) error {
				if s.Part != nil {
					parts++
				}
				if e, err := ledger.ParseEvent(s.Record); err == nil && e.Name == "parts_erased" {
					events++
				}
				return nil
			})
		})
		if err != nil || (parts == 0) != (start == 1) || events != start {
			t.Errorf("start %d: %d parts, %d events, %v", start, parts, events, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
