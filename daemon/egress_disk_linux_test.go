package daemon

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testdisk"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestBad_Egress_aFullDisk: the disk under the ledger is really full. What could
// not be written down is refused by name and not sent, also when there is room
// again (D14), until a daemon has read the ledger anew; that one has each request
// that was sent, and counts those that were refused.
func TestBad_Egress_aFullDisk(t *testing.T) {
	if testdisk.RunOnSmallDisk(t, "64m") {
		return
	}
	w := newWorld(t, "'example.com:PORT': {HERE}")
	w.d.repeats()
	var mu sync.Mutex
	asked, sent := 0, map[string]bool{} // by path: the number of the request
	w.service.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		sent[r.URL.Path] = true
		mu.Unlock()
		_, _ = io.WriteString(rw, "answered")
	})
	c := w.agent()
	post := func() (int, string) {
		t.Helper()
		asked++
		resp, err := c.Post(fmt.Sprintf("https://example.com:%s/%d", w.port, asked), "text/plain", strings.NewReader(strings.Repeat("words ", 500)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for range 3 {
		if status, text := post(); status != 200 {
			t.Fatal(status, text)
		}
	}
	free := testdisk.Fill(t, w.dir)
	status, text := 200, ""
	for range 20_000 { // what the store had laid aside is used up first
		if status, text = post(); status != 200 {
			break
		}
	}
	first := asked // the first that was refused
	named := func(text string) bool {
		return strings.Contains(text, "kind: LoggingError") || strings.Contains(text, "kind: WALWriteError")
	}
	if status != http.StatusInternalServerError || !named(text) || !strings.Contains(text, "hint: ") {
		t.Fatalf("request %d: %d %s", first, status, text)
	}
	// Everything is halted for it a moment later (D41a).
	refused := func() bool {
		return status == http.StatusInternalServerError && named(text) || status == http.StatusServiceUnavailable && strings.Contains(text, "everything is halted")
	}
	for range 5 {
		if status, text = post(); !refused() {
			t.Errorf("on a full disk: %d %s", status, text)
		}
	}
	until(t, "the halt on a full disk", w.d.latch.Halted)
	free()
	for range 12 { // the note of how many is written now and then
		if status, text = post(); !refused() {
			t.Errorf("with room again, and the same ledger: %d %s", status, text)
		}
	}
	w.down()
	if err := w.d.latch.Clear(); err != nil {
		t.Fatal(err)
	}
	d, client, down := serve(t, w.d.opt)
	down = sync.OnceFunc(down)
	defer down()
	w.d, w.client = d, client
	c = w.agent()
	if status, text = post(); status != 200 {
		t.Errorf("another daemon, with room: %d %s", status, text)
	}
	down() // every entry is written by then
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: d.Paths.DB, ReadOnly: true, Tables: feature.Tables()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	done, counted := 0, ""
	err = s.View(t.Context(), func(tx kernel.Tx) error {
		return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
			switch l.Kind {
			case ledger.KindEntry:
				e, err := ledger.ParseEntry(l.Record)
				if err == nil && strings.HasPrefix(e.Boundary, "egress/") && (e.Outcome == ledger.Done || e.Outcome == ledger.Unknown) {
					done++
				}
				return err
			case ledger.KindEvent:
				if strings.Contains(string(l.Record), "refused_while_poisoned") {
					counted = string(l.Record)
				}
			}
			return nil
		})
	})
	// The disk was full before the first that was refused began, or after: then it was
	// perhaps sent.
	last := asked
	for n := 1; n <= last; n++ {
		if was := sent[fmt.Sprint("/", n)]; was != (n < first || n == last) && n != first {
			t.Errorf("request %d of %d, %d refused first: sent %t", n, last, first, was)
		}
	}
	if err != nil || done < len(sent) || done > first+1 {
		t.Errorf("%d crossings in the ledger, %d were sent: %v", done, len(sent), err)
	}
	if !strings.Contains(counted, `"count":`) {
		t.Errorf("what was refused is not counted: %q", counted)
	}
	t.Logf("%d passed before the disk was full", first-1)
}
