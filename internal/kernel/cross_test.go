package kernel_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

func TestCrossOnce(t *testing.T) {
	w := newWorld(t, "")
	out, err := w.cross(w.req("test/low", `{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if out.Verdict != holdfast.Allow || out.Output == nil || out.State != holdfast.Idle {
		t.Fatalf("%+v", out)
	}
	es := w.entries(holdfast.Local)
	if len(es) != 1 || es[0].ID != out.Crossing || es[0].Outcome != ledger.Done || es[0].State != holdfast.Idle {
		t.Fatalf("%+v", es)
	}
}
