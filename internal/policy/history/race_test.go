package history

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// TestRulesAreSwappedUnderLoad: functions come and go, and the ledger is read for
// them, while requests are judged; what stays in force loses no request, what is
// read anew counts each once, and nothing that nobody needs is held.
func TestRulesAreSwappedUnderLoad(t *testing.T) {
	stays, goes := past("stays", time.Hour), past("goes", time.Hour)
	h := used(1<<40, noon, stays, goes)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		begun []string // the ledger
	)
	const workers, each = 4, 400
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprint(w, "/", i)
				ticket := h.Add(noon, "t", id, []constitution.Sight{{Past: stays, Seen: seen("", id, 0)}, {Past: goes, Seen: seen("g", "", 1)}})
				if _, err := ticket.Ask(stays, "", noon); err != nil {
					t.Error(err)
				}
				if _, err := ticket.Ask(goes, "g", noon); err != nil && !errors.Is(err, ErrNotReady) && !errors.Is(err, ErrNotKept) {
					t.Error(err)
				}
				if i%4 == 0 {
					ticket.Drop()
					continue
				}
				mu.Lock()
				begun = append(begun, id)
				mu.Unlock()
				ticket.Confirm(noon)
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			h.Use(noon, []*constitution.Past{stays})
			_, mark := h.Use(noon, []*constitution.Past{stays, goes})
			for !h.Settled(mark) {
				h.Status(noon)
			}
			mu.Lock()
			ledger := append([]string(nil), begun...)
			mu.Unlock()
			for _, id := range ledger {
				h.Load("goes", "t", id, noon, seen("g", "", 1), nil)
			}
			h.Ready("goes")
		}
	})
	wg.Wait()
	want := int64(workers * each * 3 / 4)
	if a := ask(t, h, stays, "", noon); a.Count != want || a.Distinct != want {
		t.Errorf("%+v, not %d", a, want)
	}
	if a := ask(t, h, goes, "g", noon); a.Count != want || a.Sum != want {
		t.Errorf("%+v, not %d", a, want)
	}
	if h.held != weigh(h) || len(h.pending) != 0 {
		t.Errorf("%d are counted as held, and %d are; %d are judged", h.held, weigh(h), len(h.pending))
	}
}
