package storetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

func draw(key string, amount, limit, window int64) budget.Draw {
	return budget.Draw{Key: key, Resource: holdfast.LLMTokens, Amount: amount, Limit: limit, Window: window}
}

// takeAll draws and returns the refusal.
func (s *suite) draw(ds ...budget.Draw) (r *budget.Refusal) {
	s.Helper()
	s.update(func(tx kernel.Tx) (err error) { r, err = tx.Draw(ds); return err })
	return r
}

// used checks counters: key, window, what is used of it.
func (s *suite) used(key string, window, wantUsed int64) {
	s.Helper()
	check := func(tx kernel.Tx) error {
		c, err := tx.Counter(draw(key, 0, 0, window))
		if err == nil && (c.Used != wantUsed || c.Window != window) {
			err = fmt.Errorf("counter %s in window %d is %+v, want %d", key, window, c, wantUsed)
		}
		return err
	}
	s.update(check)
	s.view(check)
}

func testCounters(t *testing.T, open Open) {
	s := begin(t, open)
	s.used("a", 0, 0)
	if r := s.draw(draw("a", 30, 100, 0), draw("b", 1, 1, 60), draw("a", 20, 100, 0)); r != nil {
		t.Fatalf("draws that fit were refused: %+v", r)
	}
	s.used("a", 0, 50)
	s.used("b", 60, 1)

	// All or none (D9): the second does not fit, the first is not taken.
	r := s.draw(draw("a", 10, 100, 0), draw("b", 1, 1, 60), draw("c", 1, 9, 0))
	if r == nil || r.Kind != holdfast.KindBounds || r.Draw.Key != "b" || r.Counter != (budget.Counter{Used: 1, Window: 60}) {
		t.Errorf("the refusal of a full counter is %+v", r)
	}
	s.used("a", 0, 50)
	s.used("c", 0, 0)
	// One key twice in one draw counts twice.
	if r = s.draw(draw("a", 30, 100, 0), draw("a", 30, 100, 0)); r == nil || r.Kind != holdfast.KindBounds {
		t.Errorf("two draws that fit only one by one: %+v", r)
	}
	s.used("a", 0, 50)
	for _, c := range []struct {
		d    budget.Draw
		kind holdfast.Kind
	}{
		{draw("a", -1, 100, 0), holdfast.KindValue},
		{draw("a", 1, -1, 0), holdfast.KindInvalidBudget},
		{draw("a", math.MaxInt64, math.MaxInt64, 0), holdfast.KindOverflow},
		{draw("a", 51, 100, 0), holdfast.KindBounds},
	} {
		if r := s.draw(draw("x", 1, 9, 0), c.d); r == nil || r.Kind != c.kind {
			t.Errorf("draw of %d under %d: %+v, want %s", c.d.Amount, c.d.Limit, r, c.kind)
		}
	}
	s.used("a", 0, 50)
	s.used("x", 0, 0)

	settle := func(used int64, d budget.Draw) {
		t.Helper()
		s.update(func(tx kernel.Tx) error { return tx.Settle([]budget.Draw{d}, []int64{used}) })
	}
	settle(5, draw("a", 30, 100, 0)) // 50 - 30 + 5
	s.used("a", 0, 25)
	settle(90, draw("a", 20, 100, 0)) // above the limit: what was used counts
	s.used("a", 0, 95)
	settle(0, draw("a", 1000, 100, 0)) // never below zero
	s.used("a", 0, 0)
	settle(math.MaxInt64, draw("a", 0, 0, 0))
	settle(math.MaxInt64, draw("a", 0, 0, 0)) // never over the edge
	s.used("a", 0, math.MaxInt64)
	settle(7, draw("never", 1, 9, 0))
	s.used("never", 0, 0)

	// Windows: another one counts as zero, and a passed one is left alone.
	s.used("b", 120, 0)
	if r := s.draw(draw("b", 1, 1, 120)); r != nil {
		t.Errorf("a new window is full: %+v", r)
	}
	settle(0, draw("b", 1, 1, 60))
	s.used("b", 120, 1)
	s.used("b", 60, 0)
	// A clock that goes back gives nothing back.
	if r := s.draw(draw("b", 1, 1, 60)); r == nil {
		t.Error("a counter was filled again because the clock went back")
	}
	s.used("b", 120, 1)

	err := s.Update(t.Context(), func(tx kernel.Tx) error { return tx.Settle([]budget.Draw{draw("a", 1, 1, 0)}, nil) })
	refused(t, "settle without amounts", err, "")
	err = s.Update(t.Context(), func(tx kernel.Tx) error {
		return tx.Settle([]budget.Draw{draw("q", 1, 9, 0)}, []int64{-1})
	})
	refused(t, "settle a negative amount", err, "negative")

	s.again()
	s.used("a", 0, math.MaxInt64)
	s.used("b", 120, 1)
	countersAtRandom(t, s)
	countersListed(t, open)
}

