package daemon

import (
	"encoding/json"
	"errors"
	"io"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

// letterbox is a mail server that keeps what it takes.
type letterbox struct {
	address string

	mu  sync.Mutex
	all []string // guarded by mu
}

func newLetterbox(t *testing.T) *letterbox {
	t.Helper()
	b := &letterbox{}
	s := smtp.NewServer(b)
	s.Domain = "localhost"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = "smtp://" + l.Addr().String() + "/?from=holdfast@example.com&to=ann@example.com"
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return b
}

func (b *letterbox) NewSession(*smtp.Conn) (smtp.Session, error) { return b, nil }
func (b *letterbox) Reset()                                      {}
func (b *letterbox) Logout() error                               { return nil }
func (b *letterbox) Mail(string, *smtp.MailOptions) error        { return nil }
func (b *letterbox) Rcpt(string, *smtp.RcptOptions) error        { return nil }

func (b *letterbox) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, string(text))
	return err
}

// wait is the first letter's subject and text, once it is there.
func (b *letterbox) wait(t *testing.T) (subject, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		b.mu.Lock()
		all := slices.Clone(b.all)
		b.mu.Unlock()
		if len(all) == 0 && time.Now().Before(end) {
			continue
		}
		if len(all) != 1 {
			t.Fatalf("%d letters", len(all))
		}
		m, err := mail.ReadMessage(strings.NewReader(all[0]))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		if err != nil {
			t.Fatal(err)
		}
		return m.Header.Get("Subject"), strings.ReplaceAll(string(body), "\r\n", "\n")
	}
}

// mailed starts a daemon that did something today and is to send its reports, with a
// chat and a mail server.
func mailed(t *testing.T, p *phones, report string) (d *Daemon, today time.Time, down func()) {
	t.Helper()
	d, c, down := alerted(t, p, report+"boundaries: [{boundary: agent/step, risk: LOW}]\n")
	today = health.NewDay(time.Now()).Start()
	if _, err := c.Cross(t.Context(), api.Ask{Boundary: "agent/step", Agent: "bob", Payload: []byte(`{"action":"x"}`)}); err != nil {
		t.Fatal(err)
	}
	return d, today, down
}

