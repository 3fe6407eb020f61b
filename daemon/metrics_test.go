package daemon

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
)

const withPages = "version: 1\nlisten: {pages: '127.0.0.1:0'}\n"

// scrape reads one metric's lines, without their name.
func scrape(t *testing.T, c *api.Client, name string) string {
	t.Helper()
	st, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	code, body := get(t, st.Pages+"/metrics")
	if code != http.StatusOK {
		t.Fatal(code, body)
	}
	var out []string
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, "holdfast_"+name); ok && (rest[0] == '{' || rest[0] == ' ') {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	return strings.Join(out, "\n")
}

// counts fails unless the metric has that line.
func counts(t *testing.T, c *api.Client, name, want string) {
	t.Helper()
	if got := scrape(t, c, name); !strings.Contains("\n"+got+"\n", "\n"+want+"\n") {
		t.Errorf("%s is\n%s\nwant %s", name, got, want)
	}
}

func submit(t *testing.T, c *api.Client, text string) {
	t.Helper()
	if _, err := c.Goal(t.Context(), api.Ask{Agent: "planner", Boundary: goalrule.Boundary, Payload: []byte(text)}); err != nil {
		t.Fatal(err)
	}
}

const (
	plainGoal = `{"goal":{"goal_id":"g1","description":"tidy","priority":2,"goal_type":"maintenance"}}`
	evilGoal  = `{"goal":{"goal_id":"sk-secret-name","description":"see https://x","priority":2,"goal_type":"exfiltrate_data"}}`
	badGraph  = `{"graph":{"goal_id":"g2","sub_tasks":[{"id":"a","required_caps":["local:disk"]},{"id":"b","required_caps":["exec:arbitrary"]}]}}`
)

// TestMetrics_004: the document's five metrics, by its names and labels, and
// each of them observed: checks, violations, the pause (after a restart too), the
// rules and how long a check took, which the document declares and never observes.
func TestMetrics_004(t *testing.T) {
	t.Parallel()
	d, c, down := up(t, withPages)
	counts(t, c, "safety_paused", "0")
	counts(t, c, "safety_rules_registered", "7")
	counts(t, c, "safety_checks_total", `{result="allowed",subject_type="goal"} 0`)
	submit(t, c, plainGoal)
	submit(t, c, badGraph)
	submit(t, c, evilGoal)
	counts(t, c, "safety_checks_total", `{result="allowed",subject_type="goal"} 1`)
	counts(t, c, "safety_checks_total", `{result="blocked",subject_type="goal"} 1`)
	counts(t, c, "safety_checks_total", `{result="allowed",subject_type="graph"} 1`)
	counts(t, c, "safety_checks_total", `{result="allowed",subject_type="subtask"} 1`)
	counts(t, c, "safety_checks_total", `{result="blocked",subject_type="subtask"} 1`)
	counts(t, c, "safety_violations_total", `{rule_id="SR-003",severity="block"} 1`)
	counts(t, c, "safety_violations_total", `{rule_id="SR-004",severity="warn"} 1`)
	counts(t, c, "safety_violations_total", `{rule_id="SR-006",severity="warn"} 1`)
	counts(t, c, "safety_violations_total", `{rule_id="SR-007",severity="critical"} 1`)
	counts(t, c, "safety_check_duration_seconds_count", `{subject_type="goal"} 2`)
	counts(t, c, "safety_check_duration_seconds_count", `{subject_type="subtask"} 2`)
	if sum := scrape(t, c, "safety_check_duration_seconds_sum"); strings.Contains(sum, `{subject_type="goal"} 0`+"\n") {
		t.Errorf("no time was observed: %s", sum)
	}
	counts(t, c, "safety_paused", "1")
	submit(t, c, plainGoal) // refused before it is judged
	counts(t, c, "safety_checks_total", `{result="blocked",subject_type="goal"} 1`)
	counts(t, c, "crossings_total", `{class="goal",gate="none",outcome="done",verdict="allow"} 1`)
	counts(t, c, "crossings_total", `{class="goal",gate="K8",outcome="denied",verdict="deny"} 2`)
	counts(t, c, "crossings_total", `{class="goal",gate="halt",outcome="denied",verdict="deny"} 1`)
	opt := d.opt
	down()
	_, c, down = serve(t, opt)
	defer down()
	counts(t, c, "safety_paused", "1")
	counts(t, c, "safety_checks_total", `{result="allowed",subject_type="goal"} 0`)
	st, err := c.Status(t.Context())
	if err != nil || len(st.Goals) != 1 || st.Goals[0].Tenant != holdfast.Local || st.Goals[0].Waiting != 1 {
		t.Errorf("status says %+v, %v", st.Goals, err)
	}
}

