package daemon

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/snapshot"
	"github.com/holdfast-dev/holdfast/kernel"
)

const (
	// dailyEvery is how often it is asked whether a day's snapshot is due, dailyAgain
	// how long after one that failed, at first, and dailyLate at most: one that lacks
	// a tree is kept like any other, and an agent may have moved its own away.
	dailyEvery = 30 * time.Second
	dailyAgain = 10 * time.Minute
	dailyLate  = 6 * time.Hour
	daily      = "daily"
)

// daily takes a snapshot a day, verifies it, and drops old ones, until ctx ends.
func (s *snapshots) daily(ctx context.Context) {
	var again time.Time
	wait := dailyAgain
	look := func() {
		if s.d.store.Poisoned() != nil || len(s.d.config().Snapshots.Trees) == 0 || time.Now().Before(again) {
			return
		}
		err := s.today(ctx, time.Now())
		if err == nil {
			wait = dailyAgain
		} else if ctx.Err() == nil {
			again, wait = time.Now().Add(wait), min(2*wait, dailyLate)
			s.fail(ofDay, clip(err.Error()))
		}
	}
	var archive weekly
	both := func() {
		look()
		archive.look(ctx, s, time.Now())
	}
	both() // one that was missed while nobody ran is taken at the start
	every(ctx, dailyEvery, both)
}

// due is the last time at which a day's snapshot was due.
func due(now time.Time, at time.Duration) time.Time {
	t := now.UTC().Truncate(24 * time.Hour).Add(at)
	if t.After(now) {
		t = t.Add(-24 * time.Hour)
	}
	return t
}

// today takes the day's snapshot, where it is due and not there.
func (s *snapshots) today(ctx context.Context, now time.Time) error {
	k, err := s.hand()
	if err != nil {
		return err
	}
	conf := s.d.config().Snapshots
	at, err := conf.at()
	if err != nil {
		return err
	}
	list, err := k.List()
	if err != nil {
		return err
	}
	since := due(now, at)
	for i := range list {
		// One from the future is of a clock that was set back, and does not count.
		if m := &list[i]; m.Why == daily && len(m.Failed) == 0 && !m.At.Before(since) && !m.At.After(now.Add(time.Minute)) {
			return nil
		}
	}
	m, err := s.take(ctx, snapshot.Manifest{Who: keeperAgent, Why: daily, Whole: true})
	if err != nil {
		return err
	}
	if err := s.whole(ctx, m.ID); err != nil {
		return err
	}
	s.fail(ofDay, "")
	return s.drop(ctx, k, now, time.Duration(conf.KeepDays)*24*time.Hour)
}

// whole restores a snapshot, and is an error where it is not what was kept.
func (s *snapshots) whole(ctx context.Context, id string) error {
	list, err := s.verify(ctx, id)
	for _, v := range list {
		if err == nil && !v.OK {
			err = &holdfast.Error{Kind: holdfast.KindInternal, Why: v.Path + " was restored and is not what was kept: " + v.Why}
		}
	}
	return err
}

// year is how long the first snapshot of each week is kept, and its archive (spec
// 001, "Retention Policy").
const year = 366 * 24 * time.Hour

// outdated are the snapshots that need not be kept any longer: older than keep, but
// for the first of each week for a year, which is the first that lacks no tree where
// there is one. The newest of each tree stays whatever
// its age, and so does one whose time lies ahead.
func outdated(list []snapshot.Manifest, now time.Time, keep time.Duration) []string {
	type week struct{ year, week int }
	first, newest := map[week]*snapshot.Manifest{}, map[string]bool{}
	var out []string
	for i := len(list) - 1; i >= 0; i-- { // the oldest first
		m := &list[i]
		y, w := m.At.UTC().ISOWeek()
		if is := first[week{y, w}]; m.Why == daily && (is == nil || len(is.Failed) > 0 && len(m.Failed) == 0) {
			first[week{y, w}] = m
		}
	}
	for i := range list {
		m := &list[i]
		stays := false
		for _, p := range m.Trees {
			stays = stays || !newest[p.Path]
			newest[p.Path] = true
		}
		y, w := m.At.UTC().ISOWeek()
		age := now.Sub(m.At)
		if m.At.IsZero() || stays || age <= keep || (first[week{y, w}] == m && age <= year) {
			continue
		}
		out = append(out, m.ID)
	}
	return out
}

// drop removes what is outdated, each recorded before it goes.
func (s *snapshots) drop(ctx context.Context, k *snapshot.Keeper, now time.Time, keep time.Duration) error {
	list, err := k.List()
	if err != nil {
		return err
	}
	gone := outdated(list, now, keep)
	for _, id := range gone {
		if err := s.d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Crossing: id, Name: eventDropped, Who: keeperAgent, Subject: id}); err != nil {
			return err
		}
		if err := k.Drop(ctx, id); err != nil {
			return err
		}
	}
	return k.Tidy(ctx)
}