// lookAtReports does what a daemon does each minute, at another time.
func lookAtReports(t *testing.T, d *Daemon, now time.Time) {
	t.Helper()
	if err := d.reports.Write(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := d.reports.SendDue(now); err != nil {
		t.Fatal(err)
	}
}

// The report of a day that is over is sent from its time on, once, by mail and to a
// chat: the health first, and where the whole is. What was missed follows, and what
// was before anybody asked for it does not.
func Test001_Report_IsSent(t *testing.T) {
	box, p := newLetterbox(t), newPhones(t)
	t.Setenv("HOLDFAST_TEST_BOX", box.address)
	d, today, down := mailed(t, p, "    box: {kind: mail, env: HOLDFAST_TEST_BOX}\n  report: {to: [box, chat], daily_at: '07:00'}\n")
	defer down()
	at := today.AddDate(0, 0, 1).Add(7 * time.Hour)
	lookAtReports(t, d, at.Add(-time.Minute))
	if n := d.alerts.Waiting(); n != 0 || len(p.took("/chat")) != 0 {
		t.Errorf("%d wait before their time", n)
	}
	lookAtReports(t, d, at)
	lookAtReports(t, d, at.Add(time.Minute))
	subject, text := box.wait(t)
	date := today.Format(time.DateOnly)
	if !strings.HasPrefix(subject, "[holdfast] daily report of "+date+": ") {
		t.Errorf("the subject is %q", subject)
	}
	health := strings.TrimPrefix(subject, "[holdfast] daily report of "+date+": ")
	for _, want := range []string{"### Overall Health: " + health + "\n", "### Layer 1: Cooldowns & Limits\n- Total iterations today: ", "- Severity breakdown: CRITICAL(",
		"holdfast report daily --date " + date, "reports/" + date + ".md in the state directory"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	lookAtReports(t, d, at.AddDate(0, 0, 3))
	lookAtReports(t, d, at.AddDate(0, 0, 2)) // a clock that is set back
	var got []string
	for _, m := range p.wait(t, "/chat", 4) {
		if m.Condition != "daily_report" || m.Severity != "LOW" || m.Runtime != d.Runtime() {
			t.Errorf("%+v", m)
		}
		got = append(got, strings.Fields(m.Title)[3])
	}
	var want []string
	for i := range 4 {
		want = append(want, today.AddDate(0, 0, i).Format(time.DateOnly)+":")
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent were %q, not %q", got, want)
	}
	for _, sent := range recorded(t, d, "alert_sent", 5) {
		if sent["condition"] != "daily_report" {
			t.Errorf("%v", sent)
		}
	}
}

// A report that no channel takes is the alarm of its channel, and outlasts the
// daemon, also one that ended before it could note that it was handed over.
func Test001_Report_OutlastsTheDaemon(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	p.set("/chat", 500)
	d, today, down := mailed(t, p, "  report: {to: [chat]}\n")
	opt := d.opt
	tomorrow := today.AddDate(0, 0, 1)
	lookAtReports(t, d, tomorrow)
	if failed := recorded(t, d, "alert_failed", 1)[0]; failed["condition"] != "daily_report" || failed["subject"] != "chat" {
		t.Errorf("%v", failed)
	}
	d.alerts.CheckChannels(time.Now().Add(2 * time.Minute))
	if got := p.wait(t, "/mail", 1)[0]; got.Condition != "alert_channel_failed" || !strings.Contains(got.Text, "through the channel chat fail since") {
		t.Errorf("%+v", got)
	}
	down()
	if err := os.Remove(filepath.Join(d.Paths.Reports, "sent")); err != nil {
		t.Fatal(err)
	}
	p.set("/chat", 0)
	d, _, down = serve(t, opt)
	defer down()
	lookAtReports(t, d, tomorrow.Add(time.Minute))
	if got := p.wait(t, "/chat", 1)[0]; got.Condition != "daily_report" || !strings.HasPrefix(got.Title, "daily report of "+today.Format(time.DateOnly)) {
		t.Errorf("%+v", got)
	}
	for end := time.Now().Add(time.Minute); d.alerts.Waiting() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("something waits still")
		}
	}
	if got := p.took("/chat"); len(got) != 1 {
		t.Errorf("told twice: %+v", got)
	}
}

// However long a report is and whatever stands in it, what is sent holds no secret,
// is cut, and says where the whole is. One whose channel is configured no more goes
// where reports go now.
func Test001_Report_IsBounded(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	d, _, down := alerted(t, p, "  report: {to: [chat]}\n")
	defer down()
	day := health.NewDay(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	r := day.Report(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC))
	r.Because = []string{"card 4111 1111 1111 1111\r\nBcc: x", "\x1b[2J" + phoneSecret, strings.Repeat("x ", 1<<20), "the fourth"}
	for range 20 {
		r.Patterns = append(r.Patterns, health.Pattern{Condition: strings.Repeat("pattern", 1000), Times: 2})
	}
	r.Snapshots = strings.Repeat("y ", 1<<20)
	b, err := json.Marshal(&r)
	err = errors.Join(err, os.MkdirAll(d.Paths.Reports, 0o700),
		os.WriteFile(filepath.Join(d.Paths.Reports, r.Date+".json"), b, 0o600))
	if err == nil {
		err = d.reports.SendDue(time.Date(2026, 3, 2, 0, 0, 1, 0, time.UTC))
	}
	if err != nil {
		t.Fatal(err)
	}
	m := p.wait(t, "/chat", 1)[0]
	for _, bad := range []string{"4111", phoneSecret, "\x1b", "\nBcc", "the fourth"} {
		if strings.Contains(m.Text, bad) {
			t.Errorf("%q in %q", bad, m.Text)
		}
	}
	if len(m.Text) > notify.MaxText || !strings.Contains(m.Text, "- and 1 more\n") || !strings.HasSuffix(m.Text, "or reports/2026-03-01.md in the state directory.") {
		t.Errorf("%d bytes: %s", len(m.Text), m.Text)
	}
	for _, c := range d.alerts.ListChannels() {
		if slices.Contains(c.For, report.Condition) != (c.Channel == "chat") {
			t.Errorf("%+v", c)
		}
	}
}
