package sqlite

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

// counterCell returns the cell of a key, read if it is not in memory.
func (tx *updateTx) counterCell(key string) (*cell[budget.Counter], error) {
	s := tx.s
	if tx.over {
		return nil, errOver
	}
	if c := s.counters.m[key]; c != nil {
		return c, nil
	}
	if err := okName("the counter's key", key); err != nil {
		return nil, err
	}
	v, ok, err := readCounter(s.side, key)
	if err != nil {
		return nil, err
	}
	return s.counters.put(&s.seen, key, counterSlot{v, ok}, s.version, s.settled), nil
}

// inWindow is the counter as a draw sees it: another window counts as zero.
func inWindow(s counterSlot, d budget.Draw) budget.Counter {
	if s.ok && s.val.Window == d.Window {
		return s.val
	}
	return budget.Counter{Window: d.Window}
}

func (tx *updateTx) Counter(d budget.Draw) (budget.Counter, error) {
	c, err := tx.counterCell(d.Key)
	if err != nil {
		return budget.Counter{}, err
	}
	return inWindow(c.now, d), nil
}

func (tx *updateTx) Counters(prefix string, fn func(string, budget.Counter) error) error {
	if tx.over {
		return errOver
	}
	all := map[string]budget.Counter{}
	for after, more := "", true; more; {
		page, err := readCounters(tx.s.side, prefix, after)
		if err != nil {
			return err
		}
		for _, k := range page {
			all[k.key], after = k.Counter, k.key
		}
		more = len(page) == counterPage
	}
	for key, c := range tx.s.counters.m {
		if c.now.ok && strings.HasPrefix(key, prefix) {
			all[key] = c.now.val
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := fn(key, all[key]); err != nil {
			return err
		}
	}
	return nil
}

func (tx *updateTx) setCounter(c *cell[budget.Counter], v budget.Counter) {
	was := c.now
	tx.s.counters.touch(c, tx.b.no)
	c.now = counterSlot{v, true}
	tx.undone(func() { c.now = was })
}

func (tx *updateTx) Draw(ds []budget.Draw) (*budget.Refusal, error) {
	mark := len(tx.undo)
	for _, d := range ds {
		c, err := tx.counterCell(d.Key)
		if err != nil {
			tx.undoTo(mark)
			return nil, err
		}
		v := inWindow(c.now, d)
		if c.now.ok && 0 < d.Window && d.Window < c.now.val.Window {
			// The clock went backwards: the newer window is drawn on, so
			// that no window is ever filled twice.
			v = c.now.val
		}
		if r := budget.Fits(d, v); r != nil {
			tx.undoTo(mark)
			return r, nil
		}
		v.Used += d.Amount
		tx.setCounter(c, v)
	}
	return nil, nil
}

func (tx *updateTx) Settle(ds []budget.Draw, used []int64) error {
	if len(ds) != len(used) {
		return fmt.Errorf("settle: %d draws and %d amounts", len(ds), len(used))
	}
	for i, u := range used {
		if u < 0 || ds[i].Amount < 0 {
			return fmt.Errorf("settle %s: a negative amount", ds[i].Key)
		}
	}
	mark := len(tx.undo)
	for i, d := range ds {
		c, err := tx.counterCell(d.Key)
		if err != nil {
			tx.undoTo(mark)
			return err
		}
		if !c.now.ok || c.now.val.Window != d.Window {
			continue
		}
		v := c.now.val
		rest := max(v.Used-d.Amount, 0)
		if v.Used = rest + used[i]; v.Used < rest {
			v.Used = math.MaxInt64
		}
		tx.setCounter(c, v)
	}
	return nil
}

// rate returns the takings of a key, read if they are not in memory.
func (tx *updateTx) rate(key string) (*rate, error) {
	s := tx.s
	if tx.over {
		return nil, errOver
	}
	if r := s.rates[key]; r != nil {
		return r, nil
	}
	if err := okName("the rate's key", key); err != nil {
		return nil, err
	}
	r, err := readRate(s.side, key)
	if err != nil {
		return nil, err
	}
	r.since = s.version
	s.seen.Lock()
	defer s.seen.Unlock()
	if len(s.rates) >= maxRates {
		s.evictRates()
	}
	s.rates[key] = r
	return r, nil
}

// evictRates drops an eighth of the rates that no batch under way touches.
func (s *Store) evictRates() {
	drop := maxRates / 8
	for k, r := range s.rates {
		if r.batch <= s.settled && len(r.now)+len(r.fly) == 0 {
			delete(s.rates, k)
			if drop--; drop == 0 {
				return
			}
		}
	}
}

// badRate refuses what cannot be a rate.
func badRate(r *budget.Rate) *budget.Refusal {
	if r.Limit < 0 || r.Limit > maxRate || !windowFits(r.Window) {
		return &budget.Refusal{Kind: holdfast.KindInvalidBudget, Rate: r}
	}
	if r.Limit == 0 {
		return &budget.Refusal{Kind: holdfast.KindBounds, Rate: r, After: r.Window}
	}
	return nil
}

// full says how long until there is room, given the limit-th taking from the
// end; 0 is now. A clock that went backwards gives no room back.
func full(r *budget.Rate, now time.Time, nth int64, ok bool) *budget.Refusal {
	if !ok {
		return nil
	}
	window := r.Window.Microseconds()
	if wait := nth + window - micros(now); wait > 0 {
		return &budget.Refusal{Kind: holdfast.KindBounds, Rate: r, After: time.Duration(wait) * time.Microsecond}
	}
	return nil
}

func (tx *updateTx) Rate(rs []budget.Rate, now time.Time) (*budget.Refusal, error) {
	mark := len(tx.undo)
	for i := range rs {
		ref, err := tx.takeRate(rs[i], now)
		if err != nil || ref != nil {
			tx.undoTo(mark)
			return ref, err
		}
	}
	return nil, nil
}

func (tx *updateTx) takeRate(want budget.Rate, now time.Time) (*budget.Refusal, error) {
	if ref := badRate(&want); ref != nil {
		return ref, nil
	}
	r, err := tx.rate(want.Key)
	if err != nil {
		return nil, err
	}
	nth, ok := r.nth(want.Limit)
	if ref := full(&want, now, nth, ok); ref != nil {
		return ref, nil
	}
	at := micros(now)
	if last, ok := r.nth(1); ok {
		at = max(at, last)
	}
	if r.batch != tx.b.no {
		r.batch = tx.b.no
		tx.b.rates = append(tx.b.rates, r)
	}
	r.now = append(r.now, at)
	r.ask = max(r.ask, want.Limit)
	tx.undone(func() { r.now = r.now[:len(r.now)-1] })
	return nil, nil
}

func (tx *updateTx) PeekRate(rs []budget.Rate, now time.Time) (*budget.Refusal, error) {
	for i := range rs {
		want := rs[i]
		if ref := badRate(&want); ref != nil {
			return ref, nil
		}
		r, err := tx.rate(want.Key)
		if err != nil {
			return nil, err
		}
		nth, ok := r.nth(want.Limit)
		if ref := full(&want, now, nth, ok); ref != nil {
			return ref, nil
		}
	}
	return nil, nil
}

func readRate(c *connection.Conn, key string) (*rate, error) {
	r := &rate{key: key}
	err := c.Query("SELECT first, stamps FROM rate WHERE key = ? ORDER BY chunk", func(row connection.Row) error {
		if len(r.stamps) == 0 {
			r.first = row.Int(0)
		} else if row.Int(0) != r.first+int64(len(r.stamps)) {
			return fmt.Errorf("rate %q: takings are missing before number %d", key, row.Int(0))
		}
		if n := len(row.Blob(1)); n%stampSize != 0 {
			return fmt.Errorf("rate %q: %d bytes behind number %d are no takings", key, n, row.Int(0))
		}
		r.stamps = append(r.stamps, stamps(row.Blob(1))...)
		return nil
	}, key)
	return r, err
}
