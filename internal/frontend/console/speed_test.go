package console

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/ledger"
)

// work is what an answer took.
type work struct {
	pages int64  // of the store, that were looked at, in memory or not
	bytes uint64 // that were allocated, the test's own client's with them
}

// cost is the least work that the path took of several asks: what else the
// process does beside them only adds to it.
func (w *world) cost(b *browser, path string) (least work) {
	w.t.Helper()
	for i := range 7 {
		var was, is runtime.MemStats
		pages := w.pages.Load()
		runtime.ReadMemStats(&was)
		b.get(path)
		runtime.ReadMemStats(&is)
		b.wants(200)
		took := work{w.pages.Load() - pages, is.TotalAlloc - was.TotalAlloc}
		if i == 0 {
			least = took
		}
		least = work{min(least.pages, took.pages), min(least.bytes, took.bytes)}
	}
	return least
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

// The two lengths of the ledger, about.
var short, long = testrepeat.Times(1_000, 400), testrepeat.Times(20_000, 2_000)

// TestSpeed_PagesDoNotGrowWithTheLedger counts what each page takes with a small
// ledger and with one of ten or twenty times as many entries: the pages of the store
// that are looked at, of which a longer ledger has a level more to go down,
// and the bytes that are allocated. One leaf read by its place is the
// floor.
func TestSpeed_PagesDoNotGrowWithTheLedger(t *testing.T) {
	w := newWorld(t)
	w.fill(200)
	r := w.held(`{"to":"bob","amount":2000,"text":"` + fmt.Sprintf("%01000d", 7) + `"}`)
	for i := range 30 {
		w.held(fmt.Sprintf(`{"n":%d}`, i))
	}
	b := w.signedIn()
	paths := []string{"/review/" + r.ID, "/crossing/" + r.Crossing, "/", "/crossings"}
	w.fill(short - 200) // so that there are as many around each as its page shows
	before := map[string]work{}
	for _, p := range paths {
		before[p] = w.cost(b, p)
	}
	w.fill(long - short)
	leaf := w.leaf()
	t.Logf("floor: a leaf read by its place looks at %d pages", leaf)
	for _, p := range paths {
		was, is := before[p], w.cost(b, p)
		t.Logf("%-50s %d pages of the store, %d before; %d bytes, %d before", p, is.pages, was.pages, is.bytes, was.bytes)
		if was.pages < 0 || leaf <= 0 || is.bytes == 0 {
			t.Errorf("%s: nothing was counted", p)
		}
		if is.pages > was.pages+was.pages/4+leaf || is.bytes > was.bytes+was.bytes/4 {
			t.Errorf("%s looks at %d pages and takes %d bytes with %d entries, and %d pages and %d bytes with %d: it reads more of a longer ledger",
				p, is.pages, is.bytes, long, was.pages, was.bytes, short)
		}
	}
}

// leaf is how many pages of the store one leaf takes that is read by its place.
func (w *world) leaf() int64 {
	w.t.Helper()
	was := w.pages.Load()
	err := w.store.View(w.t.Context(), func(tx kernel.Tx) error {
		_, err := tx.Leaf(holdfast.Local, 7)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.pages.Load() - was
}