// TestMetrics_004_rules_registered: built in and loaded, as a reload has it.
func TestMetrics_004_rules_registered(t *testing.T) {
	rules := func(text string) string { return withPages + "rules:\n  inline:\n" + text }
	d, c, down := up(t, rules("    - {id: own, on: goal, when: \"true\", severity: info, message: m}\n    - {id: other, on: request, boundary: '*', when: \"false\", severity: block, message: m}\n"))
	defer down()
	counts(t, c, "safety_rules_registered", "8")
	text := rules("    - {id: own, on: goal, when: \"true\", severity: info, message: m}\n    - {id: too, on: subtask, when: \"true\", severity: info, message: m}\n    - {id: three, on: graph, when: \"true\", severity: info, message: m}\n")
	if err := os.WriteFile(d.opt.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.LoadHere(d.opt.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.apply(l); err != nil {
		t.Fatal(err)
	}
	counts(t, c, "safety_rules_registered", "10")
}

// TestMetrics_weakened: what a rule only observes, and what it lets pass when it
// fails, is counted as that (D3), and is no violation that an alert asks for.
func TestMetrics_weakened(t *testing.T) {
	_, c, down := up(t, withPages+`rules:
  inline:
    - {id: watches, on: goal, when: "true", mode: observe, severity: critical, message: m}
    - {id: passes, on: goal, when: 1 / int(goal.created_ms) == 0, on_error: pass, severity: critical, message: m}
    - {id: notes, on: request, boundary: goal/admit, when: "true", severity: warn, message: m}
`)
	defer down()
	// It is announced before any of them speaks.
	counts(t, c, "weakened", "2")
	counts(t, c, "rules_weakened", `{how="observe",rule_id="watches"} 1`)
	counts(t, c, "rules_weakened", `{how="on_error_pass",rule_id="passes"} 1`)
	if got := scrape(t, c, "rules_weakened"); strings.Contains(got, "notes") {
		t.Error(got)
	}
	submit(t, c, plainGoal)
	counts(t, c, "rules_observed_total", `{rule_id="watches",severity="critical"} 1`)
	counts(t, c, "rules_passed_on_error_total", `{rule_id="passes"} 1`)
	counts(t, c, "rules_violations_total", `{rule_id="notes",severity="warn"} 1`)
	if got := scrape(t, c, "safety_violations_total"); strings.Contains(got, "watches") || strings.Contains(got, "passes") {
		t.Error(got)
	}
	counts(t, c, "safety_paused", "0")
}

// TestMetrics_say_nothing_of_agents: no name that a request brings becomes a
// label, and nobody from elsewhere, or by another name of this machine, is
// answered.
func TestMetrics_say_nothing_of_agents(t *testing.T) {
	_, c, down := up(t, withPages)
	defer down()
	submit(t, c, evilGoal)
	for i := range 20 {
		_, _ = c.Check(t.Context(), api.Ask{Agent: fmt.Sprint("agent", i), Boundary: fmt.Sprintf("made-up-%d/sk-secret", i), Payload: []byte(`{}`)})
		_, _ = c.Goal(t.Context(), api.Ask{Agent: fmt.Sprint("agent", i), Boundary: goalrule.Boundary, Payload: []byte(`{"goal":{"goal_id":"made-up"}}`)})
	}
	st, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, body := get(t, st.Pages+"/metrics")
	for _, never := range []string{"sk-secret", "made-up", "planner", "agent1", "see https"} {
		if strings.Contains(body, never) {
			t.Errorf("the metrics say %q", never)
		}
	}
	for line := range strings.Lines(body) {
		if !regexp.MustCompile(`^(# (HELP|TYPE) )?(holdfast_|promhttp_)`).MatchString(line) {
			t.Errorf("the line %q", line)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", st.Pages+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "rebound.example"
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusMisdirectedRequest {
		t.Error("another name of this machine:", r.Status)
	}
}

// TestGoalsGoOn_is_said_everywhere: goals that go on after a critical violation
// are named where Holdfast speaks: in status, in each answer, on the pages, in the
// log and in the ledger.
func TestGoalsGoOn_is_said_everywhere(t *testing.T) {
	var log bytes.Buffer
	d, c, down := up(t, withPages+"unsafe: {goals_go_on: true}\n", func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	defer down()
	submit(t, c, evilGoal)
	ans, err := c.Goal(t.Context(), api.Ask{Agent: "planner", Boundary: goalrule.Boundary, Payload: []byte(plainGoal)})
	if err != nil || ans.Outcome == nil || ans.Outcome.Verdict != holdfast.Allow {
		t.Fatal("goals do not go on:", err, ans)
	}
	st, err := c.Status(t.Context())
	if err != nil || len(st.Goals) != 0 {
		t.Fatal(err, st.Goals)
	}
	counts(t, c, "safety_paused", "0")
	counts(t, c, "safety_violations_total", `{rule_id="SR-007",severity="critical"} 1`)
	said := map[string][]string{"status": st.Weakened, "the answer": ans.Outcome.Weakened, "the pages": d.pageState(t.Context(), true).Weakened, "the log": {log.String()}}
	err = d.store.View(t.Context(), func(tx kernel.Tx) error {
		return tx.Leaves(holdfast.Local, 0, 1, func(l ledger.Stored) error {
			said["the first record"] = []string{string(l.Record)}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, what := range said {
		if !strings.Contains(strings.Join(what, "\n"), "unsafe.goals_go_on") {
			t.Errorf("%s does not say it: %q", where, what)
		}
	}
}

// TestPausedGoals_are_a_problem: the pages say that goals are paused, as status
// does, whether or not a daemon runs.
func TestPausedGoals_are_a_problem(t *testing.T) {
	d, c, down := up(t, withPages)
	submit(t, c, evilGoal)
	if said := strings.Join(d.pageState(t.Context(), true).Problems, "\n"); !strings.Contains(said, "goals are paused since") {
		t.Error(said)
	}
	paths := d.Paths
	down()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: paths.DB, ReadOnly: true, Tables: feature.Tables()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	st, err := Look(t.Context(), paths, s)
	if err != nil || len(st.Goals) != 1 || st.Goals[0].Waiting != 1 {
		t.Errorf("%+v %v", st, err)
	}
}

// TestMetrics_egress: the counters of the proxy are those that status has.
func TestMetrics_egress(t *testing.T) {
	d, c, down := up(t, withPages+"egress:\n  listen: [{address: '127.0.0.1:0', agent: a}]\n  domains:\n    api.example.com: {}\n")
	defer down()
	counts(t, c, "egress_connections_open", "0")
	counts(t, c, "egress_redacted_total", `{direction="request"} 0`)
	at := d.egress.Listeners()[0].Address
	for range 2 {
		r, err := http.Get("http://" + at + "/") // no proxy request: refused and counted
		if err == nil {
			r.Body.Close()
		}
	}
	n := d.egress.Status(t.Context())
	for _, of := range n.Requests {
		counts(t, c, "egress_requests_total",
			fmt.Sprintf(`{domain="%s",kind="%s"} %d`, cmp.Or(of.Domain, "none"), cmp.Or(of.Kind, "none"), of.Count))
	}
	if len(n.Requests) == 0 {
		t.Error("nothing was counted")
	}
	counts(t, c, "egress_stage_duration_seconds_count", fmt.Sprintf(`{stage="parse"} %d`, n.Stages[0].Count))
}

// TestAlerts_004: the document's alerts, as promtool reads them, and what they
// say of times that are made up. Each metric that they ask for is one of ours.
func TestAlerts_004(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("../deploy/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "holdfast.rules.yml"}, {"test", "rules", "holdfast.rules.test.yml"}} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "promtool", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Errorf("promtool %s: %v (it is of Debian's package prometheus: see make deps)\n%s", strings.Join(args, " "), err, out)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "holdfast.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	_, c, down := up(t, withPages+`rules:
  inline:
    - {id: passes, on: goal, when: 1 / int(goal.created_ms) == 0, on_error: pass, severity: warn, message: m}
`)
	defer down()
	submit(t, c, plainGoal)
	own, _, _ := strings.Cut(string(text), "holdfast-safety-net") // Test001_Dashboard_Alerts is about the others
	asked := regexp.MustCompile(`holdfast_([a-z_]+)`).FindAllStringSubmatch(own, -1)
	for _, m := range asked {
		if scrape(t, c, m[1]) == "" {
			t.Errorf("an alert asks for %s, which is not there", m[0])
		}
	}
	if len(asked) < 4 {
		t.Error("the alerts ask for", asked)
	}
}
