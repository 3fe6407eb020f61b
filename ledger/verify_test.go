package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

func TestExportVerifies(t *testing.T) {
	w := ordinary(t)
	a, b := w.tenants["acme"], w.tenants["b\"ünt"]
	rs, err := w.verify(w.export(t), append(slices.Clone(a.cps), b.cps...)...)
	if err != nil {
		t.Fatal(err)
	}
	want := []Report{
		{Head: w.head("acme"), Begins: 50, Entries: 51, Events: 50, Checkpoints: 3, Signed: 151},
		{Head: w.head("b\"ünt"), Begins: 74, Entries: 73, Events: 2, Open: 1, Checkpoints: 1, Signed: 146},
	}
	// The last of acme's checkpoints stands at the end: nothing is beyond.
	want[0].Checkpoints = int64(len(a.cps))
	if rs[0].Tenant != CheckpointsTenant || rs[0].Size != int64(len(a.cps)+len(b.cps)) || rs[0].Beyond() != 0 {
		t.Errorf("the log of checkpoints: %+v", rs[0])
	}
	if rs = rs[1:]; !slices.Equal(rs, want) {
		t.Errorf("got  %+v\nwant %+v", rs, want)
	}
	if rs[0].Beyond() != 0 || rs[1].Beyond() != 3 {
		t.Errorf("beyond %d and %d", rs[0].Beyond(), rs[1].Beyond())
	}
	for tenant, h := range w.tenants {
		r, err := VerifyStore(w.head(tenant), h.cps, h.each)
		if err != nil || !h.made && !slices.Contains(want, r) {
			t.Errorf("store of %q: %+v, %v", tenant, r, err)
		}
	}
	if rs, err := newWorld(t).verify(newWorld(t).export(t)); err != nil || len(rs) != 0 {
		t.Errorf("an empty export: %v, %v", rs, err)
	}
}

// An export is JSON line by line, and each record stands in it byte for byte.
func TestExportHoldsRecordsByteForByte(t *testing.T) {
	w := ordinary(t)
	out := string(w.export(t))
	for _, h := range w.tenants {
		for _, s := range h.leaves {
			if !strings.Contains(out, fmt.Sprintf(`"leaf":%s}`+"\n", s.Record)) {
				t.Fatalf("leaf %d is not there", s.Seq)
			}
		}
	}
}

func TestErasedPartsBreakNothing(t *testing.T) {
	w := ordinary(t)
	w.erase(t, "acme", 0, 60, 20)
	// A sweep that met no part records nothing.
	w.erase(t, "acme", 61, 151, 31)
	rs, err := w.verify(w.export(t))
	if err != nil || rs[1].Erased != 51 || rs[2].Erased != 0 {
		t.Errorf("%+v, %v", rs, err)
	}
}

