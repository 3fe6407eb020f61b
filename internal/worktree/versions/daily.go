package versions

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

const (
	// dailyEvery is how often it is asked whether a day's snapshot is due, dailyAgain
	// how long after one that failed, at first, and dailyLate at most: one that lacks
	// a tree is kept like any other, and an agent may have moved its own away.
	dailyEvery = 30 * time.Second
	dailyAgain = 10 * time.Minute
	dailyLate  = 6 * time.Hour
)

// RunDaily takes a snapshot a day, verifies it, and drops old ones, until ctx ends.
func (s *Service) RunDaily(ctx context.Context) {
	var l looks
	both := func() { l.look(ctx, s, time.Now()) }
	both() // one that was missed while nobody ran is taken at the start
	t := time.NewTicker(dailyEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			both()
		}
	}
}

// looks are those after the day's snapshot and the week's archive.
type looks struct {
	day     days
	archive weekly
}

// look does both. What failed is tried again at once where the configuration has
// changed since, which may be what mends it.
func (l *looks) look(ctx context.Context, s *Service, now time.Time) {
	s.mu.Lock()
	changed := s.changed
	s.changed = false
	s.mu.Unlock()
	if changed {
		l.day.again, l.archive.again = time.Time{}, time.Time{}
	}
	l.day.look(ctx, s, now)
	l.archive.look(ctx, s, now)
}

// days is what the daemon keeps in mind of the day's snapshot.
type days struct {
	again time.Time // before which nothing is tried
	wait  time.Duration
}

// look sees to the day's snapshot. One that failed, or that does not verify, is tried
// again, and people are told until one verifies.
func (w *days) look(ctx context.Context, s *Service, now time.Time) {
	if s.Store().Poisoned() != nil || len(s.current().Trees) == 0 || now.Before(w.again) {
		return
	}
	err := s.today(ctx, now)
	switch {
	case err == nil:
		*w = days{}
	case ctx.Err() == nil:
		w.wait = min(max(dailyAgain, 2*w.wait), dailyLate)
		w.again = now.Add(w.wait)
		s.fail(ofDay, reason(err))
	}
}

// today takes the day's snapshot and verifies it, where it is due and there is none
// that verified. One that is there and did not, because there was no room or because
// Holdfast was killed, is verified again; in the place of a damaged one another is taken.
func (s *Service) today(ctx context.Context, now time.Time) error {
	k, err := s.hand()
	if err != nil {
		return err
	}
	conf := s.current()
	list, err := k.List()
	if err != nil {
		return err
	}
	id := ofToday(list, health.LastDue(now, conf.DailyAt), now)
	if id != "" {
		ok, err := s.isVerified(ctx, id)
		if err != nil || ok && !s.troubled(ofDay) {
			return err
		}
		if !ok {
			err = s.whole(ctx, id)
		}
		if isDamaged(err) {
			id = ""
		} else if err != nil {
			return err
		}
	}
	if id == "" {
		if err := s.taken(ctx); err != nil {
			return err
		}
	}
	if err := s.drop(ctx, k, now, time.Duration(conf.KeepDays)*24*time.Hour); err != nil {
		return err
	}
	s.fail(ofDay, "")
	return nil
}

// ofToday is the newest whole daily snapshot since then, "" where there is none. One
// from the future is of a clock that was set back, and does not count.
func ofToday(list []snapshot.Manifest, since, now time.Time) string {
	for i := range list {
		m := &list[i]
		whole := m.Reason == snapshot.Daily && len(m.Failed) == 0
		if whole && !m.At.Before(since) && !m.At.After(now.Add(time.Minute)) {
			return m.ID
		}
	}
	return ""
}

// taken takes a daily snapshot, and verifies it.
func (s *Service) taken(ctx context.Context) error {
	m, err := s.take(ctx, snapshot.Manifest{Who: keeperAgent, Reason: snapshot.Daily, Whole: true})
	if err != nil {
		return err
	}
	return s.whole(ctx, m.ID)
}

// isVerified says whether the snapshot was whole when it was last restored.
func (s *Service) isVerified(ctx context.Context, id string) (ok bool, err error) {
	err = s.events(ctx, id, func(e *ledger.Event, data map[string]any) {
		if e.Name == eventVerified {
			ok = data["ok"] == true
		}
	})
	return ok, err
}

// isDamaged says whether an error is of a snapshot that no longer is what was kept, so
// that to try it again is of no use.
func isDamaged(err error) bool {
	var own *holdfast.Error
	return errors.As(err, &own) && (own.Rule == "snapshot/damaged" || own.Rule == "snapshot/unrecorded")
}

// whole restores a snapshot, and is an error where it is not what was kept.
func (s *Service) whole(ctx context.Context, id string) error {
	list, err := s.verify(ctx, id)
	for _, v := range list {
		if err == nil && !v.OK {
			err = &holdfast.Error{Kind: holdfast.KindInternal, Rule: "snapshot/damaged", Why: v.Path + " was restored and is not what was kept: " + v.Why}
		}
	}
	return err
}

// year is how long the first snapshot of each week is kept, and its archive (spec
// 001, "Retention Policy").
const year = 366 * 24 * time.Hour

// weeks is how many of the newest weekly ones stay whatever their age.
const weeks = 52

// outdated are the snapshots that need not be kept any longer: older than keep, but
// for the first of each week for a year, which is the first that lacks no tree where
// there is one. The newest of each tree stays whatever
// its age, and so does one whose time lies ahead, and as many daily and weekly ones as
// that time brings: a clock that jumps ahead makes none old.
func outdated(list []snapshot.Manifest, now time.Time, keep time.Duration) []string {
	first, newest := firsts(list), map[string]bool{}
	days, weekly := 0, 0
	var out []string
	for i := range list {
		m := &list[i]
		stays := false
		for _, p := range m.Trees {
			stays = stays || !newest[p.Path]
			newest[p.Path] = true
		}
		age := now.Sub(m.At)
		switch {
		case m.At.IsZero() || stays || age <= keep || days < int(keep/(24*time.Hour)):
		case first[weekOf(m.At)] == m && (age <= year || weekly < weeks):
		default:
			out = append(out, m.ID)
		}
		if m.Reason == snapshot.Daily {
			days++
		}
		if first[weekOf(m.At)] == m {
			weekly++
		}
	}
	return out
}

type week struct{ year, week int }

func weekOf(at time.Time) week {
	y, w := at.UTC().ISOWeek()
	return week{y, w}
}

// firsts are the first daily snapshot of each week, of a list with the newest first.
func firsts(list []snapshot.Manifest) map[week]*snapshot.Manifest {
	first := map[week]*snapshot.Manifest{}
	for i := len(list) - 1; i >= 0; i-- {
		m := &list[i]
		if is := first[weekOf(m.At)]; m.Reason == snapshot.Daily && (is == nil || len(is.Failed) > 0 && len(m.Failed) == 0) {
			first[weekOf(m.At)] = m
		}
	}
	return first
}

// drop removes what is outdated, each recorded before it goes.
func (s *Service) drop(ctx context.Context, k *snapshot.Keeper, now time.Time, keep time.Duration) error {
	list, err := k.List()
	if err != nil {
		return err
	}
	gone := outdated(list, now, keep)
	for _, id := range gone {
		if err := s.recordEvent(
			kernel.Event{Tenant: holdfast.Local, Crossing: id, Name: eventDropped, Who: keeperAgent, Subject: id},
		); err != nil {
			return err
		}
		if err := k.Drop(ctx, id); err != nil {
			return err
		}
	}
	return k.Tidy(ctx)
}
