package report

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

const (
	// Condition is what a daily report is called among the alerts.
	Condition = notify.ReportCondition
	// reportPatience is how long beyond its time a report waits for a ledger that cannot
	// be read, before people are sent that it cannot.
	reportPatience = time.Hour
)

// mailing is how far the daily reports were handed to what tells people.
type mailing struct {
	mu    sync.Mutex
	last  time.Time           // guarded by mu; the newest day that had a report to send, zero where none is known
	owed  map[time.Time]owing // guarded by mu; the days up to it whose report is to be sent yet
	saved string              // guarded by mu; what stands in the file of all this
}

// owing is what of a day's report people are still to be sent.
type owing bool

const (
	owedAll  owing = false
	owedAnew owing = true // they were sent that the ledger could not be read
)

// sentFile has the newest day that had a report to send in its first line. Each other line
// is a day before that is owed still, with "anew" behind it where that is so.
func (d *Reports) sentFile() string { return filepath.Join(d.Dir, "sent") }

// SendDue hands the reports of days that are over to the channels that are
// configured for them, each once: yesterday's from its time on, and before it those
// that were missed since the last one. One that cannot be read yet is named, keeps no
// other from being sent, and follows. All that was written is there by then.
func (d *Reports) SendDue(now time.Time) error {
	to, at, err := d.Target()
	if err != nil || len(to) == 0 {
		return err
	}
	newest := health.NewDay(health.LastDue(now, at).AddDate(0, 0, -1)).Start()
	m := &d.mailing
	m.mu.Lock()
	defer m.mu.Unlock()
	first := d.firstToSend(newest)
	for day := first; !day.After(newest); day = day.AddDate(0, 0, 1) {
		m.owed[day] = owedAll
	}
	bad := map[string]string{}
	var all []error
	for _, day := range slices.SortedFunc(maps.Keys(m.owed), time.Time.Compare) {
		if day.Before(oldestSent(newest)) {
			delete(m.owed, day)
			continue
		}
		there, err := d.sendReport(to, day, now, day.AddDate(0, 0, 1).Add(at))
		if there && !day.Before(first) {
			m.last = day
		}
		if err != nil {
			bad[day.Format(time.DateOnly)] = d.oneProblem(err)
			all = append(all, err)
		}
	}
	d.mu.Lock()
	d.unsent = bad
	d.mu.Unlock()
	return errors.Join(append(all, d.saveSent())...)
}

// oldestSent is the first day whose report is sent still.
func oldestSent(newest time.Time) time.Time { return newest.AddDate(0, 0, 1-reportsBack) }

// firstToSend is the day behind the last that had a report to send. Where none is known, or one
// that is yet to come, since the clock was set back, it is the newest: who has just
// asked for reports wants none of last week. The caller has mailing's lock.
func (d *Reports) firstToSend(newest time.Time) time.Time {
	m := &d.mailing
	if m.owed == nil {
		m.owed = map[time.Time]owing{}
		if err := d.loadSent(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.Log.Warn("which daily report was sent last cannot be read; the newest is sent", "err", err)
		}
	}
	if m.last.IsZero() || m.last.After(newest.AddDate(0, 0, 1)) {
		return newest
	}
	if oldest := oldestSent(newest); m.last.Before(oldest) {
		return oldest
	}
	return m.last.AddDate(0, 0, 1)
}

// sendReport hands one day's report over, which was due at that time, and says whether
// there is one, or should be. A crash behind that, before the day is noted, has it
// handed over again, which the queue knows. The caller has mailing's lock.
func (d *Reports) sendReport(to []string, day, now, at time.Time) (there bool, err error) {
	m := &d.mailing
	r, err := d.Read(day)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !d.failed(day):
		delete(m.owed, day)
		return false, nil // there was nothing yet
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return true, err
	case r.Unread && (m.owed[day] == owedAnew || now.Before(at.Add(reportPatience))):
		return true, nil // it is computed anew
	}
	d.tellReport(r, to, m.owed[day], now)
	if r.Unread {
		m.owed[day] = owedAnew
	} else {
		delete(m.owed, day)
	}
	return true, nil
}

// loadSent reads what saveSent wrote. The caller has mailing's lock.
func (d *Reports) loadSent() error {
	b, err := guard.ReadRegular(d.sentFile(), 1<<10, guard.CheckPrivate(d.sentFile()))
	if err != nil {
		return err
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	last, err := time.Parse(time.DateOnly, first)
	if err != nil {
		return err
	}
	owed := map[time.Time]owing{}
	for line := range strings.Lines(rest) {
		date, anew := strings.CutSuffix(strings.TrimSpace(line), " anew")
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			return err
		}
		owed[day] = owing(anew)
	}
	d.mailing.last, d.mailing.owed, d.mailing.saved = last, owed, string(b)
	return nil
}

// saveSent writes how far it is, where that is not what stands there. The caller has
// mailing's lock.
func (d *Reports) saveSent() error {
	m := &d.mailing
	text := m.last.Format(time.DateOnly) + "\n"
	for _, day := range slices.SortedFunc(maps.Keys(m.owed), time.Time.Compare) {
		text += day.Format(time.DateOnly)
		if m.owed[day] == owedAnew {
			text += " anew"
		}
		text += "\n"
	}
	if text == m.saved || m.last.IsZero() {
		return nil
	}
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return err
	}
	if err := durable.ReplaceFile(d.sentFile(), []byte(text), 0o600); err != nil {
		return err
	}
	m.saved = text
	return nil
}

// tellReport sends a day's report like an alert: it waits in the same file, and a
// channel that does not take it fails like any other.
func (d *Reports) tellReport(r *health.Report, to []string, was owing, now time.Time) {
	al := notify.Item{Key: Condition + "|" + r.Date, Subject: Condition, To: to,
		Message: d.reportMessage(r, now)}
	if was == owedAnew {
		al.Key += "|anew"
		al.Message.Title = "daily report of " + r.Date + ", which can be read now: " + r.Health.String()
	}
	d.Send(al, now)
}

// reportMessage is a report as people are sent it: of everything together, and where
// the whole is.
func (d *Reports) reportMessage(r *health.Report, now time.Time) notify.Message {
	whole := "All of it: `holdfast report daily --date " + r.Date + "`, or reports/" + r.Date + ".md in the state directory."
	text := r.Short(func(s string) string { return d.Mask(notify.Line(s, notify.MaxTitle)) })
	const dots = len("...\n")
	return notify.Message{ID: notify.NewID(),
		At: now.UTC(), Runtime: d.Runtime, Severity: watch.Low.String(), Condition: Condition,
		Title: "daily report of " + r.Date + ": " + r.Health.String(), Text: notify.Lines(text, notify.MaxText-len(whole)-dots) + "\n" + whole}
}
