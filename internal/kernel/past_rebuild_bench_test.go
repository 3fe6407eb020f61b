package kernel_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/ledger"
)

// rebuildLeaves is how many leaves the ledger has that is read: half of them
// begins, half their entries.
const rebuildLeaves = 1_000_000

// BenchmarkPastRebuild loads a rule that asks 24 hours over a ledger of a million
// leaves, and prints how long it is until the rule is ready, what one crossing
// takes of memory, that what the rule is asked meanwhile is refused by its
// on_error, and what other crossings take meanwhile beside what they take before.
// The ledger is made of one true crossing, whose id and time are changed, through
// the store as the kernel uses it. Run it with -benchtime 1x.
func BenchmarkPastRebuild(b *testing.B) {
	w := newWorld(b, "", unlimited, markedWith("k"))
	w.fillLedger(rebuildLeaves)
	for n := 0; b.Loop(); n++ {
		before := w.crossFor(w.t.Context(), 2*time.Second)
		runtime.GC()
		heap := heapInUse()
		// Another window is another function, which is read anew.
		rule := fmt.Sprintf(`
rules:
  - {id: payments, on: request, boundary: test/low, when: "args.amount > 100 && past('test/low', '%dm').where(args.amount > 100).count() > 2000000", message: too many}
`, 24*60-n)
		w.reload(string("23456789abcdef"[n%14]), rule)
		ctx, cancel := context.WithCancel(w.t.Context())
		var while []time.Duration
		var refused int
		var sides sync.WaitGroup
		sides.Go(func() { while = w.crossFor(ctx, time.Hour) })
		sides.Go(func() {
			for ctx.Err() == nil {
				req := w.req("test/low", `{"amount":150}`)
				req.Token = w.who("eve")
				_, err := w.cross(req)
				if k := holdfast.KindOf(err); k == holdfast.KindEval {
					refused++
				} else if !w.k.Past().Status().Ready {
					b.Errorf("before it was ready it was answered %v", err)
				}
				time.Sleep(200 * time.Millisecond) // no flood of refusals, which is refused otherwise
			}
		})
		start := time.Now()
		if err := w.k.Past().Read(w.t.Context()); err != nil {
			b.Fatal(err)
		}
		took := time.Since(start)
		cancel()
		sides.Wait()
		runtime.GC()
		entries := w.k.Past().Status().Past[0].Entries
		if entries < rebuildLeaves/2 || refused == 0 {
			b.Fatalf("%d are known, %d were refused before that", entries, refused)
		}
		if _, err := w.cross(w.req("test/low", `{"amount":150}`)); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(took.Seconds(), "s-until-ready")
		b.ReportMetric(rebuildLeaves/took.Seconds(), "leaves/s")
		b.ReportMetric(float64(heapInUse()-min(heap, heapInUse()))/float64(entries), "B/crossing")
		b.ReportMetric(float64(refused), "refused-meanwhile")
		b.ReportMetric(float64(middle(before))/1e6, "ms-p50-before")
		b.ReportMetric(float64(middle(while))/1e6, "ms-p50-meanwhile")
		b.ReportMetric(float64(middle(while))/float64(middle(before)), "meanwhile/before")
	}
}

func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// crossFor crosses a boundary that no rule is about, one after another, and says
// how long each took.
func (w *world) crossFor(ctx context.Context, d time.Duration) (took []time.Duration) {
	for from := time.Now(); time.Since(from) < d && ctx.Err() == nil; {
		req := w.req("test/medium", `{"n":1}`)
		start := time.Now()
		if _, err := w.cross(req); err != nil {
			w.t.Error(err)
			return took
		}
		took = append(took, time.Since(start))
	}
	return took
}

// fillLedger writes so many leaves, the crossings of them evenly over the last 23
// hours, many in one update.
func (w *world) fillLedger(leaves int) {
	w.t.Helper()
	w.passes(w.req("test/low", `{"amount":150}`))
	var like []ledger.Stored
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		if s.Kind != ledger.KindEvent {
			like = append(like, s)
		}
	})
	if len(like) != 2 {
		w.t.Fatalf("%d leaves of one crossing", len(like))
	}
	engine, err := redact.New(redact.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	const each = 1000
	n, step := leaves/2, 23*time.Hour/time.Duration(leaves/2)
	from := w.now().Add(-23 * time.Hour).UTC().Truncate(time.Microsecond)
	for done := 0; done < n; done += each {
		batch := make([]ledger.Leaf, 0, 2*each)
		for i := range min(each, n-done) {
			pair, err := likeness(engine, like, from.Add(time.Duration(done+i)*step))
			if err != nil {
				w.t.Fatal(err)
			}
			batch = append(batch, pair...)
		}
		if err := w.store.Update(w.t.Context(), func(tx kernel.Tx) error {
			for _, l := range batch {
				if _, err := tx.Append(l); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// likeness is a crossing like another, at another time.
func likeness(engine *redact.Engine, like []ledger.Stored, at time.Time) ([]ledger.Leaf, error) {
	begin, err := ledger.ParseBegin(like[0].Record)
	if err != nil {
		return nil, err
	}
	entry, err := ledger.ParseEntry(like[1].Record)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	begin.ID, entry.ID = id.String(), id.String()
	begin.Timestamp, entry.Timestamp, entry.CreatedAt = at, at, at.Add(time.Millisecond)
	out := []ledger.Leaf{{Kind: ledger.KindBegin, At: at, Part: like[0].Part}, {Kind: ledger.KindEntry, At: entry.CreatedAt, Part: like[1].Part}}
	for i, r := range []interface {
		AppendJSON([]byte) ([]byte, error)
	}{begin, entry} {
		text, err := r.AppendJSON(nil)
		if err != nil {
			return nil, err
		}
		l := &out[i]
		l.Tenant, l.Crossing = holdfast.Local, id.String()
		if l.Record, err = engine.Seal(text, ledger.Exempt()...); err != nil {
			return nil, err
		}
	}
	return out, nil
}
