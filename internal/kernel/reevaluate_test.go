package kernel_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

// swapping is a constitution that does something whenever a request is judged.
type swapping struct {
	*constitution.Set
	do func()
}

func (s swapping) Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding {
	out := s.Set.Judge(ctx, on, f)
	if on == constitution.OnRequest {
		s.do()
	}
	return out
}

// swap puts rules in force that do something whenever they judge.
func (w *world) swap(version, rules string, do func()) {
	w.t.Helper()
	own := *w.policy
	own.Version, own.Rules = strings.Repeat(version, 64), swapping{set(w.t, rules), do}
	if err := w.k.SetPolicy(&own, "test"); err != nil {
		w.t.Fatal(err)
	}
}

const (
	small   = "\n  - {id: small, on: request, boundary: test/low, when: 'args.amount > 10', message: above ten}"
	twoAnHr = "\nrules:\n  - {id: two, on: request, boundary: test/low, when: \"past('test/low', '1h').count() >= 2\", message: two are enough}"
)

// begins are the begins of a tenant, in order.
func (w *world) begins() (out []*ledger.Begin) {
	w.t.Helper()
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		if s.Kind == ledger.KindBegin {
			b, err := ledger.ParseBegin(s.Record)
			if err != nil {
				w.t.Fatal(err)
			}
			out = append(out, b)
		}
	})
	return out
}

// Rules that come while a request is judged, and before it began, judge it: it is
// answered by them, recorded as theirs, counted once, and dropped by nobody.
func TestReload_judged_anew(t *testing.T) {
	w := newPast(t, twoAnHr)
	newer := strings.Repeat("3", 64)
	once := func(rules string) func() {
		done := false
		return func() {
			if !done {
				done = true
				w.reload("3", rules)
			}
		}
	}
	w.swap("2", twoAnHr, once(twoAnHr+small))
	w.passes(w.req("test/low", `{"amount":1}`))
	if b, e := w.begins(), w.entries(holdfast.Local); len(b) != 1 || b[0].Policy != newer || len(e) != 1 || e[0].Policy != newer || e[0].ID != b[0].ID {
		t.Fatalf("%+v %+v", b, e)
	}
	if n := w.k.Past().Status().Past[0].Entries; n != 1 {
		t.Errorf("it is counted %d times", n)
	}

	w.swap("4", twoAnHr, once(twoAnHr+small))
	if e := w.refused(w.req("test/low", `{"amount":50}`), holdfast.K8, holdfast.KindRule); e.Why != "above ten" {
		t.Error(e)
	}
	if e := w.entries(holdfast.Local); len(w.begins()) != 1 || len(e) != 2 || e[1].Policy != newer || e[1].Outcome != ledger.Denied {
		t.Errorf("%d begins, %+v", len(w.begins()), e)
	}
	// What was judged in vain is counted by nobody.
	if n := w.passed(3, `{"amount":1}`); n != 1 {
		t.Errorf("%d passed after one", n)
	}
}

// Where policies come without end, as no person reloads, a request is refused in
// the end, by name, once in the ledger.
func TestReload_without_end(t *testing.T) {
	w := newPast(t, twoAnHr)
	judged := 0
	var again func()
	again = func() {
		judged++
		w.swap(string("23456789abcdef"[judged%14]), twoAnHr, again)
	}
	w.swap("2", twoAnHr, again)
	e := w.refused(w.req("test/low", `{"amount":1}`), holdfast.K6, holdfast.KindConflict)
	if !strings.Contains(e.Why, "the policy changed") || judged != 8 {
		t.Errorf("judged %d times: %v", judged, e)
	}
	if got := w.entries(holdfast.Local); len(got) != 1 || len(w.begins()) != 0 {
		t.Errorf("%d begins, %d entries", len(w.begins()), len(got))
	}
	w.reload("1", twoAnHr)
	if n := w.passed(3, `{}`); n != 2 {
		t.Errorf("%d of 2 passed", n)
	}
}

// Rules that come while a crossing acts do not judge it: it ends under those by
// which it began, with their output rules, and its record names them.
func TestReload_while_it_acts(t *testing.T) {
	w := newPast(t, "\nrules:\n  - {id: out, on: output, boundary: test/low, when: 'output.ok', message: not that}")
	older := w.policy.Version
	other := *w.policy
	other.Version, other.Rules = strings.Repeat("2", 64), set(t, "\nrules:"+small)
	_, err := w.k.Cross(t.Context(), w.req("test/low", `{"amount":1}`), func(ctx context.Context) (holdfast.Output, error) {
		if err := w.k.SetPolicy(&other, "test"); err != nil {
			t.Error(err)
		}
		return ok(ctx)
	})
	wants(t, err, holdfast.KindEvalFailure)
	e := w.entries(holdfast.Local)
	if b := w.begins(); len(b) != 1 || b[0].Policy != older || len(e) != 1 || e[0].Policy != older {
		t.Fatalf("%+v %+v", b, e)
	}
	// The next is judged by the new ones, and a lease ends by its own as well.
	x, _, err := w.k.Enter(t.Context(), w.req("test/low", `{"amount":1}`), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w.reload("3", "\nrules:\n  - {id: out, on: output, boundary: test/low, when: 'output.ok', message: not that}")
	if _, err := x.Exit(holdfast.Output{Body: []byte(`{"ok":true}`)}, nil); err != nil {
		t.Errorf("a lease that began under rules that allow what came out: %v", err)
	}
	if e = w.entries(holdfast.Local); len(e) != 2 || e[1].Policy != strings.Repeat("2", 64) {
		t.Errorf("%+v", e)
	}
}

var _ kernel.Rules = swapping{}
