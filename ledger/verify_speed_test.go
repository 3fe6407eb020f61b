package ledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// endless gives a large export without ever holding it.
func endless(t testing.TB, s *Signer, crossings int) io.Reader {
	r, w := io.Pipe()
	var tree Tree
	leaf := func(n int, fn func(Stored) error) error {
		b := &Begin{ID: crossingID(n), TenantID: "acme", Correlation: "c", Timestamp: testTime, Boundary: "b", Caller: "alice"}
		rec := mustJSON(t, b)
		begun := tree.Size()
		if fn != nil {
			if err := fn(Stored{Place: Place{"acme", begun, LeafHash(rec)}, Kind: KindBegin, Record: rec}); err != nil {
				return err
			}
		}
		tree.append(LeafHash(rec))
		e := &Entry{ID: b.ID, TenantID: "acme", BeginSeq: &begun, Correlation: "c", Timestamp: testTime, CreatedAt: testTime, Boundary: "b", Outcome: Done}
		rec = mustJSON(t, e)
		if fn != nil {
			if err := fn(Stored{Place: Place{"acme", tree.Size(), LeafHash(rec)}, Kind: KindEntry, Record: rec}); err != nil {
				return err
			}
		}
		tree.append(LeafHash(rec))
		return nil
	}
	for n := range crossings {
		if err := leaf(n, nil); err != nil {
			t.Fatal(err)
		}
	}
	head := tree.Head("acme")
	tree = Tree{}
	go func() {
		x := NewExporter(w, s.Verifier())
		err := x.Tenant(head, nil, func(fn func(Stored) error) error {
			for n := range crossings {
				if err := leaf(n, fn); err != nil {
					return err
				}
			}
			return nil
		})
		w.CloseWithError(cmp.Or(err, x.Close()))
	}()
	return r
}

func TestVerifyNeedsConstantMemory(t *testing.T) {
	s := testSigner(t, 1)
	live := func(crossings int) int64 {
		r := endless(t, s, crossings)
		peak := int64(0)
		v := ExportVerifier{Key: s.Verifier()}
		n := 0
		if _, err := v.Verify(readFunc(func(b []byte) (int, error) {
			if n++; n%1000 == 0 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				peak = max(peak, int64(m.HeapAlloc))
			}
			return r.Read(b)
		})); err != nil {
			t.Fatal(err)
		}
		return peak
	}
	small, large := live(17_000), live(50_000)
	if large > small+2<<20 {
		t.Errorf("%d bytes for 34 000 leaves, %d for 100 000", small, large)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// bench is an export of begins and entries of about 600 bytes each.
func benchWorld(b *testing.B, parts bool) *world {
	w := newWorld(b)
	pad := strings.Repeat("x", 40)
	for n := range 20_000 {
		beg := &Begin{ID: crossingID(n), TenantID: "acme", Correlation: crossingID(n), Timestamp: testTime, Boundary: "mcp/x/y",
			Caller: "alice", ExactHash: testHash, Key: testHash, Policy: testHash, Agent: "bob", Session: pad, Intent: pad}
		w.add(b, "acme", KindBegin, beg.ID, beg, nil)
		seq := int64(2 * n)
		e := &Entry{ID: crossingID(n), TenantID: "acme", BeginSeq: &seq, Correlation: crossingID(n), Timestamp: testTime,
			CreatedAt: testTime, Boundary: "b", Caller: "alice", Outcome: Done}
		var part []byte
		if parts {
			part = NewPart([SaltSize]byte{byte(n)}, []byte(pad))
			e.ResultHash = ptr(PartHash(part))
		}
		w.add(b, "acme", KindEntry, e.ID, e, part)
	}
	w.sign(b, "acme")
	return w
}

// BenchmarkVerify prints leaves per second of both kinds of verification, and
// their time over that of bare SHA-256 of the same records, taken in the same
// run.
func BenchmarkVerify(b *testing.B) {
	for _, parts := range []bool{false, true} {
		w := benchWorld(b, parts)
		h := w.tenants["acme"]
		out := w.export(b)
		bytesOf := 0
		for _, s := range h.leaves {
			bytesOf += len(s.Record)
		}
		run := func(name string, f func() error) {
			b.Run(fmt.Sprintf("%s/parts=%v", name, parts), func(b *testing.B) {
				var bare, ours time.Duration
				b.ReportAllocs()
				for b.Loop() {
					t0 := time.Now()
					for _, s := range h.leaves {
						sink = sha256.Sum256(s.Record)
					}
					t1 := time.Now()
					if err := f(); err != nil {
						b.Fatal(err)
					}
					bare, ours = bare+t1.Sub(t0), ours+time.Since(t1)
				}
				b.ReportMetric(float64(b.N*len(h.leaves))/ours.Seconds(), "leaves/s")
				b.ReportMetric(float64(ours)/float64(bare), "x-bare-sha256")
				b.ReportMetric(float64(bytesOf/len(h.leaves)), "B/record")
			})
		}
		run("export", func() error {
			_, err := (&ExportVerifier{Key: w.signer.Verifier()}).Verify(bytes.NewReader(out))
			return err
		})
		run("store", func() error {
			_, err := VerifyStore(w.head("acme"), h.cps, h.each)
			return err
		})
		run("deep", func() error {
			_, err := (&ExportVerifier{Key: w.signer.Verifier(), Deep: true}).Verify(bytes.NewReader(out))
			return err
		})
	}
}

var sink [32]byte
