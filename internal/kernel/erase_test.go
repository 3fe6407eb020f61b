package kernel_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

func (w *world) erase(subject, part string) (erasure.Erased, error) {
	w.t.Helper()
	return w.erasure.Erase(holdfast.Local, w.sign(operator.Statement{Act: operator.Erase, Subject: subject, Value: part}))
}

// parts are the texts that stand beside the records of a tenant.
func (w *world) parts() (out []string) {
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		if s.Part != nil {
			text, err := ledger.PartContent(s.Part)
			if err != nil {
				w.t.Fatal(err)
			}
			out = append(out, string(text))
		}
	})
	return out
}

// D14: one part goes, with who and what recorded; its record, the tree and
// what is judged again from it stay right; a second time says that it is gone.
func TestD14_erase_one_part(t *testing.T) {
	w := newWorld(t, "")
	out, err := w.k.Cross(t.Context(), w.req("test/low", `{"a":1}`), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{"of":"bob, and to go"}`)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.cross(w.req("test/low", `{"a":2}`))
	_, err = w.erase(out.Crossing, "payload")
	wants(t, err, holdfast.KindUsage)
	if !strings.Contains(err.Error(), `there is no part "payload"`) {
		t.Error(err)
	}
	_, err = w.erase(out.Crossing, erasure.Preview)
	wants(t, err, holdfast.KindConflict)
	if !strings.Contains(err.Error(), "no such part") {
		t.Error(err)
	}
	got, err := w.erase(out.Crossing, erasure.Output)
	if err != nil || got.Parts != 1 || len(got.Hashes) != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	if text := strings.Join(w.parts(), "\n"); strings.Contains(text, "to go") || !strings.Contains(text, "true") {
		t.Errorf("what is left: %s", text)
	}
	e := w.entries(holdfast.Local)[0]
	if e.ResultHash == nil || *e.ResultHash != got.Hashes[0] {
		t.Errorf("the record names %v, erased was %v", e.ResultHash, got.Hashes)
	}
	told := w.events(holdfast.Local, ledger.ErasedEvent)
	if len(told) != 1 || told[0].Who != "bob" || told[0].Crossing != out.Crossing || !bytes.Contains(told[0].Data, []byte(got.Hashes[0])) {
		t.Errorf("%+v", told)
	}
	if got, err = w.erase(out.Crossing, erasure.All); err != nil || got.Parts != 1 {
		t.Fatalf("what was asked: %+v %v", got, err)
	}
	_, err = w.erase(out.Crossing, erasure.All)
	wants(t, err, holdfast.KindConflict)
	if !strings.Contains(err.Error(), "gone") {
		t.Error(err)
	}
	verifyStore(t, w)
	nothingWrong(t, w)
}

func TestD14_erase_is_refused(t *testing.T) {
	w := newWorld(t, "")
	held, _ := w.cross(w.req("test/high", `{"shown":"to bob"}`))
	_, err := w.erase(held.Crossing, erasure.All)
	wants(t, err, holdfast.KindConflict)
	if !strings.Contains(err.Error(), "waits in review") {
		t.Error(err)
	}
	w.approve(held.Review)
	_, err = w.erase(held.Crossing, erasure.Preview)
	wants(t, err, holdfast.KindConflict)
	_, err = w.erase("01a1fcf0-0000-7000-8000-000000000000", erasure.All)
	wants(t, err, holdfast.KindNotFound)
	_, err = w.erase(held.Crossing, "everything")
	wants(t, err, holdfast.KindUsage)
	_, err = w.erase(erasure.Before+"yesterday", erasure.All)
	wants(t, err, holdfast.KindUsage)
	_, err = w.erase(erasure.Before+w.now().Add(time.Hour).UTC().Format(time.RFC3339), erasure.All)
	wants(t, err, holdfast.KindUsage)
	_, err = w.erasure.Erase("acme", w.sign(operator.Statement{Act: operator.Erase, Subject: held.Crossing, Value: erasure.All}))
	wants(t, err, holdfast.KindPermission)
	_, err = w.erasure.Erase(holdfast.Local, w.sign(operator.Statement{Act: operator.Resume}))
	wants(t, err, holdfast.KindUsage)
	said := w.sign(operator.Statement{Act: operator.Erase, Subject: held.Crossing, Value: erasure.All})
	said.Statement = bytes.Replace(said.Statement, []byte("all"), []byte("out"), 1)
	_, err = w.erasure.Erase(holdfast.Local, said)
	wants(t, err, holdfast.KindPermission)
	if n := len(w.events(holdfast.Local, ledger.ErasedEvent)); n != 0 {
		t.Errorf("%d erasures are recorded", n)
	}

	// Used, it may go: from the ledger and from the review.
	if _, err := w.cross(w.req("test/high", `{"shown":"to bob"}`)); err != nil {
		t.Fatal(err)
	}
	spent := w.sign(operator.Statement{Act: operator.Erase, Subject: held.Crossing, Value: erasure.Preview})
	if got, err := w.erasure.Erase(holdfast.Local, spent); err != nil || got.Parts != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	if r, err := w.k.Review(t.Context(), held.Review); err != nil || r.Preview != "" {
		t.Errorf("the review still shows %q (%v)", r.Preview, err)
	}
	_, err = w.erasure.Erase(holdfast.Local, spent)
	wants(t, err, holdfast.KindConflict)
	verifyStore(t, w)
}

// TestEraseStatementIsUsedOnce: what waited when a statement was carried out is not
// erased by the same statement later.
func TestEraseStatementIsUsedOnce(t *testing.T) {
	w := newWorld(t, "")
	w.cross(w.req("test/low", `{"old":1}`))
	held, _ := w.cross(w.req("test/high", `{"waits":1}`))
	w.advance(time.Minute)
	limit := w.now().UTC().Format(time.RFC3339)
	w.advance(time.Minute)
	said := w.sign(operator.Statement{Act: operator.Erase, Subject: erasure.Before + limit, Value: erasure.All})
	if got, err := w.erasure.Erase(holdfast.Local, said); err != nil || got.Kept != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	w.approve(held.Review)
	if _, err := w.cross(w.req("test/high", `{"waits":1}`)); err != nil {
		t.Fatal(err)
	}
	left := len(w.parts())
	_, err := w.erasure.Erase(holdfast.Local, said)
	wants(t, err, holdfast.KindConflict)
	if n := len(w.parts()); n != left {
		t.Errorf("%d parts are left of %d", n, left)
	}
}

// D14: what is old goes, in order, but for what waits; what is younger stays.
func TestD14_erase_before(t *testing.T) {
	w := newWorld(t, "")
	for i := range 20 {
		w.cross(w.req("test/low", fmt.Sprintf(`{"old":%d}`, i)))
		if i%4 == 0 {
			w.cross(w.req("test/perm", `{}`))
		}
	}
	waits, _ := w.cross(w.req("test/high", `{"waits":1}`))
	w.advance(time.Hour)
	limit := w.now()
	w.advance(time.Hour)
	for range 5 {
		w.cross(w.req("test/low", `{"young":1}`))
	}
	before := len(w.parts())
	got, err := w.erase(erasure.Before+limit.UTC().Format(time.RFC3339), erasure.All)
	if err != nil || got.Parts != 45 || got.Kept != 1 {
		t.Fatalf("of %d: %+v %v", before, got, err)
	}
	if left := w.parts(); len(left) != 11 {
		t.Errorf("left: %q", left)
	}
	if r, err := w.k.Review(t.Context(), waits.Review); err != nil || r.Preview == "" {
		t.Errorf("what waits cannot be seen any more: %v", err)
	}
	_, err = w.erase(erasure.Before+limit.UTC().Format(time.RFC3339), erasure.All)
	wants(t, err, holdfast.KindConflict)
	verifyStore(t, w)
	nothingWrong(t, w)
}
