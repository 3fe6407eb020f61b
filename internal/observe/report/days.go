package report

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

const (
	// todayTime bounds how long one asker waits for today's leaves to be read; what
	// is left is read for the next.
	todayTime = 3 * time.Second
	// pastTime bounds the reading of a past day for a page, and pastDays how many are
	// read at once.
	pastTime = 20 * time.Second
	pastDays = 2
)

// Days is how today goes, as far as it was read: each leaf is read once.
type Days struct {
	store kernel.Store
	past  chan struct{} // one place for each reading of a past day

	turn  sync.Mutex
	today *dayReader // guarded by turn
}

// NewDays returns the days that a store has.
func NewDays(s kernel.Store) *Days { return &Days{store: s, past: make(chan struct{}, pastDays)} }

// Report returns how the day of an instant went; of today, how it goes.
func (w *Days) Report(ctx context.Context, day time.Time) (health.Report, error) {
	now := time.Now()
	if health.NewDay(day).Start().Equal(health.NewDay(now).Start()) {
		return w.Today(ctx, now), nil
	}
	select {
	case w.past <- struct{}{}:
		defer func() { <-w.past }()
	default:
		return health.Report{}, &holdfast.Error{Kind: holdfast.KindConflict, Why: "other days are being read", Hint: "try again, or use `holdfast report daily --date`"}
	}
	ctx, cancel := context.WithTimeout(ctx, pastTime)
	defer cancel()
	r, err := ReadDay(ctx, w.store, day, now)
	if err != nil && ctx.Err() != nil {
		err = &holdfast.Error{Kind: holdfast.KindTimeout, Why: "reading that day takes too long here", Hint: "`holdfast report daily --date` has no such limit", Err: err}
	}
	return r, err
}

// Today returns how today goes. What could not be read in time makes it uncertain, and is
// read the next time.
func (w *Days) Today(ctx context.Context, now time.Time) health.Report {
	w.turn.Lock()
	defer w.turn.Unlock()
	if w.today == nil || !w.today.day.Start().Equal(health.NewDay(now).Start()) {
		w.today = newDayReader(w.store, now)
	}
	ctx, cancel := context.WithTimeout(ctx, todayTime)
	defer cancel()
	err := w.today.advance(ctx, now)
	w.today.day.Behind(err != nil && ctx.Err() != nil)
	if err != nil && ctx.Err() == nil {
		broken := health.NewDay(now)
		broken.Unread(err.Error())
		return broken.Report(now)
	}
	return w.today.day.Report(now)
}
