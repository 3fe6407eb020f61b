package report

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
	"log/slog"
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
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
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

// Options are what the daily reports are made of.
type Options struct {
	Dir    string // where they are kept
	Store  kernel.Store
	Record func(kernel.Event) error
	// State returns what the next day begins with.
	State func() State
	// Target returns the channels that are sent reports, none if no one is, and the time of day from which on.
	Target  func() (to []string, at time.Duration, err error)
	Send    func(notify.Item, time.Time)
	Runtime string // the state's id
	Mask    func(string) string
	Log     *slog.Logger
}

// State is what a day begins with.
type State struct {
	Settings *health.Settings
	Halted   bool
	Disabled bool
}

// Reports are the daily reports of days that are over.
type Reports struct {
	Options

	turn  sync.Mutex           // of whoever writes them
	again map[string]time.Time // guarded by turn; when a day that could not be read is read again

	mu        sync.Mutex
	unwritten map[string]string // guarded by mu; by day, why its report is not there, or is not the last word
	unsent    map[string]string // guarded by mu; by day, why its report could not be sent

	mailing mailing
}

// New returns the reports that are kept in a directory.
func New(o Options) *Reports { return &Reports{Options: o} }

// Troubles returns what status tells, by day.
func (d *Reports) Troubles() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]string{}
	maps.Copy(all, d.unsent)
	maps.Copy(all, d.unwritten) // it is the cause
	for _, date := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[date])
	}
	return out
}

// failed says whether a day's report could not be written.
func (d *Reports) failed(day time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unwritten[day.Format(time.DateOnly)] != ""
}

// Run writes each day's report into the state directory once the day is
// over, and those that were missed. It stands there as markdown and as JSON, and is
// kept; who is to be sent it is sent it. What fails is tried again each minute, and
// logged once for each reason.
func (d *Reports) Run(ctx context.Context) {
	var said lastline.Line
	const what = "not every daily report could be written and sent"
	look := func() {
		now := time.Now()
		err := d.Write(ctx, now)
		if ctx.Err() == nil {
			err = errors.Join(err, d.SendDue(now))
		}
		switch {
		case ctx.Err() != nil:
		case err == nil:
			said = lastline.Line{}
		case said.Replace(what, err):
			d.Log.Error(what, "err", err)
		}
	}
	look()
	t := time.NewTicker(reportEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			look()
		}
	}
}

// Write writes the reports of the days before now that are not there yet, and
// computes those anew that are of a ledger which could not be read. What is wrong
// with one day keeps no other from its report.
func (d *Reports) Write(ctx context.Context, now time.Time) error {
	d.turn.Lock()
	defer d.turn.Unlock()
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
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unwritten = bad
	return errors.Join(all...)
}

// oneProblem is an error as status tells it, with what to do about it.
func (d *Reports) oneProblem(err error) string {
	text := err.Error()
	if e, ok := err.(*holdfast.Error); ok {
		text = e.Why
		if e.Hint != "" {
			text += " (" + e.Hint + ")"
		}
	}
	return d.Mask(excerpt.Of(oneCleanLine(text), 500))
}

// writeDay writes the report of a day that is over, where it is not there. That of a
// day which could not be read, or which a clock that was ahead took for over, is not the
// last word: it is computed anew, and takes its place, once it can be. The caller has
// the turn.
func (d *Reports) writeDay(ctx context.Context, day, now time.Time) error {
	date := day.Format(time.DateOnly)
	kept, err := d.Read(day)
	if err == nil && d.writtenAhead(date, now) {
		kept = nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) || kept != nil && !kept.Unread {
		return err
	}
	if kept != nil && now.Before(d.again[date]) {
		return unreadDay(kept)
	}
	r, err := ReadDay(ctx, d.Store, day, now)
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
		if err := d.writeReport(filepath.Join(d.Dir, date), &r); err != nil {
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
func (d *Reports) writtenAhead(date string, now time.Time) bool {
	info, err := os.Lstat(filepath.Join(d.Dir, date+".json"))
	return err == nil && info.ModTime().After(now.Add(ahead))
}

// readAgain notes when a day is read again, and forgets those of which nobody asks any
// more. The caller has the turn.
func (d *Reports) readAgain(date string, now time.Time) {
	if len(d.again) > 2*reportsBack || d.again == nil {
		d.again = map[string]time.Time{}
	}
	d.again[date] = now.Add(reportAgain)
}

// unreadDay is the error of a report of a day that could not be read.
func unreadDay(r *health.Report) error {
	why := "the ledger cannot be read"
	if len(r.Because) > 0 {
		why = r.Because[0]
	}
	return &holdfast.Error{Kind: holdfast.KindInternal, Why: "the daily report of " + r.Date + " is RED until it can be computed: " + why, Hint: "`holdfast ledger verify` says where"}
}

// Read reads the report of a day that was written; fs.ErrNotExist where there is
// none.
func (d *Reports) Read(day time.Time) (*health.Report, error) {
	date := day.Format(time.DateOnly)
	file := filepath.Join(d.Dir, date+".json")
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
func (d *Reports) writeReport(file string, r *health.Report) error {
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
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
	sum, state := sha256.Sum256(doc), d.State()
	if err := d.Record(kernel.Event{Tenant: holdfast.Local,
		Name: EventName, Who: "holdfast", Subject: r.Date, Data: map[string]any{
			"health": r.Health.String(), "hash": hex.EncodeToString(sum[:]),
			"settings": state.Settings, "halted": state.Halted, "disabled": state.Disabled}}); err != nil {
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
