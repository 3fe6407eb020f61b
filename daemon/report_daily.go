package daemon

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/lastline"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

const (
	// reportEvery is how often it is looked whether a day has ended.
	reportEvery = time.Minute
	// reportAgain is how long after the ledger could not be read for a day's report it
	// is read again.
	reportAgain = 10 * time.Minute
	// reportsBack is how many past days are written that a daemon which did not run
	// has missed, and sent.
	reportsBack = 7
	// maxReport bounds what is read of a report that was written, in bytes.
	maxReport = 16 << 20
)

// reporting is how it stands with the daily reports of days that are over.
type reporting struct {
	turn  sync.Mutex           // of whoever writes them
	again map[string]time.Time // guarded by turn; when a day that could not be read is read again

	mu        sync.Mutex
	unwritten map[string]string // guarded by mu; by day, why its report is not there, or is not the last word
	unsent    map[string]string // guarded by mu; by day, why its report could not be sent
}

// troubles are what status tells, by day.
func (r *reporting) troubles() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]string{}
	maps.Copy(all, r.unsent)
	maps.Copy(all, r.unwritten) // it is the cause
	for _, date := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[date])
	}
	return out
}

// failed says whether a day's report could not be written.
func (r *reporting) failed(day time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unwritten[day.Format(time.DateOnly)] != ""
}

// reportDays writes each day's report into the state directory once the day is
// over, and those that were missed. It stands there as markdown and as JSON, and is
// kept; who is to be sent it is sent it. What fails is tried again each minute, and
// logged once for each reason.
func (d *Daemon) reportDays(ctx context.Context) {
	var said lastline.Line
	const what = "not every daily report could be written and sent"
	look := func() {
		now := time.Now()
		err := d.writeReports(ctx, now)
		if ctx.Err() == nil {
			err = errors.Join(err, d.sendReports(now))
		}
		switch {
		case ctx.Err() != nil:
		case err == nil:
			said = lastline.Line{}
		case said.Replace(what, err):
			d.log.Error(what, "err", err)
		}
	}
	look()
	every(ctx, reportEvery, look)
}

// writeReports writes the reports of the days before now that are not there yet, and
// computes those anew that are of a ledger which could not be read. What is wrong
// with one day keeps no other from its report.
func (d *Daemon) writeReports(ctx context.Context, now time.Time) error {
	d.reporting.turn.Lock()
	defer d.reporting.turn.Unlock()
	bad := map[string]string{}
	var all []error
	for back := reportsBack; back > 0; back-- {
		day := health.NewDay(now.UTC().AddDate(0, 0, -back)).Start()
		err := d.writeDay(ctx, day, now)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			bad[day.Format(time.DateOnly)] = d.oneProblem(err)
			all = append(all, err)
		}
	}
	d.reporting.mu.Lock()
	defer d.reporting.mu.Unlock()
	d.reporting.unwritten = bad
	return errors.Join(all...)
}

// oneProblem is an error as status tells it, with what to do about it.
func (d *Daemon) oneProblem(err error) string {
	text := err.Error()
	if e, ok := err.(*holdfast.Error); ok {
		text = e.Why
		if e.Hint != "" {
			text += " (" + e.Hint + ")"
		}
	}
	return d.maskText(excerpt.Of(oneCleanLine(text), 500))
}

// writeDay writes the report of a day that is over, where it is not there. That of a
// day which could not be read, or which a clock that was ahead took for over, is not the
// last word: it is computed anew, and takes its place, once it can be. The caller has
// the turn.
func (d *Daemon) writeDay(ctx context.Context, day, now time.Time) error {
	date := day.Format(time.DateOnly)
	kept, err := d.keptReport(day)
	if err == nil && d.writtenAhead(date, now) {
		kept = nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) || kept != nil && !kept.Unread {
		return err
	}
	if kept != nil && now.Before(d.reporting.again[date]) {
		return unreadDay(kept)
	}
	r, err := ReadDay(ctx, d.store, day, now)
	if err != nil {
		return fmt.Errorf("the daily report of %s: %w", date, err)
	}
	if r.Unread {
		d.readAgain(date, now)
	}
	if len(r.Tenants) == 0 && !r.Unread {
		return nil // there was nothing yet
	}
	if kept == nil || !r.Unread {
		if err := d.writeReport(filepath.Join(d.Paths.Reports, date), &r); err != nil {
			return fmt.Errorf("the daily report of %s could not be written: %w", date, err)
		}
	}
	if r.Unread {
		return unreadDay(&r)
	}
	return nil
}

// writtenAhead says whether a day's report was written by a clock that was ahead and
// was set back since: the day had not been then.
func (d *Daemon) writtenAhead(date string, now time.Time) bool {
	info, err := os.Lstat(filepath.Join(d.Paths.Reports, date+".json"))
	return err == nil && info.ModTime().After(now.Add(ahead))
}

// readAgain notes when a day is read again, and forgets those of which nobody asks any
// more. The caller has the turn.
func (d *Daemon) readAgain(date string, now time.Time) {
	if len(d.reporting.again) > 2*reportsBack || d.reporting.again == nil {
		d.reporting.again = map[string]time.Time{}
	}
	d.reporting.again[date] = now.Add(reportAgain)
}

// unreadDay is the error of a report of a day that could not be read.
func unreadDay(r *health.Report) error {
	why := "the ledger cannot be read"
	if len(r.Because) > 0 {
		why = r.Because[0]
	}
	return &holdfast.Error{Kind: holdfast.KindInternal, Why: "the daily report of " + r.Date + " is RED until it can be computed: " + why, Hint: "`holdfast ledger verify` says where"}
}

// keptReport reads the report of a day that was written; fs.ErrNotExist where there is
// none.
func (d *Daemon) keptReport(day time.Time) (*health.Report, error) {
	date := day.Format(time.DateOnly)
	file := filepath.Join(d.Paths.Reports, date+".json")
	b, err := guard.ReadRegular(file, maxReport, guard.CheckPrivate(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	var r health.Report
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err == nil && r.Date != date {
		err = errors.New("it is not of that day")
	}
	if err != nil {
		why, hint := usage.Explain(err)
		return nil, &holdfast.Error{Kind: holdfast.KindInternal, Why: "the daily report of " + date + " cannot be read: " + why, Err: err,
			Hint: cmp.Or(hint, "move "+file+" away, and it is written anew from the ledger")}
	}
	return &r, nil
}

// writeReport writes one, the JSON last: where that is, both are. The ledger keeps
// its hash, and what the days behind it begin with.
func (d *Daemon) writeReport(file string, r *health.Report) error {
	if err := os.MkdirAll(d.Paths.Reports, 0o700); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := r.Markdown(&text, oneCleanLine); err != nil {
		return err
	}
	doc, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	doc = append(doc, '\n')
	sum := sha256.Sum256(doc)
	if err := d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Name: eventReported, Who: "holdfast", Subject: r.Date, Data: map[string]any{
		"health": r.Health.String(), "hash": hex.EncodeToString(sum[:]), "settings": d.Kernel.Policy().Settings, "halted": d.latch.Halted(), "disabled": d.disabled() != ""}}); err != nil {
		return err
	}
	if err := durable.ReplaceFile(file+".md", text.Bytes(), 0o600); err != nil {
		return err
	}
	return durable.ReplaceFile(file+".json", doc, 0o600)
}

// oneCleanLine is a text without what does not print.
func oneCleanLine(s string) string {
	return visible.ReplaceControls(strings.ToValidUTF8(s, "?"), '?')
}
