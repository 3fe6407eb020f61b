package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// firstByte is how long a page takes until its first byte arrives: the median
// of n asks on one connection, and the 99th in a hundred.
func (b *browser) firstByte(path string, n int) (p50, p99 time.Duration) {
	b.t.Helper()
	var took []time.Duration
	for range n {
		var first time.Time
		ctx := httptrace.WithClientTrace(b.t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { first = time.Now() }})
		r, err := http.NewRequestWithContext(ctx, "GET", b.base+path, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		start := time.Now()
		resp, err := b.hc.Do(r)
		if err != nil {
			b.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			b.t.Fatalf("%s: %s", path, resp.Status)
		}
		took = append(took, first.Sub(start))
	}
	slices.Sort(took)
	return took[n/2], took[n*99/100]
}

// fill writes n entries like that of a crossing which really acted, each under
// an id of its own.
func (w *world) fill(n int) {
	w.t.Helper()
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	o, err := w.cross("test/low", `{"i":1}`)
	must(err)
	var entry *ledger.Entry
	must(w.store.View(w.t.Context(), func(tx kernel.Tx) error {
		both, err := tx.Crossing(holdfast.Local, o.Crossing)
		if err == nil {
			entry, err = ledger.ParseEntry(both[len(both)-1].Record)
		}
		return err
	}))
	entry.BeginSeq, entry.ResultHash = nil, nil
	for done := 0; done < n; {
		must(w.store.Update(w.t.Context(), func(tx kernel.Tx) error {
			for end := min(n, done+1000); done < end; done++ {
				id, err := uuid.NewV7()
				if err != nil {
					return err
				}
				entry.ID, entry.CreatedAt = id.String(), w.now()
				b, err := entry.AppendJSON(nil)
				if err != nil {
					return err
				}
				record, err := w.mask.Seal(b)
				if err != nil {
					return err
				}
				if _, err := tx.Append(ledger.Leaf{Tenant: holdfast.Local, Kind: ledger.KindEntry, Crossing: entry.ID, At: entry.CreatedAt, Record: record}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// TestSpeed_PagesDoNotGrowWithTheLedger measures each page's first byte with a
// small ledger and with one of 100 000 entries, beside two floors of the same
// run: a file of the same server, and one row read from the store. The figures
// are printed; what fails is a page that takes longer because the ledger is
// longer.
func TestSpeed_PagesDoNotGrowWithTheLedger(t *testing.T) {
	if testing.Short() {
		t.Skip("100 000 entries: not in -short")
	}
	const asks = 200
	w := newWorld(t)
	w.fill(200)
	r := w.held(`{"to":"bob","amount":2000,"text":"` + fmt.Sprintf("%01000d", 7) + `"}`)
	for i := range 30 {
		w.held(fmt.Sprintf(`{"n":%d}`, i))
	}
	b := w.signedIn()
	paths := []string{"/review/" + r.ID, "/crossing/" + r.Crossing, "/", "/crossings"}
	before := map[string]time.Duration{}
	for _, p := range paths {
		b.firstByte(p, 20)
		before[p], _ = b.firstByte(p, asks)
	}
	start := time.Now()
	w.fill(entries)
	t.Logf("%d entries were written in %v", entries, time.Since(start).Round(time.Millisecond))
	file, _ := b.firstByte(w.site.assets.Icon, asks)
	t.Logf("floor: a file of the same server %v; one row of the store %v", file, w.row(asks))
	for _, p := range paths {
		p50, p99 := b.firstByte(p, asks)
		t.Logf("%-50s first byte p50 %v, p99 %v; %.1f of the file's; %v before", p, p50, p99, float64(p50)/float64(file), before[p])
		if p50 > 4*before[p]+2*time.Millisecond {
			t.Errorf("%s takes %v with %d entries and %v with 200: it reads more of a longer ledger", p, p50, entries, before[p])
		}
	}
}

// row is the median time of one leaf read by its place.
func (w *world) row(n int) time.Duration {
	w.t.Helper()
	var took []time.Duration
	for range n {
		start := time.Now()
		err := w.store.View(w.t.Context(), func(tx kernel.Tx) error {
			_, err := tx.Leaf(holdfast.Local, 7)
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[n/2]
}
