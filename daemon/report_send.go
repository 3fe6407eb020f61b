package daemon

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/notify"
	"github.com/holdfast-dev/holdfast/internal/watch"
)

const (
	// conditionReport is what a daily report is called among the alerts.
	conditionReport = "daily_report"
	// maxReport bounds what is read of a report that was written, in bytes.
	maxReport = 16 << 20
)

// mailing is how far the daily reports were handed to what tells people.
type mailing struct {
	mu   sync.Mutex
	last time.Time // guarded by mu; the newest day, zero where none is known
}

// sentFile names the newest day whose report was handed over.
func (p Paths) sentFile() string { return filepath.Join(p.Reports, "sent") }

// sendReports hands the reports of days that are over to the channels that are
// configured for them, each once: yesterday's from its time on, and before it those
// that were missed since the last one. All that was written is there by then.
func (d *Daemon) sendReports(now time.Time) error {
	to := d.config().Alerts.Report
	if len(to.To) == 0 || d.alerts.queue == nil {
		return nil
	}
	at, err := to.at()
	if err != nil {
		return err
	}
	newest := health.NewDay(due(now, at).AddDate(0, 0, -1)).Start()
	d.mailing.mu.Lock()
	defer d.mailing.mu.Unlock()
	for day := d.firstToSend(newest); !day.After(newest); day = day.AddDate(0, 0, 1) {
		if err := d.sendReport(day, now); err != nil {
			return err
		}
	}
	return nil
}

// firstToSend is the day behind the last that was handed over. Where none is known,
// or one that is yet to come, since the clock was set back, it is the newest: who
// has just asked for reports wants none of last week. The caller has mailing's lock.
func (d *Daemon) firstToSend(newest time.Time) time.Time {
	last := d.mailing.last
	if last.IsZero() {
		b, err := readRegular(d.Paths.sentFile(), 64, privateFile(d.Paths.sentFile()))
		if err == nil {
			last, err = time.Parse(time.DateOnly, strings.TrimSpace(string(b)))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.log.Warn("which daily report was sent last cannot be read; the newest is sent", "err", err)
		}
	}
	if last.IsZero() || last.After(newest.AddDate(0, 0, 1)) {
		return newest
	}
	if oldest := newest.AddDate(0, 0, 1-reportsBack); last.Before(oldest) {
		return oldest
	}
	return last.AddDate(0, 0, 1)
}

// sendReport hands one day's report over. A crash behind that, before the day is
// noted, has it handed over again, which the queue knows. The caller has mailing's
// lock.
func (d *Daemon) sendReport(day, now time.Time) error {
	file := filepath.Join(d.Paths.Reports, day.Format(time.DateOnly)+".json")
	b, err := readRegular(file, maxReport, privateFile(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there was nothing yet
	}
	if err != nil {
		return err
	}
	var r health.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	d.alerts.tellReport(&r, now)
	d.mailing.last = day
	return replaceFile(d.Paths.sentFile(), []byte(day.Format(time.DateOnly)+"\n"))
}

// tellReport sends a day's report like an alert: it waits in the same file, and a
// channel that does not take it fails like any other.
func (a *alerts) tellReport(r *health.Report, now time.Time) {
	a.queue.Put(notify.Alert{Key: conditionReport + "|" + r.Date, To: a.d.config().Alerts.Report.To, Message: a.reportMessage(r, now)}, now)
}

// reportMessage is a report as people are sent it: of everything together, and where
// the whole is.
func (a *alerts) reportMessage(r *health.Report, now time.Time) notify.Message {
	whole := "All of it: `holdfast report daily --date " + r.Date + "`, or reports/" + r.Date + ".md in the state directory."
	text := r.Short(func(s string) string { return a.d.maskText(notify.Line(s, notify.MaxTitle)) })
	const dots = len("...\n")
	return notify.Message{ID: notify.NewID(), At: now.UTC(), Runtime: a.d.runtime, Severity: watch.Low.String(), Condition: conditionReport,
		Title: "daily report of " + r.Date + ": " + r.Health.String(), Text: notify.Lines(text, notify.MaxText-len(whole)-dots) + "\n" + whole}
}
