package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/anomaly"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
)

// phones are channels' other side: one server, a path for each.
type phones struct {
	srv *httptest.Server

	mu     sync.Mutex
	answer map[string]int              // guarded by mu; by path, 200 if none
	got    map[string][]notify.Message // guarded by mu
	tries  map[string]int              // guarded by mu
}

func newPhones(t *testing.T) *phones {
	p := &phones{answer: map[string]int{}, got: map[string][]notify.Message{}, tries: map[string]int{}}
	p.srv = httptest.NewServer(p)
	t.Cleanup(p.srv.Close)
	return p
}

func (p *phones) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m notify.Message
	err := json.Unmarshal(body, &m)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries[r.URL.Path]++
	if code := p.answer[r.URL.Path]; code != 0 || err != nil {
		w.WriteHeader(max(code, 400))
		return
	}
	p.got[r.URL.Path] = append(p.got[r.URL.Path], m)
}

func (p *phones) set(path string, code int) { p.mu.Lock(); p.answer[path] = code; p.mu.Unlock() }

func (p *phones) took(path string) []notify.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got[path])
}

func (p *phones) tried(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries[path]
}

// wait is what came to a path, once there are n.
func (p *phones) wait(t *testing.T, path string, n int) []notify.Message {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if got := p.took(path); len(got) >= n {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages came to %s, not %d", len(p.took(path)), path, n)
		}
	}
}

const phoneSecret = "a-secret-of-the-phones"

