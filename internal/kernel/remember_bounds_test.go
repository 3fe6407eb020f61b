package kernel_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Each tool and caller has room for so many rules; those that ended give
// theirs back.
func TestD11_rules_are_bounded(t *testing.T) {
	w := newWorld(t, "")
	make := func(i int) error {
		h := w.held(w.req("test/high", fmt.Sprintf(`{"i":%d}`, i)))
		w.approve(h.Review)
		_, err := w.k.Remember(w.wish(h.Review, review.Choice{Exact: true}))
		return err
	}
	for i := range 32 {
		if err := make(i); err != nil {
			t.Fatal(i, err)
		}
	}
	refusedAs(t, make(32), holdfast.KindConflict, "review/too_many_rules")
	list, _ := w.k.Remembered(t.Context(), "")
	if _, err := w.k.Forget(w.sign(operator.Statement{Act: operator.Forget, Subject: list[3].ID})); err != nil {
		t.Fatal(err)
	}
	if err := make(33); err != nil {
		t.Fatal(err)
	}
}

// A rule that is forgotten while requests fly lets nothing begin afterwards,
// and its count is what acted.
func TestD11_forgetting_beside_use(t *testing.T) {
	w := newWorld(t, "")
	m := w.remember("test/high", inWorkArgs, inWork)
	var acts, after atomic.Int64
	var forgotten atomic.Bool
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 40 {
		req := w.req("test/high", fmt.Sprintf(`{"path":"/srv/tree/%d","text":"x"}`, i))
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-start
			late := forgotten.Load()
			_, err := w.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
				acts.Add(1)
				if late {
					after.Add(1)
				}
				return ok(ctx)
			})
			switch holdfast.KindOf(err) {
			case "", holdfast.KindHeld, holdfast.KindConflict:
			default:
				t.Error(err)
			}
		}()
	}
	close(start)
	time.Sleep(5 * time.Millisecond)
	if _, err := w.k.Forget(w.sign(operator.Statement{Act: operator.Forget, Subject: m.ID})); err != nil {
		t.Fatal(err)
	}
	forgotten.Store(true)
	wg.Wait()
	list, _ := w.k.Remembered(t.Context(), "")
	if after.Load() != 0 || list[0].Uses != acts.Load() {
		t.Fatalf("%d acted after it was forgotten; %d acts, %d counted", after.Load(), acts.Load(), list[0].Uses)
	}
}