// countersAtRandom compares many draws and settlements with plain arithmetic.
// K3: no sequence of them takes a counter above its limit by drawing.
func countersAtRandom(t *testing.T, s *suite) {
	rng := rand.New(rand.NewPCG(1, 2))
	model := map[string]int64{}
	type taken struct {
		ds []budget.Draw
	}
	var open []taken
	for step := range 400 {
		if len(open) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(open))
			ds := open[i].ds
			open = append(open[:i], open[i+1:]...)
			used := make([]int64, len(ds))
			for j := range ds {
				used[j] = rng.Int64N(ds[j].Amount + 1)
				model[ds[j].Key] += used[j] - ds[j].Amount
			}
			s.update(func(tx kernel.Tx) error { return tx.Settle(ds, used) })
			continue
		}
		ds := make([]budget.Draw, 1+rng.IntN(3))
		fits := true
		sum := map[string]int64{}
		for j := range ds {
			ds[j] = draw(fmt.Sprint("r", rng.IntN(4)), rng.Int64N(40), 100, 0)
			sum[ds[j].Key] += ds[j].Amount
			fits = fits && model[ds[j].Key]+sum[ds[j].Key] <= 100
		}
		if r := s.draw(ds...); (r == nil) != fits {
			t.Fatalf("step %d: %v gives %+v, the model says fits=%v", step, ds, r, fits)
		}
		if fits {
			for k, v := range sum {
				model[k] += v
			}
			open = append(open, taken{ds})
		}
	}
	s.again()
	for k, v := range model {
		s.used(k, 0, v)
	}
}

func (s *suite) rate(now time.Time, rs ...budget.Rate) (r *budget.Refusal) {
	s.Helper()
	var peek *budget.Refusal
	s.view(func(tx kernel.Tx) (err error) { peek, err = tx.PeekRate(rs, now); return err })
	s.update(func(tx kernel.Tx) (err error) {
		if p, err := tx.PeekRate(rs, now); err != nil || (p == nil) != (peek == nil) {
			return fmt.Errorf("peek differs between view and update: %+v and %+v, %w", peek, p, err)
		}
		r, err = tx.Rate(rs, now)
		return err
	})
	if (r == nil) != (peek == nil) {
		s.Errorf("peek says %+v and taking %+v", peek, r)
	}
	return r
}

func testRates(t *testing.T, open Open) {
	s := begin(t, open)
	r3 := budget.Rate{Key: "r3", Limit: 3, Window: time.Minute}
	cool := budget.Rate{Key: "cool", Limit: 1, Window: 10 * time.Second}
	at := func(d time.Duration) time.Time { return start().Add(d) }
	for i, c := range []struct {
		at    time.Duration
		rs    []budget.Rate
		full  string
		after time.Duration
	}{
		{0, []budget.Rate{r3, cool}, "", 0},
		{9 * time.Second, []budget.Rate{r3, cool}, "cool", time.Second},
		{10 * time.Second, []budget.Rate{r3, cool}, "", 0},
		{20 * time.Second, []budget.Rate{r3}, "", 0},
		{30 * time.Second, []budget.Rate{cool, r3}, "r3", 30 * time.Second},
		{30 * time.Second, []budget.Rate{cool}, "", 0}, // the one before took nothing
		{time.Minute - time.Microsecond, []budget.Rate{r3}, "r3", time.Microsecond},
		{time.Minute, []budget.Rate{r3}, "", 0},
		{time.Minute, []budget.Rate{r3}, "r3", 10 * time.Second},
		{0, []budget.Rate{r3}, "r3", 70 * time.Second}, // the clock went back
	} {
		if i == 5 {
			s.again()
		}
		r := s.rate(at(c.at), c.rs...)
		switch {
		case c.full == "" && r != nil:
			t.Errorf("step %d: refused: %+v", i, r)
		case c.full != "" && (r == nil || r.Rate == nil || r.Rate.Key != c.full || r.After != c.after || r.Kind != holdfast.KindBounds):
			t.Errorf("step %d: %+v, want %s full for %v", i, r, c.full, c.after)
		}
	}
	for _, bad := range []budget.Rate{
		{Key: "bad", Limit: -1, Window: time.Second},
		{Key: "bad", Limit: 100_001, Window: time.Second},
		{Key: "bad", Limit: 1},
		{Key: "bad", Limit: 1, Window: -time.Second},
	} {
		if r := s.rate(start(), bad); r == nil || r.Kind != holdfast.KindInvalidBudget {
			t.Errorf("rate %+v: %+v", bad, r)
		}
	}
	if r := s.rate(start(), budget.Rate{Key: "none", Window: time.Second}); r == nil {
		t.Error("a rate with no limit set let one pass")
	}
	ratesAtRandom(t, s)
}

