package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// site is a service with a webhook, commands that append to files, and a kernel with reviews.
type site struct {
	t   *testing.T
	dir string
	srv *httptest.Server

	mu     sync.Mutex
	answer int                      // guarded by mu
	got    []map[string]any         // guarded by mu; what the webhook took
	events []kernel.Event           // guarded by mu; the journal
	open   map[string]review.Review // guarded by mu
	broken error                    // guarded by mu; why nothing can be recorded
}

func newSite(t *testing.T) *site {
	s := &site{t: t, dir: t.TempDir(), answer: http.StatusOK, open: map[string]review.Review{}}
	s.srv = httptest.NewServer(s)
	t.Cleanup(s.srv.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var v map[string]any
	err := json.Unmarshal(body, &v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.answer == http.StatusOK {
		s.got = append(s.got, v)
	}
	w.WriteHeader(s.answer)
}

func (s *site) Reviews(_ context.Context, _ string, state review.State) (out []review.Review, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.open {
		if r.State == state {
			out = append(out, r)
		}
	}
	return out, nil
}

func (s *site) Review(_ context.Context, id string) (review.Review, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.open[id]; ok {
		return r, nil
	}
	return review.Review{}, errors.New("no such review")
}

func (s *site) record(e kernel.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.events = append(s.events, e)
	}
	return s.broken
}

// named returns the events of that name.
func (s *site) named(name string) []kernel.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.events), func(e kernel.Event) bool { return e.Name != name })
}

func (s *site) took() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *site) set(f func()) { s.mu.Lock(); f(); s.mu.Unlock() }

// lines returns the lines that a command wrote.
func (s *site) lines(name string) []string {
	b, _ := os.ReadFile(filepath.Join(s.dir, name))
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}

func (s *site) settings() Settings {
	return Settings{WebhookURL: s.srv.URL, WebhookSecret: func() (holdfast.Secret, error) {
		return holdfast.NewSecret(strings.Repeat("s", 32)), nil
	}, ReviewCommand: []string{"/bin/sh", "-c", "cat >> " + s.dir + "/reviews; echo >> " + s.dir + "/reviews"}}
}

// startService opens the service and delivers until the function it returns is called.
func (s *site) startService() (*Service, func()) {
	s.t.Helper()
	a, err := Open(Options{
		Dir: s.dir, Runtime: "runtime", Version: "1", Kernel: func() Kernel { return s },
		Journal: notify.NewJournal(s.record, slog.New(slog.DiscardHandler)),
		Mask:    func(text string) string { return text },
		Page:    func(id string) string { return "http://page/" + id },
		Runner: command.Runner{Environ: func([]string) []string { return nil },
			Mask: func(b []byte) []byte { return b },
			Log:  slog.New(slog.DiscardHandler)},
		Command: "cat >> " + s.dir + "/all; echo >> " + s.dir + "/all; test ! -e " + s.dir + "/fail",
		Failing: func(string) {}, Log: slog.New(slog.DiscardHandler),
	}, s.settings())
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		<-ended
		if err := a.Close(); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return a, stop
}

func (s *site) waitUntil(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: it did not come", what)
		}
	}
}

func newReview(id, about string) review.Review {
	return review.Review{ID: id, About: about, State: review.Pending, Why: "why", Expires: time.Now().Add(time.Hour)}
}

// TestNoticesGoWhereTheyBelong: the webhook takes questions, decisions and what is more than
// information, the command for reviews what is about a review, the one of --notify everything; each
// delivery is in the journal.
func TestNoticesGoWhereTheyBelong(t *testing.T) {
	s := newSite(t)
	approved := newReview("rv_1", "")
	approved.State = review.Approved
	s.open["rv_1"] = approved
	a, _ := s.startService()
	for _, n := range []kernel.Notice{
		{Level: "info", Event: "tool_changed", Why: "1"}, {Level: "warning", Event: "review_opened",
			Review: "rv_1", Why: "2"},
		{Level: "info", Event: "review_decided", Review: "rv_1", Why: "3"}, {Level: "error",
			Event: "agent_paused", Why: "4"},
	} {
		a.TakeNotice(n)
		s.waitUntil("the end of "+n.Why, func() bool { return a.Waiting() == 0 })
	}
	var events []string
	for _, v := range s.took() {
		events = append(events, fmt.Sprint(v["event"], " ", v["runtime"]))
		if q, ok := v["review"].(map[string]any); ok && (q["url"] != "http://page/rv_1" || q["state"] != "approved") {
			t.Errorf("%v", q)
		}
	}
	if want := []string{"review_opened runtime", "review_decided runtime",
		"agent_paused runtime"}; !slices.Equal(events, want) {
		t.Errorf("the webhook took %q", events)
	}
	if all, reviews := s.lines("all"), s.lines("reviews"); len(all) != 4 || len(reviews) != 2 ||
		reviews[0] != `{"level":"warning","event":"review_opened","tenant_id":"","review":"rv_1","why":"2"}` {
		t.Errorf("the commands got %q and %q", all, reviews)
	}
	s.waitUntil("the journal", func() bool { return len(s.named("notice_sent")) == 9 })
}