// A part that is missing without an erasure on record is a fault (D14).
func TestErasureWithoutARecord(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*world, *history)
		seq   int64
	}{
		"all":                        {func(_ *world, h *history) { h.leaves[1].Part, h.leaves[4].Part = nil, nil }, 1},
		"one beside those on record": {func(w *world, h *history) { w.erase(t, "acme", 0, 60, 20); h.leaves[61].Part = nil }, 61},
		"one before":                 {func(w *world, h *history) { w.erase(t, "acme", 30, 60, 10); h.leaves[28].Part = nil }, 28},
		"one between two on record": {func(w *world, h *history) {
			w.erase(t, "acme", 0, 30, 10)
			w.erase(t, "acme", 33, 60, 9)
			h.leaves[31].Part = nil
		}, -1},
		"of another tenant": {func(w *world, h *history) { w.erase(t, "b\"ünt", 0, 60, 30); h.leaves[1].Part = nil }, 1},
		"before it was there": {func(w *world, h *history) {
			w.erase(t, "acme", 0, 60, 20)
			n := h.tree.Size()
			w.add(t, "acme", KindEvent, "", &Event{ID: "y", TenantID: "acme", Timestamp: testTime, Name: ErasedEvent, Data: fmt.Appendf(nil, `{"from":0,"parts":1,"to":%d}`, n+5)}, nil)
		}, 152},
	} {
		w := ordinary(t)
		h := w.tenants["acme"]
		c.spoil(w, h)
		_, err := w.verify(w.export(t))
		_, stored := VerifyStore(w.head("acme"), h.cps, h.each)
		for _, err := range []error{err, stored} {
			var f *Fault
			if !errors.As(err, &f) || f.Tenant != "acme" || f.Seq != c.seq || !strings.Contains(f.Why, "eras") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestErasuresAreBounded(t *testing.T) {
	var e erasures
	for n := range int64(maxRuns) {
		if err := e.miss(2 * n); err != nil {
			t.Fatal(err)
		}
		e.present()
	}
	if err := e.miss(2 * maxRuns); err == nil {
		t.Error("remembers without bound")
	}
}

// A tree that was cut back with its own checkpoints, or taken away whole, is
// found by the log of checkpoints; so is a log that was cut back or taken away.
func TestCutBackIsFoundByTheLog(t *testing.T) {
	for name, spoil := range cutBacks(t) {
		w := ordinary(t)
		w.log(t)
		w.tenants[CheckpointsTenant].made = false
		spoil(w)
		_, err := w.verify(w.export(t))
		_, stored := w.verifyStored()
		for _, err := range []error{err, stored} {
			var f *Fault
			if !errors.As(err, &f) || f.Tenant != "acme" && (f.Tenant != CheckpointsTenant || name != "no checkpoint" && name != "log cut back") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// K6_INV2, K6_AC2: not one bit of an export can change without being found. What is found
// names the tenant and the leaf, or the line.
func TestK6_INV2_every_flipped_bit_is_found(t *testing.T) {
	w := ordinary(t)
	good := w.export(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	known := append(slices.Clone(w.tenants["acme"].cps), w.tenants["b\"ünt"].cps...)
	stride := 1000
	if testrepeat.Enduring {
		stride = 400
	}
	for i := 0; i < len(good); i += 1 + rnd.IntN(stride) {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << rnd.IntN(8)
		v := ExportVerifier{Key: w.signer.Verifier(), Known: known, Deep: rnd.IntN(2) == 0}
		_, err := v.Verify(bytes.NewReader(bad))
		if err == nil {
			t.Fatalf("byte %d (%q) can be changed", i, good[max(0, i-20):min(len(good), i+20)])
		}
		if !strings.Contains(err.Error(), "tenant \"") && !strings.Contains(err.Error(), "line ") {
			t.Errorf("byte %d: no place in %v", i, err)
		}
	}
}

// A record that was changed, with every hash beside it made to fit, is named
// by the checkpoint that covers it.
func TestChangedLeafIsNamed(t *testing.T) {
	w := ordinary(t)
	good := w.export(t)
	lines := bytes.SplitAfter(good, []byte("\n"))
	for i, l := range lines {
		if !bytes.HasPrefix(l, []byte(exportSeq)) || !bytes.Contains(l, []byte(`"caller_user_id":"alice"`)) {
			continue
		}
		bad := slices.Clone(lines)
		bad[i] = bytes.Replace(l, []byte(`"alice"`), []byte(`"mallo"`), 1)
		_, err := w.verify(bytes.Join(bad, nil))
		var f *Fault
		if !errors.As(err, &f) || f.Tenant == "" || f.Seq < 0 {
			t.Fatalf("line %d: %v", i, err)
		}
	}
}

func TestK6_INV2_truncated_swapped_doubled_inserted(t *testing.T) {
	w := ordinary(t)
	good := w.export(t)
	lines := bytes.SplitAfter(good, []byte("\n"))
	lines = lines[:len(lines)-1]
	rnd := rand.New(rand.NewPCG(7, 8))
	try := func(name string, bad [][]byte) {
		t.Helper()
		if _, err := w.verify(bytes.Join(bad, nil)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	stride := 10
	if testrepeat.Enduring {
		stride = 4
	}
	for i := 0; i < len(lines); i += 1 + rnd.IntN(stride) {
		try(fmt.Sprintf("without line %d", i), slices.Delete(slices.Clone(lines), i, i+1))
		try(fmt.Sprintf("line %d twice", i), slices.Insert(slices.Clone(lines), i, lines[i]))
		try(fmt.Sprintf("cut at line %d", i), lines[:i])
		try(fmt.Sprintf("an empty line at %d", i), slices.Insert(slices.Clone(lines), i, []byte("\n")))
		if i > 0 {
			swapped := slices.Clone(lines)
			swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
			try(fmt.Sprintf("lines %d and %d swapped", i-1, i), swapped)
		}
	}
	for _, n := range []int{0, 1, len(good) / 3, len(good) - 1} {
		try(fmt.Sprintf("the first %d bytes", n), [][]byte{good[:n]})
	}
	try("a tail", [][]byte{good, []byte("x")})
	try("two exports", [][]byte{good, good})
	try("CRLF", [][]byte{bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n"))})
	try("an enormous line", [][]byte{lines[0], bytes.Repeat([]byte("x"), maxLine+10), []byte("\n")})
}

// The runtime's own key cannot rewrite history for who holds a checkpoint.
func TestForkIsFoundByAKnownCheckpoint(t *testing.T) {
	honest := ordinary(t)
	held := honest.tenants["acme"].cps[1]
	fork := newWorld(t)
	for n := range 50 {
		fork.cross(t, "acme", n+1)
		fork.event(t, "acme", n)
	}
	fork.sign(t, "acme")
	if _, err := fork.verify(fork.export(t)); err != nil {
		t.Fatalf("the fork itself is whole: %v", err)
	}
	_, err := fork.verify(fork.export(t), held)
	var f *Fault
	if !errors.As(err, &f) || f.Tenant != "acme" || f.Seq != held.Size-1 {
		t.Errorf("fork: %v", err)
	}
	short := newWorld(t)
	short.cross(t, "acme", 0)
	short.sign(t, "acme")
	if _, err := short.verify(short.export(t), held); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("cut off: %v", err)
	}
	gone := newWorld(t)
	if _, err := gone.verify(gone.export(t), held); err == nil {
		t.Error("a tenant that vanished is not missed")
	}
}

func TestExportOfAnotherKeyIsRefused(t *testing.T) {
	w := ordinary(t)
	b := w.export(t)
	w.signer = testSigner(t, 2)
	if _, err := w.verify(b); err == nil || !strings.Contains(err.Error(), "another ledger key") {
		t.Errorf("%v", err)
	}
	if _, err := (&ExportVerifier{}).Verify(bytes.NewReader(b)); err == nil {
		t.Error("verified without a key")
	}
}

// Exactly one entry, at most one begin (K6_INV1, K6_AC1, D6): whatever breaks
// it is found although every hash and signature is right.
func TestK6_AC1_one_begin_one_entry(t *testing.T) {
	for name, spoil := range map[string]func(*world){
		"two entries": func(w *world) { w.enter(t, "acme", 49, w.tenants["acme"].leaves[147].Seq) },
		"two entries without a begin": func(w *world) {
			w.enter(t, "acme", 77, -1)
			w.enter(t, "acme", 77, -1)
		},
		"two begins": func(w *world) {
			w.begin(t, "acme", 77)
			w.begin(t, "acme", 77)
		},
		"begin after its entry":    func(w *world) { w.begin(t, "acme", 3) },
		"entry of no begin":        func(w *world) { w.enter(t, "acme", 77, 4) },
		"entry before its begin":   func(w *world) { w.enter(t, "acme", 77, w.tenants["acme"].tree.Size()+1) },
		"entry of another's begin": func(w *world) { w.begin(t, "acme", 77); w.enter(t, "acme", 78, w.tenants["acme"].tree.Size()-1) },
		"entry that hides a begin": func(w *world) { w.begin(t, "acme", 77); w.enter(t, "acme", 77, -1) },
	} {
		w := ordinary(t)
		spoil(w)
		w.sign(t, "acme")
		_, err := w.verify(w.export(t))
		var f *Fault
		if !errors.As(err, &f) || f.Tenant != "acme" || f.Seq < 0 {
			t.Errorf("%s: %v", name, err)
		}
		h := w.tenants["acme"]
		if _, err := VerifyStore(w.head("acme"), h.cps, h.each); err == nil {
			t.Errorf("%s: accepted in a store", name)
		}
	}
}

// K6_INV5, K6_AC4, K6_FP3: a record of one tenant has no place in another's
// tree.
func TestK6_FP3_tenant_mismatch(t *testing.T) {
	w := ordinary(t)
	h := w.tenants["acme"]
	other := w.tenants["b\"ünt"].leaves[0]
	other.Seq, other.Tenant = h.tree.Size(), "acme"
	h.tree.Append(other.Hash)
	h.leaves = append(h.leaves, other)
	_, err := w.verify(w.export(t))
	if err == nil || !strings.Contains(err.Error(), "another tenant") {
		t.Errorf("%v", err)
	}
	l := Leaf{Tenant: "acme", Kind: KindBegin, Crossing: crossingID(1)}
	if err := l.Check(); holdfast.KindOf(err) != holdfast.KindWALFormat {
		t.Errorf("an empty record: %v", err)
	}
}

func TestVerifyStoreFindsWhatStandsBesideTheRecord(t *testing.T) {
	for name, spoil := range map[string]func(*history){
		"hash": func(h *history) { h.leaves[5].Hash[0] ^= 1 },
		"record": func(h *history) {
			h.leaves[5].Record = bytes.Replace(h.leaves[5].Record, []byte("03:42"), []byte("03:43"), 1)
		},
		"kind":       func(h *history) { h.leaves[5].Kind = KindBegin },
		"time":       func(h *history) { h.leaves[4].At = h.leaves[4].At.Add(-time.Microsecond) },
		"event time": func(h *history) { h.leaves[5].At = h.leaves[5].At.Add(24 * time.Hour) },
		"crossing":   func(h *history) { h.leaves[4].Crossing = "x" },
		"tenant":     func(h *history) { h.leaves[5].Tenant = "x" },
		"seq":        func(h *history) { h.leaves[5].Seq = 6 },
		"part":       func(h *history) { h.leaves[4].Part[20] ^= 1 },
		"extra part": func(h *history) { h.leaves[3].Part = make([]byte, 20) },
		"missing":    func(h *history) { h.leaves = h.leaves[:len(h.leaves)-1] },
		"gap":        func(h *history) { h.leaves = slices.Delete(h.leaves, 7, 8) },
		"checkpoint": func(h *history) { h.cps[1].Root[0] ^= 1 },
		"beyond":     func(h *history) { h.cps[2].Size += 10 },
	} {
		w := ordinary(t)
		h := w.tenants["acme"]
		head := w.head("acme")
		h.cps = h.cps[:3]
		spoil(h)
		if _, err := VerifyStore(head, h.cps, h.each); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestExporterRefusesWhatWouldNotVerify(t *testing.T) {
	w := ordinary(t)
	h := w.tenants["acme"]
	head := w.head("acme")
	for name, f := range map[string]func(*Exporter) error{
		"fewer leaves": func(e *Exporter) error { return e.Tenant(Head{"acme", 1000, head.Root}, nil, h.each) },
		"more leaves":  func(e *Exporter) error { return e.Tenant(Head{"acme", 10, head.Root}, nil, h.each) },
		"a checkpoint beyond": func(e *Exporter) error {
			return e.Tenant(head, []SignedCheckpoint{{Head: Head{"acme", 9999, head.Root}}}, h.each)
		},
		"twice": func(e *Exporter) error {
			return cmp.Or(e.Tenant(head, nil, h.each), e.Tenant(head, nil, h.each))
		},
		"an error of the store": func(e *Exporter) error {
			return e.Tenant(head, nil, func(func(Stored) error) error { return io.ErrUnexpectedEOF })
		},
	} {
		e := NewExporter(io.Discard, w.signer.Verifier())
		if err := f(e); err == nil {
			t.Errorf("%s: written", name)
		}
		if err := e.Close(); err == nil {
			t.Errorf("%s: closed as if nothing had happened", name)
		}
	}
}

func TestCheckerBoundsWhatItRemembers(t *testing.T) {
	c := NewChecker("acme")
	var seq int64
	give := func(a appender) error {
		b := mustJSON(t, a)
		err := c.Leaf(seq, LeafHash(b), b, nil)
		seq++
		return err
	}
	for n := range closedWindow * 2 {
		e := &Entry{ID: crossingID(n), TenantID: "acme", Correlation: "c", Timestamp: testTime, CreatedAt: testTime, Boundary: "b", Outcome: Denied}
		if err := give(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.closed) != closedWindow || len(c.ring) != closedWindow {
		t.Errorf("remembers %d and %d", len(c.closed), len(c.ring))
	}
	first := seq
	for n := range maxOpen + 2 {
		b := &Begin{ID: fmt.Sprint("other-", n), TenantID: "acme", Correlation: "c", Timestamp: testTime, Boundary: "b"}
		if err := give(b); err != nil {
			t.Fatalf("%d open: %v", n, err)
		}
	}
	if len(c.open) != maxOpen || c.report.Unfollowed != 2 {
		t.Errorf("follows %d, and %d it does not", len(c.open), c.report.Unfollowed)
	}
	// Those that are followed are held to their begin still, and no more entries
	// are taken than there are begins.
	entry := func(n int, begun int64) error {
		return give(&Entry{ID: fmt.Sprint("other-", n), TenantID: "acme", BeginSeq: &begun, Correlation: "c", Timestamp: testTime, CreatedAt: testTime, Boundary: "b", Outcome: Done})
	}
	for n := maxOpen + 1; n > maxOpen-10; n-- {
		if err := entry(n, first+int64(n)); err != nil {
			t.Fatalf("the entry of crossing %d: %v", n, err)
		}
	}
	if r, err := c.Report(c.tree.Head("acme")); err != nil || r.Open != maxOpen-9 || r.Unfollowed != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []error{entry(maxOpen+2, first+maxOpen), entry(3, first+4)} {
		if bad == nil {
			t.Error("an entry without a begin, or with another's, is taken")
		}
		seq--
	}
}
