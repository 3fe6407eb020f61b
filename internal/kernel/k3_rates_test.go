package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// At most N in any 60 s, to the microsecond (D9): as a property over random
// walks of the clock, against a list of what was taken.
func TestK3_D9_property_rate_in_any_minute(t *testing.T) {
	w := newWorld(t, "")
	var taken []time.Time
	steps := []time.Duration{0, time.Millisecond, 7 * time.Second, 19 * time.Second, 20 * time.Second, 41 * time.Second, 59 * time.Second}
	r := random(9)
	for i := range 60 {
		w.advance(steps[r.IntN(len(steps))])
		before := w.now()
		_, err := w.cross(w.req("test/rate", fmt.Sprintf(`{"i":%d}`, i)))
		after := w.now()
		in := func(now time.Time) int {
			return len(taken) - slices.IndexFunc(append(slices.Clone(taken), now), func(at time.Time) bool { return now.Sub(at) < time.Minute })
		}
		switch {
		case err == nil && in(after) >= 3:
			t.Fatalf("a fourth in a minute: %v and %v", taken, after)
		case err != nil && holdfast.KindOf(err) != holdfast.KindBounds:
			t.Fatal(err)
		case err != nil && in(before) < 3:
			t.Fatalf("refused with room: %v at %v", taken, before)
		}
		if err == nil {
			taken = append(taken, w.entries(holdfast.Local)[len(w.entries(holdfast.Local))-1].Timestamp)
		}
	}
	if len(taken) < 10 {
		t.Fatalf("only %d taken", len(taken))
	}
}

func TestK3_rates_race(t *testing.T) {
	w := newWorld(t, "")
	var done atomic.Int64
	var wg sync.WaitGroup
	for i := range 20 {
		req := w.req("test/rate", fmt.Sprintf(`{"i":%d}`, i))
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := w.k.Cross(context.Background(), req, ok); err == nil {
				done.Add(1)
			} else if holdfast.KindOf(err) != holdfast.KindBounds {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if done.Load() != 3 {
		t.Fatalf("%d crossed", done.Load())
	}
}

func TestK3_cooldown(t *testing.T) {
	w := newWorld(t, "", listed(holdfast.Contract{Boundary: "test/cool", Risk: holdfast.Low, Cooldown: time.Hour, Source: "test:51"}))
	w.passes(w.req("test/cool", `{}`))
	w.advance(time.Hour - 5*time.Second)
	e := w.refused(w.req("test/cool", `{}`), holdfast.K3, holdfast.KindBounds)
	if !strings.Contains(e.Hint, "s") {
		t.Fatalf("%q", e.Hint)
	}
	w.advance(6 * time.Second)
	w.passes(w.req("test/cool", `{}`))
	other := w.req("test/cool", `{}`)
	other.Token = w.who("dave")
	w.passes(other)
}

// How long the answer takes does not tell how full a rate is: the store finds
// the nth newest taking in one step, whatever the limit. Generous, so that
// only a search through thousands would fail it.
func TestK3_rate_timing_tells_nothing(t *testing.T) {
	w := newWorld(t, "")
	at := time.Now()
	empty, full := []budget.Rate{{Key: "t/empty", Limit: 20_000, Window: time.Hour}}, []budget.Rate{{Key: "t/full", Limit: 20_000, Window: time.Hour}}
	if err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		for range 19_999 {
			if no, err := tx.Rate(full, at); err != nil || no != nil {
				return fmt.Errorf("%v %v", no, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var took [2][]time.Duration
	err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		for i := range 4000 {
			r := empty
			if i%2 == 1 {
				r = full
			}
			start := time.Now()
			no, err := tx.PeekRate(r, at)
			took[i%2] = append(took[i%2], time.Since(start))
			if err != nil || no != nil {
				return fmt.Errorf("%v %v", no, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	a, b := took[0][1000], took[1][1000]
	if b > 20*a+20*time.Microsecond {
		t.Fatalf("an empty rate answers in %v, a full one in %v", a, b)
	}
}
