package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
)

// past is a store with leaves of days that are over.
type past struct {
	*testing.T
	s       *sqlite.Store
	engine  *redact.Engine
	waiting []ledger.Leaf
}

func newPast(t *testing.T) *past {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "holdfast.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	e, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &past{T: t, s: s, engine: e}
}

func (p *past) append(kind ledger.Kind, tenant, crossing string, at time.Time, r interface {
	AppendJSON([]byte) ([]byte, error)
}) {
	p.Helper()
	b, err := r.AppendJSON(nil)
	if err != nil {
		p.Fatal(err)
	}
	sealed, err := p.engine.Seal(b, ledger.Exempt()...)
	if err != nil {
		p.Fatal(err)
	}
	p.waiting = append(p.waiting, ledger.Leaf{Tenant: tenant, Kind: kind, Crossing: crossing, At: at, Record: sealed})
}

// write makes what was appended durable.
func (p *past) write() {
	p.Helper()
	if err := p.s.Update(p.Context(), func(tx kernel.Tx) error {
		for _, l := range p.waiting {
			if _, err := tx.Append(l); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		p.Fatal(err)
	}
	p.waiting = nil
}

func (p *past) id() string { return uuid.Must(uuid.NewV7()).String() }

// step writes the entry of a step that began.
func (p *past) step(tenant string, at time.Time) {
	p.Helper()
	begin, id := int64(0), p.id()
	p.append(ledger.KindEntry, tenant, id, at, &ledger.Entry{ID: id, TenantID: tenant, BeginSeq: &begin, Correlation: id, Timestamp: at, CreatedAt: at, Boundary: "agent/step",
		Caller: "a", Agent: "a", State: holdfast.Idle, Outcome: ledger.Done})
}

// event writes an event.
func (p *past) event(at time.Time, name, who, subject string, data map[string]any) {
	p.Helper()
	b, err := json.Marshal(data)
	if err != nil {
		p.Fatal(err)
	}
	e := &ledger.Event{ID: p.id(), TenantID: holdfast.Local, Timestamp: at, Name: name, Who: who, Subject: subject}
	if data != nil {
		e.Data = b
	}
	p.append(ledger.KindEvent, holdfast.Local, "", at, e)
}

func (p *past) read(day, now time.Time) health.Report {
	p.Helper()
	p.write()
	r, err := report.ReadDay(p.Context(), p.s, day, now)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// Test001_Report_PastDays: any past day is read from the ledger alone, with what it
// began with, however long ago that was said, and whenever it is asked for.
func Test001_Report_PastDays(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	day := func(n int, hours float64) time.Time {
		return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC).Add(time.Duration(hours * float64(time.Hour)))
	}
	p.event(day(1, 8), "started", "ann", "policy", map[string]any{"halted": false, "settings": health.Settings{Budgets: map[string]int64{"": 50_000_000}, Watched: true}})
	for i := range 2*2000 + 10 { // so that the words stand several readings before
		p.event(day(1, 9).Add(time.Duration(i)*time.Second), "note", "ann", "x", nil)
	}
	p.event(day(2, 1), "review_proposed", "a", "rv_early", nil)
	p.step(holdfast.Local, day(4, 0).Add(-time.Microsecond))
	p.event(day(4, 0), "review_proposed", "a", "rv_late", nil)
	p.step(holdfast.Local, day(4, 0))
	p.step("acme", day(4, 5))
	p.event(day(4, 6), "halted", "ann", "everything", map[string]any{"why": "x", "cut": 0})
	p.step(holdfast.Local, day(5, 0).Add(-time.Microsecond))
	p.step(holdfast.Local, day(5, 0))
	p.event(day(6, 7), "resumed", "ann", "everything", map[string]any{"signature": "s"})
	p.event(day(7, 7), "anomaly_found", "holdfast (watch)", "a", map[string]any{"condition": "loop", "severity": "HIGH", "times": 2})

	now := day(20, 0)
	for _, c := range []struct {
		day           int
		health        health.Level
		steps, stops  int64
		acts, waiting int64
		because       string
	}{
		{1, health.Green, 0, 0, 0, 0, ""},
		{2, health.Green, 0, 0, 0, 1, ""},
		{3, health.Green, 1, 0, 0, 1, ""}, // rv_early ends on it; nobody recorded its end yet
		{4, health.Red, 3, 1, 0, 1, "everything is halted"},
		{5, health.Red, 1, 0, 0, 1, "everything is halted"},
		{6, health.Red, 0, 0, 1, 0, "everything was halted"},
		{7, health.Yellow, 0, 0, 0, 0, "HIGH anomalies: 2"},
		{8, health.Green, 0, 0, 0, 0, ""},
	} {
		first := p.read(day(c.day, 13), now)
		if again := p.read(day(c.day, 23), now); !reflect.DeepEqual(first, again) {
			t.Errorf("day %d: %+v, then %+v", c.day, first, again)
		}
		if first.Health != c.health || first.Iterations.N != c.steps || first.Stops.N != c.stops || first.Interventions.N != c.acts || !strings.Contains(strings.Join(first.Because, ";"), c.because) {
			t.Errorf("day %d: %s, %+v", c.day, first.Health, first.Section)
		}
		if first.Waiting.N != c.waiting {
			t.Errorf("day %d: %d wait", c.day, first.Waiting.N)
		}
		if first.Remaining.State != health.Is || !first.Over {
			t.Errorf("day %d: %+v", c.day, first)
		}
	}
	if own, ok := p.read(day(4, 0), now).Of("acme"); !ok || own.Iterations.N != 1 {
		t.Errorf("%v %+v", ok, own)
	}
}

// Test001_Report_BadInput: a day that has not begun, one before the first record, a
// clock that was set back, and a ledger that cannot be read, each by name.
func Test001_Report_BadInput(t *testing.T) {
	p := newPast(t)
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	if r := p.read(now, now); r.Health != health.Yellow || r.Iterations.State != health.Unknown {
		t.Errorf("of an empty ledger: %s %+v", r.Health, r.Section)
	}
	p.step(holdfast.Local, now)
	if _, err := report.ReadDay(t.Context(), p.s, now.AddDate(0, 0, 1),
		now); holdfast.KindOf(err) != holdfast.KindUsage || !strings.Contains(err.Error(), "2026-03-11 has not begun") {
		t.Errorf("tomorrow: %v", err)
	}
	if r := p.read(now.AddDate(0, 0, -1), now); r.Health != health.Yellow || r.Iterations.State != health.Unknown || !strings.Contains(r.Because[0], "the ledger begins on 2026-03-10") {
		t.Errorf("before the first record: %s %q", r.Health, r.Because)
	}
	back := now.AddDate(0, 0, -3)
	if r := p.read(back, back); r.Health != health.Yellow || !slices.ContainsFunc(r.Because, func(s string) bool { return strings.Contains(s, "ahead of the clock") }) {
		t.Errorf("a clock that was set back: %s %q", r.Health, r.Because)
	}
	id := p.id()
	p.append(ledger.KindEntry, holdfast.Local, id, now.Add(time.Minute), garbled(id))
	r := p.read(now, now.Add(time.Hour))
	if r.Health != health.Red || !r.Unread || r.Iterations.State != health.Unknown || !strings.Contains(r.Because[0], "tenant local: leaf 1: ") {
		t.Errorf("a leaf that cannot be read: %s %q", r.Health, r.Because)
	}
	if err := p.s.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := report.ReadDay(t.Context(), p.s, now, now); err != nil || r.Health != health.Red || !r.Unread {
		t.Errorf("a store that is gone: %v %s %q", err, r.Health, r.Because)
	}
}

// garbled is an entry with nothing of one but its front.
type garbled string

func (g garbled) AppendJSON(b []byte) ([]byte, error) {
	return fmt.Appendf(b, `{"v":1,"kind":"entry","id":%q,"tenant_id":"local","begin_seq":null,"operation_result_hash":null,"odd":1}`, string(g)), nil
}

const reportedConfig = `version: 1
listen: {pages: "127.0.0.1:0"}
boundaries:
  - {boundary: agent/step, risk: LOW, permissions: ["agent:step"], consumes: {iterations: 1}}
prices:
  calls: [{boundary: agent/step, money: $1.5}]
budgets:
  - {scope: tenant, resource: money_micro, amount: 6000000, window: 24h}
agents:
  kinds: {code: {iterations: 100}}
`

// Test001_Report_OfARealLedger: what a daemon really did, from its own ledger.
func Test001_Report_OfARealLedger(t *testing.T) {
	d, c, down := up(t, reportedConfig)
	step := func() {
		t.Helper()
		if _, err := c.Cross(t.Context(), api.Ask{Agent: "ann", Kind: "code", Boundary: "agent/step", Payload: []byte(`{"action":"go"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		step()
	}
	if _, err := d.Kernel.Pause(holdfast.Local, "ann", "bob", "look first"); err != nil {
		t.Fatal(err)
	}
	read := func() health.Report {
		t.Helper()
		r, err := report.ReadDay(t.Context(), d.store, time.Now(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := read()
	var text strings.Builder
	if err := r.Markdown(&text, strings.TrimSpace); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Total iterations today: 3", "API cost today: $4.50", "Budget remaining: $1.50 (25%)", "Actions auto-executed: 3", "Actions escalated: 0",
		"Average confidence: none was asked for", "Emergency stops: 0", "Manual interventions: 1", "Decision queue items: 0"} {
		if !strings.Contains(text.String(), "- "+want+"\n") {
			t.Errorf("no line %q in\n%s", want, text.String())
		}
	}
	if _, err := d.Kernel.Halt("bob", "enough"); err != nil {
		t.Fatal(err)
	}
	if r := read(); r.Health != health.Red || r.Stops.N != 1 || r.Because[0] != "everything is halted" {
		t.Errorf("halted: %s %q", r.Health, r.Because)
	}
	down()
}

// Test001_Report_WrittenDaily: a daemon writes the report of each day that is over,
// also of those that it missed, once; the ledger has its hash, and it is what the
// command prints of that day.
func Test001_Report_WrittenDaily(t *testing.T) {
	d, c, down := up(t, reportedConfig)
	if _, err := c.Cross(t.Context(), api.Ask{Agent: "ann", Kind: "code", Boundary: "agent/step", Payload: []byte(`{"action":"go"}`)}); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	if err := d.reports.Write(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(d.Paths.Reports, "*")); err != nil || len(files) != 0 {
		t.Fatalf("of days before the first record: %q %v", files, err)
	}
	for range 2 { // the second time there is nothing to do
		if err := d.reports.Write(t.Context(), now.AddDate(0, 0, 2)); err != nil {
			t.Fatal(err)
		}
	}
	today := now.Format(time.DateOnly)
	text, err := os.ReadFile(filepath.Join(d.Paths.Reports, today+".md"))
	if err != nil || !strings.Contains(string(text), "- Total iterations today: 1\n") || strings.Contains(string(text), "So far") {
		t.Errorf("%v\n%s", err, text)
	}
	doc, err := os.ReadFile(filepath.Join(d.Paths.Reports, today+".json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(doc)
	told := map[string]string{}
	if err := d.store.View(t.Context(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			err = errors.Join(err, tx.Leaves(h.Tenant, 0, h.Size, func(l ledger.Stored) error {
				if l.Kind != ledger.KindEvent {
					return nil
				}
				e, err := ledger.ParseEvent(l.Record)
				if err == nil && e.Name == report.EventName {
					told[e.Subject] += string(e.Data)
				}
				return err
			}))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || strings.Count(told[today], hex.EncodeToString(sum[:])) != 1 || !strings.Contains(told[today], `"halted":false`) {
		t.Errorf("the ledger tells %q", told)
	}
	var kept health.Report
	if err := json.Unmarshal(doc, &kept); err != nil {
		t.Fatal(err)
	}
	asked, err := report.ReadDay(t.Context(), d.store, now, now.AddDate(0, 0, 2))
	if err != nil || !reflect.DeepEqual(kept.Section, asked.Section) || !kept.At.Equal(asked.At) {
		t.Errorf("%v: kept %+v, asked %+v", err, kept, asked)
	}
	info, err := os.Stat(filepath.Join(d.Paths.Reports, today+".json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	down()
}

// Test001_Report_OfAClockThatWasAhead: what was written of a day before it was, for the
// clock was ahead, is not what that day's report is.
func Test001_Report_OfAClockThatWasAhead(t *testing.T) {
	d, c, down := up(t, reportedConfig)
	defer down()
	now := time.Now().UTC()
	if err := d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Name: "note", Who: "ann", Subject: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := d.reports.Write(t.Context(), now.AddDate(0, 0, 2)); err != nil { // it is ahead
		t.Fatal(err)
	}
	file := filepath.Join(d.Paths.Reports, now.Format(time.DateOnly)+".json")
	if err := os.Chtimes(file, now, now.AddDate(0, 0, 2)); err != nil { // as a system does whose clock is
		t.Fatal(err)
	}
	if _, err := c.Cross(t.Context(), api.Ask{Agent: "ann", Kind: "code", Boundary: "agent/step", Payload: []byte(`{"action":"go"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := d.reports.Write(t.Context(), now.AddDate(0, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if kept, err := d.reports.Read(now); err != nil || kept.Iterations.N != 1 {
		t.Errorf("%+v, %v", kept, err)
	}
}

// Test001_Dashboard_OfADaemon: the page of a daemon's health follows what happens.
func Test001_Dashboard_OfADaemon(t *testing.T) {
	t.Parallel()
	d, c, down := up(t, reportedConfig)
	defer down()
	b := signIn(t, d)
	if page := b("/health"); !strings.Contains(page, "Total iterations today</dt><dd>0</dd>") {
		t.Error(page)
	}
	if _, err := c.Cross(t.Context(), api.Ask{Agent: "ann", Kind: "code", Boundary: "agent/step", Payload: []byte(`{"action":"go"}`)}); err != nil {
		t.Fatal(err)
	}
	if page := b("/health"); !strings.Contains(page, "Total iterations today</dt><dd>1</dd>") || !strings.Contains(page, "$4.50 (75%)") {
		t.Error(page)
	}
	if _, err := d.Kernel.Halt("bob", "enough"); err != nil {
		t.Fatal(err)
	}
	if page := b("/health"); !strings.Contains(page, "everything is halted") || !strings.Contains(page, ">RED<") {
		t.Error(page)
	}
}

// signIn signs a browser in, and returns how it gets a page.
func signIn(t *testing.T, d *Daemon) func(path string) string {
	t.Helper()
	link, err := d.PageLink("")
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(link, "/in/")
	hc := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := hc.Post(link, "application/x-www-form-urlencoded", nil)
	if err != nil || len(r.Cookies()) != 1 {
		t.Fatal(err, r.Status)
	}
	r.Body.Close()
	cookie := r.Cookies()[0]
	return func(path string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(cookie)
		r, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(err, r.Status, string(b))
		}
		return string(b)
	}
}

// stepAs takes so many steps as an agent; what becomes of each does not matter.
func stepAs(t *testing.T, c *api.Client, agent string, n int) {
	t.Helper()
	for i := range n {
		if _, err := c.Cross(t.Context(), api.Ask{Agent: agent, Kind: "code", Boundary: "agent/step", Payload: fmt.Appendf(nil, `{"action":"go %d"}`, i)}); err != nil {
			t.Fatal(err)
		}
	}
}
