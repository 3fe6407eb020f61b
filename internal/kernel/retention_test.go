package kernel_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

// What is bulky goes when its time is over; the record, its hash and every
// proof stay (D14).
func TestPartsAreErasedWhenTheirTimeIsOver(t *testing.T) {
	w := newWorld(t, "")
	w.keep = time.Hour
	if _, err := w.cross(w.req("test/low", `{"old":1}`)); err != nil {
		t.Fatal(err)
	}
	w.advance(2 * time.Hour)
	if _, err := w.cross(w.req("test/low", `{"new":1}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds nothing more to do
		if err := w.erasure.EraseOld(); err != nil {
			t.Fatal(err)
		}
	}
	var parts []bool
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		if s.Kind == ledger.KindEntry {
			parts = append(parts, s.Part != nil)
		}
	})
	if len(parts) != 2 || parts[0] || !parts[1] {
		t.Fatalf("parts of the two entries: %v, want the old one gone and the new one kept", parts)
	}
	if n := len(w.events(holdfast.Local, "parts_erased")); n != 1 {
		t.Fatalf("%d events", n)
	}
	verifyStore(t, w)
}
