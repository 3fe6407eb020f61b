package daemon

import (
	"database/sql"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

// Times of internal/observe/report: how long after the ledger could not be read it is read again, and how long a
// report waits for it before it is sent as it is.
const (
	reportAgain    = 10 * time.Minute
	reportPatience = time.Hour
)

// damage makes a leaf of today unreadable, as a failing disk does, and returns what
// puts it right.
func damage(t *testing.T, d *Daemon) (mend func()) {
	t.Helper()
	var id int64
	var hash []byte
	pastTriggers(t, d.Paths.DB, func(t *testing.T, db *sql.DB) {
		if err := db.QueryRow("SELECT id, hash FROM leaf WHERE kind = 2 AND tenant = (SELECT id FROM tenant WHERE name = ?) ORDER BY id LIMIT 1", holdfast.Local).Scan(&id, &hash); err != nil {
			t.Fatal(err)
		}
	})
	put := func(hash []byte) {
		t.Helper()
		pastTriggers(t, d.Paths.DB, func(t *testing.T, db *sql.DB) { run(t, db, "UPDATE leaf SET hash = ? WHERE id = ?", hash, id) })
		// Who reads sees the file as it was at the last commit.
		if err := d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Name: "note", Who: "ann", Subject: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	put([]byte{0})
	return func() { t.Helper(); put(hash) }
}

// problems are those of status that say what.
func problems(t *testing.T, d *Daemon, what ...string) (n int) {
	t.Helper()
	s, err := d.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Problems {
		if !slices.ContainsFunc(what, func(w string) bool { return !strings.Contains(p, w) }) {
			n++
		}
	}
	return n
}

// sentOf are the reports that a channel was sent, by their days and what is said of
// each.
func sentOf(p *phones) (out []string) {
	for _, m := range p.took("/chat") {
		if m.Condition == report.Condition {
			out = append(out, strings.TrimPrefix(m.Title, "daily report of "))
		}
	}
	return out
}

// Test001_Report_ComputedAnew: the report of a day that could not be read is RED, named
// in status, and not the last word: once the ledger can be read it is what the command
// prints of that day.
func Test001_Report_ComputedAnew(t *testing.T) {
	d, c, down := up(t, reportedConfig)
	defer down()
	stepAs(t, c, "ann", 3)
	mend := damage(t, d)
	today := health.NewDay(time.Now()).Start()
	date, now := today.Format(time.DateOnly), today.AddDate(0, 0, 1).Add(time.Second)
	if err := d.reports.Write(t.Context(), now); err == nil || !strings.Contains(err.Error(), date) {
		t.Errorf("nobody is told: %v", err)
	}
	kept, err := d.reports.Read(today)
	if err != nil || !kept.Unread || kept.Health != health.Red || !strings.Contains(kept.Because[0], "a hash of 1 bytes") {
		t.Fatalf("%v %+v", err, kept)
	}
	if problems(t, d, "the daily report of "+date, "a hash of 1 bytes", "`holdfast ledger verify`") != 1 {
		t.Error("status does not name it")
	}
	mend()
	if err := d.reports.Write(t.Context(), now.Add(reportAgain-time.Second)); err == nil {
		t.Error("it is forgotten before it was read")
	}
	if err := d.reports.Write(t.Context(), now.Add(reportAgain)); err != nil {
		t.Fatal(err)
	}
	asked, err := report.ReadDay(t.Context(), d.store, today, now.AddDate(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if kept, err = d.reports.Read(today); err != nil || kept.Unread || kept.Iterations.N != 3 ||
		!reflect.DeepEqual(kept.Section, asked.Section) {
		t.Errorf("%v: kept %+v, asked %+v", err, kept, asked)
	}
	text, err := os.ReadFile(filepath.Join(d.Paths.Reports, date+".md"))
	if err != nil || !strings.Contains(string(text), "- Total iterations today: 3\n") {
		t.Errorf("%v %s", err, text)
	}
	if said := recorded(t, d, report.EventName,
		2); said[0]["health"] != "RED" || said[1]["health"] != kept.Health.String() {
		t.Errorf("the ledger tells %v", said)
	}
	if problems(t, d, "daily report") != 0 {
		t.Error("status still names it")
	}
}

// Test001_Report_UnreadIsSentLate: people are not sent that a ledger cannot be read
// while it may be a moment's; after an hour they are, and then what the day was.
func Test001_Report_UnreadIsSentLate(t *testing.T) {
	p := newPhones(t)
	d, today, down := mailed(t, p, "  report: {to: [chat], daily_at: '07:00'}\n")
	defer down()
	date, at := today.Format(time.DateOnly), today.AddDate(0, 0, 1).Add(7*time.Hour)
	mend := damage(t, d)
	look := func(now time.Time) {
		_ = d.reports.Write(t.Context(), now) // the test before has what it says
		if err := d.reports.SendDue(now); err != nil {
			t.Error(err)
		}
	}
	for _, now := range []time.Time{at, at.Add(reportPatience - time.Second)} {
		if look(now); d.alerts.Waiting() > 0 || len(sentOf(p)) > 0 {
			t.Errorf("sent at %s: %q", now, sentOf(p))
		}
	}
	look(at.Add(reportPatience))
	look(at.Add(reportPatience + time.Minute))
	p.wait(t, "/chat", 1)
	mend()
	look(at.Add(2 * reportPatience))
	look(at.Add(3 * reportPatience))
	p.wait(t, "/chat", 2)
	until(t, "the end of what waits", func() bool { return d.alerts.Waiting() == 0 })
	kept, err := d.reports.Read(today)
	if err != nil {
		t.Fatal(err)
	}
	if got := sentOf(p); !slices.Equal(got, []string{date + ": RED", date + ", which can be read now: " + kept.Health.String()}) {
		t.Errorf("sent were %q", got)
	}
}

// Test001_Report_OneThatCannotBeRead keeps no other from being sent: it is named in
// status, with what to do, and follows when it can be read, also after a restart.
func Test001_Report_OneThatCannotBeRead(t *testing.T) {
	p := newPhones(t)
	d, today, down := mailed(t, p, "  report: {to: [chat]}\n")
	day := func(n int) time.Time { return today.AddDate(0, 0, n) }
	date := func(n int) string { return day(n).Format(time.DateOnly) }
	file := func(n int) string { return filepath.Join(d.Paths.Reports, date(n)+".json") }
	lookAtReports(t, d, day(1)) // today's is sent, so that each day is from now on
	if err := d.reports.Write(t.Context(), day(4)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file(1), 0o644); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file(2))
	if err != nil {
		t.Fatal(err)
	}
	forge(t, file(2))
	look := func(now time.Time) (err error) {
		if err = d.reports.Write(t.Context(), now); err == nil {
			t.Error("what cannot be read is not named")
		}
		return d.reports.SendDue(now)
	}
	for range 2 {
		if err := look(day(4)); err == nil || !strings.Contains(err.Error(), date(1)) || !strings.Contains(err.Error(), date(2)) {
			t.Errorf("%v", err)
		}
	}
	if problems(t, d, "the daily report of "+date(1)+" cannot be read", "chmod 600 "+file(1)) != 1 || problems(t, d, "the daily report of "+date(2)+" cannot be read", "move "+file(2)+" away") != 1 {
		t.Error("status does not name them")
	}
	p.wait(t, "/chat", 2)
	// What was received but not yet noted as sent would be sent again.
	until(t, "the end of what waits", func() bool { return d.alerts.Waiting() == 0 })
	opt := d.opt
	down()
	d, _, down = serve(t, opt)
	defer down()
	if err := look(day(4).Add(time.Minute)); err == nil {
		t.Error("what could not be read is forgotten")
	}
	if err := os.Chmod(file(1), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = look(day(4).Add(2 * time.Minute))
	p.wait(t, "/chat", 3)
	if err := os.Remove(file(2)); err != nil { // it is written anew from the ledger
		t.Fatal(err)
	}
	lookAtReports(t, d, day(4).Add(3*time.Minute))
	lookAtReports(t, d, day(4).Add(4*time.Minute))
	p.wait(t, "/chat", 4)
	until(t, "the end of what waits", func() bool { return d.alerts.Waiting() == 0 })
	var days []string
	for _, s := range sentOf(p) {
		d, _, _ := strings.Cut(s, ":")
		days = append(days, d)
	}
	if !slices.Equal(days, []string{date(0), date(3), date(1), date(2)}) {
		t.Errorf("sent were %q", days)
	}
	if again, err := os.ReadFile(file(2)); err != nil || string(again) != string(whole) {
		t.Errorf("%v: the same day has another report:\n%s\n%s", err, whole, again)
	}
	if problems(t, d, "daily report") != 0 {
		t.Error("status still names one")
	}
	if said, err := os.ReadFile(filepath.Join(d.Paths.Reports, "sent")); err != nil || string(said) != date(3)+"\n" {
		t.Errorf("%q %v", said, err)
	}
}