// TestCommandsAreTriedAgain: a command that fails is a problem, is recorded, and runs again, also in
// the next process; each notice arrives once, in its order.
func TestCommandsAreTriedAgain(t *testing.T) {
	s := newSite(t)
	fail := filepath.Join(s.dir, "fail")
	if err := os.WriteFile(fail, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, stop := s.startService()
	a.TakeNotice(kernel.Notice{Level: "info", Event: "first"})
	a.TakeNotice(kernel.Notice{Level: "info", Event: "second"})
	s.waitUntil("the failure", func() bool { return len(s.named("notice_failed")) == 1 })
	if p := a.ListProblems(); len(p) != 1 || !strings.HasPrefix(p[0], "the command of --notify cannot be told since") ||
		!strings.HasSuffix(p[0], "(2 wait): exit status 1") {
		t.Errorf("%q", p)
	}
	stop()
	if err := os.Remove(fail); err != nil {
		t.Fatal(err)
	}
	a, _ = s.startService()
	s.waitUntil("both", func() bool { return a.Waiting() == 0 })
	var events []string
	for _, line := range s.lines("all") {
		var n kernel.Notice
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatal(err)
		}
		events = append(events, n.Event)
	}
	if !slices.Equal(events, []string{"first", "first", "second"}) {
		t.Errorf("it ran for %q", events)
	}
}

// TestQuestionsAreDeliveredOnce: an open review that the webhook does not know is put once, as it
// would have been; one that it knows is not, also if an earlier version noted that.
func TestQuestionsAreDeliveredOnce(t *testing.T) {
	s := newSite(t)
	s.open["rv_new"], s.open["rv_old"] = newReview("rv_new", review.AboutEscape), newReview("rv_old", "")
	rejected := newReview("rv_done", "")
	rejected.State = review.Rejected
	s.open["rv_done"] = rejected
	old := filepath.Join(s.dir, "webhook.told")
	if err := os.WriteFile(old, []byte(`["rv_older","rv_old"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, stop := s.startService()
	s.waitUntil("the question", func() bool { return len(s.took()) == 1 && a.Waiting() == 0 })
	if got := s.took()[0]; got["event"] != "sandbox_escape_attempted" || got["level"] != "critical" {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old file: %v", err)
	}
	stop()
	a, _ = s.startService()
	a.putQuestions(t.Context())
	if n := a.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
	s.set(func() { s.open["rv_next"] = newReview("rv_next", "") })
	a.putQuestions(t.Context())
	a.putQuestions(t.Context())
	s.waitUntil("the next", func() bool { return len(s.took()) == 2 && a.Waiting() == 0 })
}

// TestUnreadableQuestionsAreKept: an old file that cannot be read stays where it is.
func TestUnreadableQuestionsAreKept(t *testing.T) {
	s := newSite(t)
	old := filepath.Join(s.dir, "webhook.told")
	if err := os.WriteFile(old, []byte(`["rv_1"`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.startService()
	if _, err := os.Stat(old); err != nil {
		t.Error(err)
	}
}

// TestLossesAreRecordedOnceTheLedgerTakesThem: what a full queue drops stays in the file until the
// ledger has it.
func TestLossesAreRecordedOnceTheLedgerTakesThem(t *testing.T) {
	s := newSite(t)
	s.answer, s.broken = http.StatusServiceUnavailable, errors.New("disk full")
	a, stop := s.startService()
	for i := range notify.MaxWaiting + 3 {
		a.queue.PutNotice(a.newItem(webhookName, kernel.Notice{Level: "error", Event: fmt.Sprint("e", i)}), time.Now())
	}
	stop()
	s.set(func() { s.broken = nil })
	s.startService()
	s.waitUntil("the record", func() bool {
		return slices.ContainsFunc(s.named("notice_failed"), func(e kernel.Event) bool {
			return e.Subject == webhookName && e.Data["lost"] == 3
		})
	})
}

// TestAlertKeysAreApart: no name of a tenant or an agent makes one alert another's.
func TestAlertKeysAreApart(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range []watch.Finding{{Tenant: "a", Agent: "b"}, {Tenant: "a|b"}, {Agent: "a|b"}, {Tenant: "a|",
		Agent: "b"},
		{Tenant: "a%7C", Agent: "b"}, {Tenant: "a", Agent: "|b"}} {
		key := alertKey("loop", f)
		if seen[key] {
			t.Errorf("%+v: %q is another's", f, key)
		}
		seen[key] = true
	}
}

// TestLogIsAsLoudAsTheNotice: a log that is read by its level alone shows what calls for a person
// (D41a).
func TestLogIsAsLoudAsTheNotice(t *testing.T) {
	for notify, want := range map[string]slog.Level{"info": slog.LevelInfo, "warning": slog.LevelWarn,
		"error": slog.LevelError, "critical": slog.LevelError, "": slog.LevelError} {
		if got := logLevel(notify); got != want {
			t.Errorf("%q: %v, not %v", notify, got, want)
		}
	}
}

// TestRouteFollowsTheConfiguration: what waits for a channel that is gone goes where its severity
// goes now, a report where reports go, and an alert about a channel never through that channel.
func TestRouteFollowsTheConfiguration(t *testing.T) {
	a := &Service{settings: Settings{Report: []string{"chat"}, Routes: map[watch.Severity][]string{
		watch.High: {"mail"}, watch.Medium: {"chat", "mail"}}}}
	for _, c := range []struct {
		key, severity string
		want          []string
	}{
		{notify.ReportCondition + "|2026-03-01", "LOW", []string{"chat"}},
		{"loop|local|bob", "HIGH", []string{"mail"}},
		{"loop|local|bob", "", []string{"chat", "mail"}},
		{channelKey("chat") + "||", "MEDIUM", []string{"mail"}},
	} {
		if got := a.findRoute(notify.Item{Key: c.key,
			Message: notify.Message{Severity: c.severity}}); !slices.Equal(got, c.want) {
			t.Errorf("%s of %q goes to %q", c.key, c.severity, got)
		}
	}
}
