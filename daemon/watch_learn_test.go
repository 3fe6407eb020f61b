package daemon

import (
	"database/sql"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// learned waits until the ledger is read for the watch.
func learned(t *testing.T, d *Daemon) {
	t.Helper()
	until(t, "what is usual", func() bool { ok, _ := d.watching.Known(); return ok })
}

// TestD41a_RestartForgetsNothing: what an agent did within the hour counts after a
// restart, and people are not told again of what they were told.
func TestD41a_RestartForgetsNothing(t *testing.T) {
	t.Parallel()
	d, _, down := up(t, watched+"watch: {unchecked: 1ms}\n") // each tick finds that no person looked
	opt := d.opt
	for range 4 {
		_ = acts(t, d, "ada", "test/act", `{"same":1}`, nil)
	}
	for i := range 2 {
		_ = acts(t, d, "bea", "test/act", fmt.Sprintf(`{"n":%d}`, i), errBroken)
	}
	down()
	d, _, down = serve(t, opt)
	learned(t, d)
	_ = acts(t, d, "ada", "test/act", `{"same":1}`, nil)
	if g := answerTo(t, d, "ada", watch.Loop); g.Response != "pause" {
		t.Errorf("%+v", g)
	}
	_ = acts(t, d, "bea", "test/act", `{"n":3}`, errBroken)
	answerTo(t, d, "bea", watch.Errors)
	d.condition(holdfast.Local, "", watch.NoHumanCheck, true, "nobody looked")
	answerTo(t, d, "", watch.NoHumanCheck)
	down()

	d, c, down := serve(t, opt)
	defer down()
	learned(t, d)
	d.condition(holdfast.Local, "", watch.NoHumanCheck, true, "nobody looked") // told of again, by who does not know
	d.watching.Tick()
	d.watching.Settle(t.Context())
	all, _ := answersIn(t, d)
	for _, k := range []struct {
		agent     string
		condition watch.Name
	}{{"ada", watch.Loop}, {"bea", watch.Errors}, {"", watch.NoHumanCheck}} {
		n := 0
		for _, g := range all {
			if g.Condition == k.condition && g.Agent == k.agent && g.name == respond.EventAnomaly {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s of %q was answered %d times", k.condition, k.agent, n)
		}
	}
	s, err := c.Status(t.Context())
	if err != nil || s.Watch == nil || s.Watch.Unknown != "" {
		t.Fatalf("%+v, %v", s, err)
	}
	if i := slices.IndexFunc(s.Watch.Holds, func(a story.Anomaly) bool { return a.Agent == "ada" && a.Condition == watch.Loop }); i < 0 ||
		s.Watch.Holds[i].Severity != "HIGH" || s.Watch.Holds[i].Done != "the agent was paused and a person asked" || s.Watch.Holds[i].Since.IsZero() {
		t.Errorf("%+v", s.Watch.Holds)
	}
}

// TestD41a_WhatWasNotAnsweredIs: a process that ends between what was found and its
// answer leaves nothing unanswered.
func TestD41a_WhatWasNotAnsweredIs(t *testing.T) {
	d, _, down := up(t, watched)
	opt := d.opt
	d.endWatching() // as a crash ends it
	d.endWatching = nil
	loops(t, d, "ada")
	if stateOf(t, d, "ada").State != holdfast.AgentRunning {
		t.Fatal("somebody answered")
	}
	down()
	d, _, down = serve(t, opt)
	defer down()
	if g := answerTo(t, d, "ada", watch.Loop); g.Response != "pause" || stateOf(t, d, "ada").State != holdfast.AgentPaused {
		t.Errorf("%+v", g)
	}
}

// TestD41a_LedgerFails: where the answer cannot be written the latch is set all the
// same, and so it is where the ledger itself has failed.
func TestD41a_LedgerFails(t *testing.T) {
	t.Parallel()
	d, _, down := up(t, watched)
	defer func() {
		_ = d.latch.Clear()
		down()
	}()
	token, broken := d.watching.Token, atomic.Bool{}
	d.watching.Token = func() (holdfast.Secret, error) {
		if broken.CompareAndSwap(false, true) {
			return holdfast.Secret{}, errBroken
		}
		return token()
	}
	d.watching.Take(
		[]watch.Finding{{Condition: watch.Loop, Response: watch.Pause, Tenant: holdfast.Local, Agent: "ada"}},
	)
	until(t, "the halt", d.latch.Halted)
	if g := answerTo(t, d, "", watch.LedgerFailed); g.Response != "halt" || g.Severity != "CRITICAL" {
		t.Errorf("%+v", g)
	}
	// It is over once an answer is written.
	until(t, "that it is over", func() bool {
		all, _ := answersIn(t, d)
		return slices.ContainsFunc(all, func(g given) bool { return g.Condition == watch.LedgerFailed && g.name == respond.EventAnomalyCleared })
	})
	if s, err := d.latch.Read(); err != nil || !s.Halted || s.Why != "ledger_failed: what was to be done about loop could not be carried out (it broke)" {
		t.Errorf("nobody lifts the latch but a person: %v %+v", err, s)
	}
}

// TestD41a_LedgerFails_inWords: where nothing can be written people read so once,
// wherever it is told, and not the condition's name in other words.
func TestD41a_LedgerFails_inWords(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	d, _, down := alerted(t, p, "boundaries: [{boundary: test/act, risk: LOW}]\n")
	defer down()
	pastTriggers(t, d.Paths.DB, func(t *testing.T, db *sql.DB) { run(t, db, "ALTER TABLE leaf RENAME COLUMN part TO gone") })
	if err := acts(t, d, "ada", "test/act", `{"a":1}`, nil); err == nil {
		t.Error("it was written all the same")
	}
	until(t, "the halt", d.latch.Halted)
	halt, err := d.latch.Read()
	if err != nil {
		t.Fatal(err)
	}
	saidOnce := func(where, text string) {
		t.Helper()
		if !strings.Contains(text, "ledger_failed: ") || !strings.Contains(text, " written down") || strings.Contains(text, "failed to write") || strings.Count(text, "ledger") != 1 {
			t.Errorf("%s says %q", where, text)
		}
	}
	saidOnce("the latch", halt.Why)
	saidOnce("what people are sent", p.wait(t, "/sms", 1)[0].Text)
	s, err := d.Status(t.Context())
	if err != nil || !slices.ContainsFunc(s.Watch.Holds, func(a story.Anomaly) bool { return a.Condition == watch.LedgerFailed }) {
		t.Errorf("%v %+v", err, s.Watch)
	}
	saidOnce("status", s.HaltWhy)
}

// TestWatchMetrics: what is found and answered is counted, and what holds is there
// to be scraped before it happens first.
func TestWatchMetrics(t *testing.T) {
	d, _, down := up(t, watched)
	defer down()
	loops(t, d, "ada")
	answerTo(t, d, "ada", watch.Loop)
	d.watching.Settle(t.Context())
	got := gathered(t, d)
	for _, want := range []string{`holdfast_anomalies_total{condition="loop",severity="HIGH"} 1`, `holdfast_anomaly_responses_total{carried_out="yes",response="pause"} 1`,
		`holdfast_anomalies_total{condition="escape",severity="HIGH"} 0`, "holdfast_agents_watched 1", "holdfast_anomalies_lost 0", "holdfast_agents_forgotten 0"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
}

// gathered are the lines of a scrape.
func gathered(t *testing.T, d *Daemon) []string {
	t.Helper()
	rec := httptest.NewRecorder()
	d.metrics.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	return strings.Split(rec.Body.String(), "\n")
}

// Test001_Layer5_IntegrationTest5 is the document's "Anomaly Response Test": generate
// an anomaly, verify alert sent. It is of MEDIUM, which stops nobody: people are told.
func Test001_Layer5_IntegrationTest5(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	d, _, down := up(t, watched, func(o *Options) { o.Notify = "cat >> " + told })
	defer down()
	for i := range 6 {
		_ = acts(t, d, "ada", "test/act", fmt.Sprintf(`{"n":%d}`, i), nil)
	}
	g := answerTo(t, d, "ada", watch.Rapid)
	if g.Response != "alert" || g.Severity != "MEDIUM" || stateOf(t, d, "ada").State != holdfast.AgentRunning {
		t.Errorf("%+v", g)
	}
	until(t, "the alert", func() bool {
		b, err := os.ReadFile(told)
		return err == nil && strings.Contains(string(b), "rapid_actions")
	})
}

// TestD39_ClockJumps: a clock that jumps ahead and back on the real daemon's watch
// neither makes a pattern nor hides one.
func TestD39_ClockJumps(t *testing.T) {
	d, _, down := up(t, watched)
	defer down()
	_ = acts(t, d, "ada", "test/act", `{"n":0}`, nil)
	d.watching.Take(d.watching.Watch.Tick(time.Now().Add(3 * time.Hour)))
	d.watching.Take(d.watching.Watch.Tick(time.Now()))
	loops(t, d, "ada")
	if g := answerTo(t, d, "ada", watch.Loop); g.Response != "pause" {
		t.Errorf("%+v", g)
	}
}
