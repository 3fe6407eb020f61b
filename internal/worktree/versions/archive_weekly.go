package versions

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// weekly is what the daemon keeps in mind of the archive of the week.
type weekly struct {
	year, week int       // that is done
	again      time.Time // before which nothing is tried
	wait       time.Duration
}

// look writes the archive of the week, where there is a daily snapshot of it and no
// archive yet. One that failed is tried again, and people are told.
func (w *weekly) look(ctx context.Context, s *Service, now time.Time) {
	if s.Store().Poisoned() != nil {
		return
	}
	if conf := s.current(); !conf.Archive.isSet() || len(conf.Trees) == 0 {
		s.fail(ofArchive, "")
		return
	}
	y, week := now.UTC().ISOWeek()
	if w.year == y && w.week == week || now.Before(w.again) {
		return
	}
	done, err := s.ofWeek(ctx, now)
	switch {
	case err == nil && done:
		*w = weekly{year: y, week: week}
	case err != nil && ctx.Err() == nil:
		w.wait = min(max(dailyAgain, 2*w.wait), dailyLate)
		w.again = now.Add(w.wait)
		s.fail(ofArchive, reason(err))
	}
}

// ofWeek archives the newest daily snapshot of the week, which is the first where
// all goes well; done says that there is an archive.
func (s *Service) ofWeek(ctx context.Context, now time.Time) (done bool, err error) {
	k, err := s.hand()
	if err != nil {
		return false, err
	}
	list, err := k.List()
	if err != nil {
		return false, err
	}
	newest := ""
	for i := range list {
		m := &list[i]
		if !isOfWeek(m, now) {
			continue
		}
		if sums, err := s.isArchived(ctx, m.ID); len(sums) > 0 || err != nil {
			s.fail(ofArchive, "")
			return err == nil, err
		}
		if newest == "" {
			newest = m.ID
		}
	}
	if newest == "" {
		return false, nil // there is none yet, which is told of elsewhere
	}
	if _, err := s.archive(ctx, keeperAgent, newest, "weekly"); err != nil {
		return false, err
	}
	s.fail(ofArchive, "")
	return true, s.clear(ctx, now)
}

// isOfWeek says whether the archive of a snapshot is the one of this week: any daily
// snapshot of it that lacks no tree, whoever had it archived.
func isOfWeek(m *snapshot.Manifest, now time.Time) bool {
	return m.Reason == snapshot.Daily && len(m.Failed) == 0 && weekOf(m.At) == weekOf(now)
}

// clear drops archives from the folder that are older than a year: those alone that
// the ledger has, byte for byte, and never the newest of a year of weeks, for a clock
// that jumps ahead makes none old. Each is recorded before it goes.
func (s *Service) clear(ctx context.Context, now time.Time) error {
	conf := s.current().Archive
	if conf.Dir == "" {
		return nil
	}
	f, err := s.openArchives(conf.Dir)
	if err != nil {
		return err
	}
	defer f.Close()
	list, err := f.Archives()
	if err != nil {
		return err
	}
	own := 0
	for _, name := range slices.Backward(list) {
		id, _ := snapshot.ArchiveID(name)
		at, err := time.Parse("20060102-150405", id[:15])
		if err != nil {
			continue
		}
		sums, err := s.isArchived(ctx, id)
		if err != nil {
			return err
		}
		if len(sums) == 0 {
			continue // it is another Holdfast's
		}
		if own++; own <= weeks || now.Sub(at) <= year {
			continue
		}
		if err := s.clearOne(ctx, f, id, name, sums); err != nil {
			return err
		}
	}
	return nil
}

// clearOne drops an archive whose content has one of the sums.
func (s *Service) clearOne(ctx context.Context, f *snapshot.Folder, id, name string, sums []string) error {
	file, err := f.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := newSummed(io.Discard)
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	for _, known := range sums {
		if known != sum.text() {
			continue
		}
		err := s.recordEvent(kernel.Event{Tenant: holdfast.Local, Crossing: id,
			Name: eventCleared, Who: keeperAgent, Subject: name, Data: map[string]any{"sha256": known, "bytes": sum.n}})
		if err != nil {
			return err
		}
		return f.Remove(name)
	}
	s.Log().Warn("an archive is older than a year and is not what was written; it is left for a person", "archive",
		f.Path(name))
	return nil
}