// alerted starts a daemon whose channels sms, mail and chat are paths of p.
func alerted(t *testing.T, p *phones, more string) (*Daemon, *api.Client, func()) {
	t.Helper()
	return up(t, "", func(o *Options) {
		dir := filepath.Dir(o.State)
		text := "version: 1\nlisten: {pages: '127.0.0.1:0'}\nalerts:\n  channels:\n"
		for _, kind := range []string{"sms", "mail", "chat"} {
			if err := os.WriteFile(filepath.Join(dir, kind+".address"), []byte(p.srv.URL+"/"+kind+"?token="+phoneSecret+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			text += "    " + kind + ": {kind: " + kind + ", file: " + kind + ".address}\n"
		}
		o.Config = filepath.Join(dir, "holdfast.yaml")
		if err := os.WriteFile(o.Config, []byte(text+more), 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

// finding is one of an agent.
func finding(name watch.Name, s watch.Severity, agent string) watch.Finding {
	return watch.Finding{Condition: name, Severity: s, Response: s.Response(), Tenant: holdfast.Local, Agent: agent, At: time.Now(), Why: "what was found"}
}

// Each severity goes its document's way (respond_to_anomaly), is recorded without
// an address, and what is LOW is not told.
func Test001_Layer5_Response_bySeverity(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	d, _, down := alerted(t, p, "")
	defer down()
	d.alerts.TakeFinding(finding(watch.Outlier, watch.Low, "low"))
	d.alerts.TakeFinding(finding(watch.Rapid, watch.Medium, "medium"))
	d.alerts.TakeFinding(finding(watch.Loop, watch.High, "high"))
	d.alerts.TakeFinding(finding(watch.VerificationFailed, watch.Critical, ""))
	for path, want := range map[string]string{"/sms": "CRITICAL: verification failed", "/mail": "HIGH: loop, agent high", "/chat": "MEDIUM: rapid actions, agent medium"} {
		got := p.wait(t, path, 1)
		if got[0].Title != want || !strings.HasPrefix(got[0].Text, "what was found\n") || got[0].Runtime != d.Runtime() {
			t.Errorf("%s: %+v", path, got[0])
		}
	}
	d.alerts.TakeFinding(finding(watch.Loop, watch.High, "high"))
	over := finding(watch.Loop, watch.High, "high")
	over.Response, over.Cleared = watch.Record, true
	d.alerts.TakeFinding(over)
	d.alerts.TakeFinding(over)
	if got := p.wait(t, "/mail", 2); got[1].Title != "over: loop (HIGH), agent high" || !got[1].Cleared {
		t.Errorf("%+v", got[1])
	}
	sent := recorded(t, d, "alert_sent", 4)
	if text := fmt.Sprint(sent); strings.Contains(text, phoneSecret) || strings.Contains(text, "127.0.0.1") {
		t.Errorf("the record holds an address: %s", text)
	}
	if len(p.took("/sms")) != 1 || len(p.took("/mail")) != 2 || len(p.took("/chat")) != 1 {
		t.Errorf("%v %v %v", p.took("/sms"), p.took("/mail"), p.took("/chat"))
	}
}

// recorded are the events of that name, once there are n.
func recorded(t *testing.T, d *Daemon, name string, n int) (out []map[string]any) {
	t.Helper()
	for end := time.Now().Add(time.Minute); countEvents(t, d, name) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d events %s, not %d", countEvents(t, d, name), name, n)
		}
	}
	err := d.store.View(t.Context(), func(tx kernel.Tx) error {
		return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
			if l.Kind != ledger.KindEvent {
				return nil
			}
			e, err := ledger.ParseEvent(l.Record)
			if err != nil || e.Name != name {
				return err
			}
			data := map[string]any{"subject": e.Subject}
			out = append(out, data)
			return json.Unmarshal(e.Data, &data)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What people are told holds no secret, and no more than they can read.
func Test001_Layer5_Response_isRedacted(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	d, _, down := alerted(t, p, "")
	defer down()
	f := finding(watch.Loop, watch.High, "bob")
	f.Why = "card 4111 1111 1111 1111, mail ann@example.com, " + phoneSecret + "\r\nBcc: x \x1b[2J\u202E" + strings.Repeat("x", 1<<20)
	d.alerts.TakeFinding(f)
	m := p.wait(t, "/mail", 1)[0]
	for _, bad := range []string{"4111", "ann@example.com", phoneSecret, "\x1b", "\u202E", "\nBcc"} {
		if strings.Contains(m.Text, bad) {
			t.Errorf("%q in %q", bad, m.Text)
		}
	}
	if len(m.Text) > notify.MaxText+3 {
		t.Errorf("%d bytes", len(m.Text))
	}
	waiting, err := os.ReadFile(filepath.Join(d.Paths.Dir, "alerts.waiting"))
	if err != nil || strings.Contains(string(waiting), phoneSecret) || strings.Contains(string(waiting), "4111") {
		t.Errorf("%v: what waits holds a secret", err)
	}
}

// The notices that are alerts in the document's sense come the same way, once: a
// halt, what is prohibited, the day's budget, and a halt that a condition brought
// about.
func Test001_Layer5_Response_noticesAreAlerts(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	d, c, down := alerted(t, p, "boundaries:\n  - {boundary: agent/step, risk: PROHIBITED}\n")
	defer down()
	if a, err := c.Cross(t.Context(), api.Ask{Boundary: "agent/step", Agent: "bob", Payload: []byte(`{"action":"x"}`)}); err != nil || a.Failure == nil {
		t.Fatal(a, err)
	}
	if got := p.wait(t, "/mail", 1)[0]; got.Condition != "prohibited" || got.Agent != "bob" || got.Severity != "HIGH" {
		t.Errorf("%+v", got)
	}
	d.alerts.TakeFinding(finding(watch.Prohibited, watch.High, "bob")) // watch finds it as well
	d.notice(kernel.Notice{Level: "critical", Event: "tenant_blocked", Tenant: holdfast.Local, Agent: "bob", Why: "the budget is spent"})
	if got := p.wait(t, "/mail", 2)[1]; got.Condition != "day_budget_spent" || got.Agent != "" {
		t.Errorf("%+v", got)
	}
	broken := finding(watch.LedgerFailed, watch.Critical, "")
	broken.Why = "it cannot be written"
	token, _, err := d.mint(holdfast.Identity{Agent: anomaly.Agent, Kind: "watch", Principal: "holdfast"}, localTTL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := respond.FromKernel(d.Kernel).Respond(t.Context(), token, broken, 1); err != nil {
		t.Fatal(err)
	}
	d.alerts.TakeFinding(broken)
	if got := p.wait(t, "/sms", 1)[0]; got.Condition != "halted" || !strings.Contains(got.Text, "ledger_failed: it cannot be written") {
		t.Errorf("%+v", got)
	}
	over := finding(watch.LedgerFailed, watch.Critical, "")
	over.Cleared = true
	d.alerts.TakeFinding(over)
	if got := p.wait(t, "/sms", 2); got[1].Condition != "ledger_failed" || !got[1].Cleared || len(got) != 2 {
		t.Errorf("%+v", got)
	}
	if got := p.took("/mail"); len(got) != 2 {
		t.Errorf("told twice: %+v", got)
	}
}

// What ends by a person's word is told each time: else that it is over would be the last
// that people hear of what holds again.
func Test001_Layer5_Response_whatAPersonEndsIsToldAnew(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	d, _, down := alerted(t, p, "")
	defer down()
	for range 2 {
		for _, event := range []string{"goals_paused", "goals_resumed", "tenant_blocked", "tenant_unblocked"} {
			d.notice(kernel.Notice{Level: "error", Event: event, Tenant: holdfast.Local, Agent: "coder", Why: "x"})
		}
	}
	told := map[string]int{}
	for _, m := range p.wait(t, "/mail", 8) {
		told[fmt.Sprint(m.Condition, " ", m.Cleared)]++
	}
	for _, name := range []watch.Name{"goals_paused", "day_budget_spent"} {
		if told[string(name)+" false"] != 2 || told[string(name)+" true"] != 2 {
			t.Errorf("%v", told)
		}
	}
}

// What holds again of an agent that a person let go on is told each time: it is paused
// anew, and waits for a person.
func Test001_Layer5_Response_whoIsLetGoOnIsToldAnew(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	d, _, down := alerted(t, p, "")
	defer down()
	for range 2 {
		for _, c := range []watch.Name{watch.Loop, watch.Prohibited} {
			f := finding(c, watch.High, "coder")
			d.alerts.TakeFinding(f)
			f.Cleared, f.Response = true, watch.Record
			d.alerts.TakeFinding(f) // the hour goes on
			f.Forgiven = true
			d.alerts.TakeFinding(f)
		}
	}
	told := map[string]int{}
	for _, m := range p.wait(t, "/mail", 6) {
		told[fmt.Sprint(m.Condition, " ", m.Cleared)]++
	}
	if want := map[string]int{"loop false": 2, "loop true": 2, "prohibited false": 2}; !maps.Equal(told, want) {
		t.Errorf("%v", told)
	}
}

// A latch that somebody takes away is told each time, and so is the halt behind it: who
// heard of the first halt alone would take what goes on for halted, or what is halted for
// going on.
func Test001_Layer5_Response_eachRemovalOfTheLatchIsTold(t *testing.T) {
	p := newPhones(t)
	d, _, down := alerted(t, p, "")
	defer down()
	var want []string
	for range 2 {
		for _, event := range []string{"halted", "halt_latch_removed"} {
			d.notice(kernel.Notice{Level: "critical", Event: event, Why: "bob: enough"})
			want = append(want, event)
		}
	}
	var got []string
	for _, m := range p.wait(t, "/sms", 4) {
		got = append(got, m.Condition)
	}
	if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("told of %q", got)
	}
}

// What an act that failed leaves behind, which its agent can bring about, is told to
// people, as is a ledger that cannot be verified; and one halt hook that fails hides
// neither another one nor that it fails again at the next halt.
func Test001_Layer5_Response_whatFailedIsTold(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	d, _, down := alerted(t, p, "")
	defer down()
	for _, why := range []string{"report: exit status 1", "cancel-workflows: exit status 1", "cancel-workflows: exit status 1"} {
		d.notice(kernel.Notice{Level: "critical", Event: "halt_hook_failed", Why: why})
	}
	d.notice(kernel.Notice{Level: "error", Event: "rollback_failed", Tenant: holdfast.Local, Agent: "coder", Why: "the repository is in the middle of a merge"})
	d.notice(kernel.Notice{Level: "error", Event: "unverified", Why: "it cannot be opened"})
	told := map[string]int{}
	for _, m := range append(p.wait(t, "/mail", 4), p.wait(t, "/chat", 1)...) {
		told[m.Severity+" "+m.Condition+" "+m.Agent]++
		if m.Condition == "halt_hook_failed" {
			told[strings.SplitN(m.Text, ":", 2)[0]]++
		}
	}
	want := map[string]int{"HIGH halt_hook_failed ": 3, "report": 1, "cancel-workflows": 2, "HIGH rollback_failed coder": 1, "MEDIUM ledger_unverified ": 1}
	if !maps.Equal(told, want) {
		t.Errorf("%v", told)
	}
}

// The document's integration test: an anomaly is generated, and the alert sent. The
// agent does the same again and again, is paused for it, and people hear of it once.
func Test001_Layer5_Response_anAnomalyIsTold(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	d, _, down := alerted(t, p, "boundaries:\n  - {boundary: test/act, risk: LOW}\n  - {boundary: test/never, risk: PROHIBITED}\n")
	defer down()
	loops(t, d, "bob")
	got := p.wait(t, "/mail", 1)[0]
	if got.Condition != "loop" || got.Agent != "bob" || got.Tenant != holdfast.Local || got.Crossing == "" || !strings.Contains(got.Text, "the same action 5 times in a row") || !strings.Contains(got.Text, "the agent is paused and a review waits") {
		t.Errorf("%+v", got)
	}
	// What the kernel tells of at once and the watch answers is one alert, which
	// says what was done.
	_ = acts(t, d, "ann", "test/never", `{}`, nil)
	if got := p.wait(t, "/mail", 2)[1]; got.Condition != "prohibited" || got.Agent != "ann" || !strings.Contains(got.Text, "the agent is paused") {
		t.Errorf("%+v", got)
	}
	d.watching.Settle(t.Context())
	if got := p.took("/mail"); len(got) != 2 {
		t.Errorf("told twice: %+v", got)
	}
}

// A failing channel is an alarm of its own: told through the others and not
// through itself, in the status, and over when it works again.
func Test001_Layer5_Response_aFailingChannelIsAnAlarm(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	p.set("/mail", 500)
	d, c, down := alerted(t, p, "")
	defer down()
	d.alerts.TakeFinding(finding(watch.Loop, watch.High, "bob"))
	problems := func() string {
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(s.Problems, "\n")
	}
	for end := time.Now().Add(time.Minute); !strings.Contains(problems(), "alert_channel_failed: the channel mail cannot be told"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the status does not say it: %s", problems())
		}
	}
	d.alerts.CheckChannels(time.Now()) // it may pass
	d.alerts.CheckChannels(time.Now().Add(2 * time.Minute))
	d.alerts.CheckChannels(time.Now().Add(3 * time.Minute))
	got := p.wait(t, "/chat", 1)[0]
	if got.Condition != "alert_channel_failed" || got.Severity != "MEDIUM" || !strings.Contains(got.Text, "through the channel mail fail since") || !strings.Contains(got.Text, "it answered 500") {
		t.Errorf("%+v", got)
	}
	if text := problems() + fmt.Sprint(got, recorded(t, d, "alert_failed", 1)); strings.Contains(text, phoneSecret) || strings.Contains(text, "127.0.0.1:") {
		t.Errorf("an address is shown: %s", text)
	}
	p.set("/mail", 0)
	d.alerts.Reload(d.config().AlertSettings()) // as a reload does: it is tried now
	if all := p.wait(t, "/mail", 1); all[0].Condition != "loop" {
		t.Errorf("%+v", all)
	}
	for end := time.Now().Add(time.Minute); strings.Contains(problems(), "alert_channel_failed"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the status still says it")
		}
	}
	d.alerts.CheckChannels(time.Now())
	if got := p.wait(t, "/chat", 2)[1]; !got.Cleared || got.Condition != "alert_channel_failed" {
		t.Errorf("%+v", got)
	}
	if len(p.took("/mail")) != 1 {
		t.Errorf("a channel was told of itself: %+v", p.took("/mail"))
	}
}

// All of them fail: nobody can be told, nothing loops, and nothing is lost.
func Test001_Layer5_Response_whenEveryChannelFails(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	for _, path := range []string{"/sms", "/mail", "/chat"} {
		p.set(path, 503)
	}
	d, _, down := alerted(t, p, "")
	defer down()
	for _, s := range []watch.Severity{watch.Medium, watch.High, watch.Critical} {
		d.alerts.TakeFinding(finding(watch.Loop, s, s.String()))
	}
	for _, path := range []string{"/sms", "/mail", "/chat"} {
		for end := time.Now().Add(time.Minute); p.tried(path) == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not tried: " + path)
			}
		}
	}
	recorded(t, d, "alert_failed", 3)
	for i := range 10 {
		d.alerts.CheckChannels(time.Now().Add(time.Duration(i+2) * time.Minute))
	}
	if n := d.alerts.Waiting(); n != 3 {
		t.Errorf("%d wait", n)
	}
}

// What waits when the daemon ends is told by the next one.
func Test001_Layer5_Response_theNextDaemonTells(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	p.set("/mail", 500)
	d, _, down := alerted(t, p, "")
	opt := d.opt
	d.alerts.TakeFinding(finding(watch.Loop, watch.High, "bob"))
	recorded(t, d, "alert_failed", 1)
	down()
	p.set("/mail", 0)
	_, _, down = serve(t, opt)
	defer down()
	if got := p.wait(t, "/mail", 1)[0]; got.Condition != "loop" || got.Agent != "bob" {
		t.Errorf("%+v", got)
	}
}

// Without its own channel a severity goes another way, which is said.
func Test001_Layer5_Response_fallsToTheNextChannel(t *testing.T) {
	of := func(kinds ...string) *config.AlertsConfig {
		c := &config.AlertsConfig{Channels: map[string]config.ChannelConfig{}}
		for _, k := range kinds {
			c.Channels["the-"+k] = config.ChannelConfig{Kind: k, Env: "X"}
		}
		return c
	}
	for _, c := range []struct {
		has                    []string
		critical, high, medium string
		said                   int
	}{
		{[]string{"sms", "mail", "chat"}, "the-sms", "the-mail", "the-chat", 0},
		{[]string{"mail", "chat"}, "the-mail", "the-mail", "the-chat", 1},
		{[]string{"chat"}, "the-chat", "the-chat", "the-chat", 2},
		{[]string{"sms"}, "the-sms", "the-sms", "the-sms", 2},
		{[]string{"sms", "chat"}, "the-sms", "the-chat", "the-chat", 1},
		{nil, "", "", "", 1},
	} {
		a := of(c.has...)
		for s, want := range map[watch.Severity]string{watch.Critical: c.critical, watch.High: c.high, watch.Medium: c.medium, watch.Low: ""} {
			if got := strings.Join(a.Route(s), " "); got != want {
				t.Errorf("%v: %v goes to %q, not %q", c.has, s, got, want)
			}
		}
		if said := a.Fallen(); len(said) != c.said {
			t.Errorf("%v: %q", c.has, said)
		}
	}
	a := of("sms", "mail")
	a.Severities.Critical = []string{"the-mail", "the-sms"}
	if got := a.Route(watch.Critical); !slices.Equal(got, []string{"the-mail", "the-sms"}) {
		t.Errorf("%v", got)
	}
}
