package kernel_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/ledger"
)

// What acted is kept as it was asked, canonical and redacted, beside its begin;
// what is too long or noted by its door is not, nor is anything where the policy
// says so; and it can be erased.
func TestRequestsAreKept(t *testing.T) {
	w := newWorld(t, "")
	asked := func(crossing string) (text string) {
		t.Helper()
		w.leaves(holdfast.Local, func(s ledger.Stored) {
			if s.Kind == ledger.KindBegin && s.Crossing == crossing && s.Part != nil {
				b, err := ledger.PartContent(s.Part)
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}
		})
		return text
	}
	out, err := w.cross(w.req("test/low", `{ "to" : "ann@example.com", "n": 1.50 }`))
	if err != nil {
		t.Fatal(err)
	}
	if got := asked(out.Crossing); !strings.Contains(got, `"n":1.5`) || strings.Contains(got, "ann@") || !strings.HasPrefix(got, "{\"n\"") {
		t.Errorf("kept %q", got)
	}
	if got, err := w.erase(out.Crossing, erasure.Request); err != nil || got.Parts != 1 {
		t.Errorf("%+v %v", got, err)
	}
	if got := asked(out.Crossing); got != "" {
		t.Errorf("erased, and there is %q", got)
	}
	long, _ := w.cross(w.req("test/low", `{"s":"`+strings.Repeat("abc ", 4<<10)+`"}`))
	noted := w.req("test/low", `{"a":1}`)
	noted.Noted = []byte(`{"host":"example.com"}`)
	told, _ := w.cross(noted)
	own := *w.policy
	own.Version, own.ForgetRequests = strings.Repeat("2", 64), true
	if err := w.k.SetPolicy(&own, "test"); err != nil {
		t.Fatal(err)
	}
	none, _ := w.cross(w.req("test/low", `{"b":1}`))
	for name, o := range map[string]*holdfast.Outcome{"long": long, "noted": told, "by policy": none} {
		if got := asked(o.Crossing); o.Verdict != holdfast.Allow || got != "" {
			t.Errorf("%s: %v, kept %q", name, o.Verdict, got)
		}
	}
	verifyStore(t, w)
	nothingWrong(t, w)
}