// ratesAtRandom takes at random times, forwards and back, reopening now and
// then, and checks that no window of any length-w stretch of time ever held
// more than the limit, and that nothing was refused that would have fitted.
func ratesAtRandom(t *testing.T, s *suite) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, limit := range []int{1, 7, 150} {
		r := budget.Rate{Key: fmt.Sprint("random", limit), Limit: limit, Window: time.Minute}
		now := start()
		var took []time.Time
		for step := range limit*6 + 60 {
			now = now.Add(time.Duration(rng.Int64N(int64(2*time.Minute)/int64(limit))) / 2 * 2).Truncate(time.Microsecond)
			ask := now
			if rng.IntN(10) == 0 {
				ask = now.Add(-time.Duration(rng.Int64N(int64(time.Minute)))).Truncate(time.Microsecond)
			}
			stamp := ask
			if n := len(took); n > 0 && took[n-1].After(stamp) {
				stamp = took[n-1]
			}
			room := len(took) < limit || ask.Sub(took[len(took)-limit]) >= time.Minute
			if got := s.rate(ask, r) == nil; got != room {
				t.Fatalf("limit %d step %d at %v: taken=%v, the model says %v", limit, step, ask, got, room)
			}
			if room {
				took = append(took, stamp)
			}
			if step == limit*3 {
				s.again()
			}
		}
		for i := limit; i < len(took); i++ {
			if took[i].Sub(took[i-limit]) < time.Minute {
				t.Errorf("limit %d: %d takings within %v", limit, limit+1, took[i].Sub(took[i-limit]))
			}
		}
	}
}

// countersListed: those whose keys begin so, in their order, as the transaction sees
// them, however many there are.
func countersListed(t *testing.T, open Open) {
	s := begin(t, open)
	const many = 2500
	for from := 0; from < many; from += 100 {
		var ds []budget.Draw
		for i := from; i < from+100; i++ {
			ds = append(ds, draw(fmt.Sprintf("b/%04d", i), int64(i), many, 0))
		}
		s.draw(ds...)
	}
	s.draw(draw("a/b/", 1, 9, 0), draw("b", 2, 9, 0), draw("b0", 3, 9, 60))
	list := func(tx kernel.Tx, prefix string) (keys []string, sum int64, err error) {
		err = tx.Counters(prefix, func(key string, c budget.Counter) error {
			if n := len(keys); n > 0 && keys[n-1] >= key {
				t.Errorf("%q after %q", key, keys[n-1])
			}
			keys, sum = append(keys, key), sum+c.Used
			return nil
		})
		return keys, sum, err
	}
	wants := func(tx kernel.Tx, prefix string, n int, want int64) error {
		keys, sum, err := list(tx, prefix)
		if err == nil && (len(keys) != n || sum != want) {
			err = fmt.Errorf("%d counters begin with %q, %d together, want %d and %d", len(keys), prefix, sum, n, want)
		}
		return err
	}
	s.everywhere(func(tx kernel.Tx) error {
		return errors.Join(wants(tx, "b/", many, many*(many-1)/2), wants(tx, "b/00", 100, 4950), wants(tx, "c", 0, 0), wants(tx, "", many+3, many*(many-1)/2+6), wants(tx, "b0", 1, 3))
	})
	// What the update itself has drawn is there.
	s.update(func(tx kernel.Tx) error {
		if _, err := tx.Draw([]budget.Draw{draw("b0", 4, 9, 120), draw("b00", 1, 9, 0)}); err != nil {
			return err
		}
		return wants(tx, "b0", 2, 5)
	})
	oops := errors.New("oops")
	s.everywhere(func(tx kernel.Tx) error {
		n := 0
		err := tx.Counters("b/", func(string, budget.Counter) error { n++; return oops })
		if !errors.Is(err, oops) || n != 1 {
			return fmt.Errorf("it went on after an error: %d, %w", n, err)
		}
		return nil
	})
}
