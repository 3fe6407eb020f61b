package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
)

// tally is an Observer that keeps what it is told.
type tally struct {
	mu      sync.Mutex
	goals   []goalrule.Verdict
	passed  []bool
	crossed []kernel.Crossed
	escaped []string // tenant, agent and crossing of each
}

func (c *tally) GoalsJudged(vs []goalrule.Verdict, admitted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range vs {
		c.goals, c.passed = append(c.goals, vs[i]), append(c.passed, vs[i].Passes(admitted))
	}
}

func (c *tally) Crossed(x kernel.Crossed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.Spoke = slices.Clone(x.Spoke)
	c.crossed = append(c.crossed, x)
}

func (c *tally) Escaped(tenant, agent, crossing string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.escaped = append(c.escaped, tenant+" "+agent+" "+crossing)
}

func (c *tally) Attended(string, string) {}

// abroad is a verifier by which the agent "stranger" is of another tenant.
type abroad struct{ kernel.Verifier }

func (v abroad) Verify(ctx context.Context, token holdfast.Secret, now time.Time) (holdfast.Identity, error) {
	id, err := v.Verifier.Verify(ctx, token, now)
	if id.Agent == "stranger" {
		id.Tenant = "other"
	}
	return id, err
}

// goalsWorld is a world in which goals can be admitted.
func goalsWorld(t testing.TB, dir, rules string, opts ...option) (*world, *tally) {
	t.Helper()
	seen := &tally{}
	return reopen(t, dir, rules, append([]option{func(c *kernel.Config, w *world) {
		p := *c.Policy
		p.Contracts = append(slices.Clone(p.Contracts), holdfast.Contract{Boundary: goalrule.Boundary, Risk: holdfast.Low, Permissions: []string{"goal:submit"}, Source: "test:20"})
		p.Roles = map[string][]string{"agent": {"goal:submit"}, "urgent": {"goal:submit", goalrule.MayBeCritical}, "reader": {"goal:read"}}
		c.Policy, w.policy, c.Observer, c.Verifier = &p, &p, seen, abroad{c.Verifier}
	}}, opts...)...), seen
}

func aGoal(id, kind, more string) string {
	return fmt.Sprintf(`{"goal":{"goal_id":%q,"description":"tidy up","priority":"normal","goal_type":%q%s}}`, id, kind, more)
}

// submit asks for a goal to be admitted, of the agent named.
func (w *world) submit(agent, text string, change ...func(*holdfast.Identity)) (*holdfast.Outcome, error) {
	w.t.Helper()
	return w.cross(holdfast.Request{Boundary: goalrule.Boundary, Payload: []byte(text), Token: w.who(agent, change...)})
}

// pause has a critical violation, and returns what waits then.
func (w *world) pause() goal.Pause {
	w.t.Helper()
	_, err := w.submit("mallory", aGoal("evil", "exfiltrate_data", ""))
	wants(w.t, err, holdfast.KindRule)
	return w.goals()
}

func (w *world) goals() goal.Pause {
	w.t.Helper()
	p, err := goal.FromKernel(w.k).Goals(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) waiting() int {
	p := w.goals()
	return p.Waiting()
}

func (w *world) ack(id string) error {
	w.t.Helper()
	_, err := goal.FromKernel(w.k).AckGoal("", w.sign(operator.Statement{Act: operator.AckGoal, Subject: id, Reason: "seen"}))
	return err
}

func (w *world) goOn() error {
	w.t.Helper()
	return goal.FromKernel(w.k).ResumeGoals("", w.sign(operator.Statement{Act: operator.ResumeGoals, Subject: "goals", Reason: "fine"}))
}

// admits fails unless the agent's goal is admitted.
func (w *world) admits(agent string) {
	w.t.Helper()
	if _, err := w.submit(agent, aGoal("g", "maintenance", "")); err != nil {
		w.t.Fatal(err)
	}
}

// TestGoals_004_critical_pauses: a critical violation refuses, alerts and pauses
// (004, escalation model); the pause is looked at by the filter itself and not by
// whoever calls it (findings 4.4, number 5). Other crossings go on, and so do
// other tenants' goals (D47).
func TestGoals_004_critical_pauses(t *testing.T) {
	w, seen := goalsWorld(t, t.TempDir(), "")
	w.admits("alice")
	p := w.pause()
	if !p.Paused || p.Waiting() != 1 || p.Violations[0].Rule != "SR-007" || p.Violations[0].Agent != "mallory" || p.Violations[0].Subject != "evil" {
		t.Fatalf("%+v", p)
	}
	if n := w.notices[len(w.notices)-1]; n.Level != "critical" || n.Event != "goals_paused" || n.Agent != "mallory" {
		t.Errorf("%+v", n)
	}
	for _, agent := range []string{"alice", "mallory"} {
		out, err := w.submit(agent, aGoal("g", "maintenance", ""))
		wants(t, err, holdfast.KindGoalsPaused)
		var e *holdfast.Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, "goal ack ID") || out.Verdict != holdfast.Deny {
			t.Error(err)
		}
	}
	_, err := w.submit("alice", `{"sub_tasks":[{"id":"t","required_caps":[]}]}`)
	wants(t, err, holdfast.KindGoalsPaused)
	if _, err := w.cross(w.req("test/low", `{}`)); err != nil {
		t.Error("another crossing:", err)
	}
	w.admits("stranger") // of another tenant
	if got := seen.crossed[len(seen.crossed)-3]; got.Gate != holdfast.GateHalt ||
		got.Verdict != holdfast.Deny || got.Boundary != goalrule.Boundary {
		t.Errorf("counted as %+v", got)
	}
}

// TestGoals_004_pause_is_of_the_entry: the pause is of the transaction in which
// the refusal is recorded. Where that does not commit, goals are not paused, and
// nothing was judged.
func TestGoals_004_pause_is_of_the_entry(t *testing.T) {
	w, seen := goalsWorld(t, t.TempDir(), "")
	w.admits("alice")
	size := len(w.entries(holdfast.Local))
	w.mu.Lock()
	w.fault = func(string) error { return errors.New("the disk is gone") }
	w.mu.Unlock()
	if _, err := w.submit("mallory", aGoal("evil", "exfiltrate_data", "")); holdfast.KindOf(err) == "" {
		t.Fatal("it was answered")
	}
	if p := w.goals(); p.Paused || len(w.entries(holdfast.Local)) != size || len(seen.goals) != 1 {
		t.Errorf("%+v", p)
	}
	dir := t.TempDir()
	w, _ = goalsWorld(t, dir, "")
	w.pause()
	entries, paused := w.entries(holdfast.Local), w.events(holdfast.Local, "goals_paused")
	if len(entries) != 1 || len(paused) != 1 || paused[0].Crossing != entries[0].ID {
		t.Errorf("%d entries, %d pauses", len(entries), len(paused))
	}
}

// meanwhile is a constitution that does something while a goal is judged.
type meanwhile struct {
	*constitution.Set
	once sync.Once
	do   func()
}

func (b *meanwhile) Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding {
	if g, is := f.Subject.(map[string]any); is && on == constitution.OnGoal && g["goal_id"] == "slow" {
		b.once.Do(b.do)
	}
	return b.Set.Judge(ctx, on, f)
}

// TestGoals_004_judged_before_begun_after: a goal that was judged before a
// critical violation and would begin after it is refused.
func TestGoals_004_judged_before_begun_after(t *testing.T) {
	race := &meanwhile{}
	w, seen := goalsWorld(t, t.TempDir(), "", func(c *kernel.Config, w *world) {
		race.Set = c.Policy.Rules.(*constitution.Set)
		c.Policy.Rules = race
	})
	race.do = func() { w.pause() }
	out, err := w.submit("alice", aGoal("slow", "maintenance", ""))
	wants(t, err, holdfast.KindGoalsPaused)
	if out.Verdict != holdfast.Deny {
		t.Error(out.Verdict)
	}
	judged := w.events(holdfast.Local, "goal_judged")
	if len(judged) != 2 || !strings.Contains(string(judged[1].Data), `"allowed":false`) {
		t.Errorf("recorded as admitted: %s", judged[len(judged)-1].Data)
	}
	if len(seen.goals) != 2 {
		t.Error(len(seen.goals), "verdicts")
	}
}

// TestGoals_004_acknowledge_then_resume is the document's open question 3: a
// person acknowledges each critical violation, then resumes, and who did is
// recorded.
func TestGoals_004_acknowledge_then_resume(t *testing.T) {
	w, _ := goalsWorld(t, t.TempDir(), `rules:
  - {id: graphs, on: graph, when: graph.sub_tasks.size() > 0, severity: critical, message: no graphs}
`)
	wants(t, w.goOn(), holdfast.KindConflict)
	_, err := w.submit("mallory", `{"goal":{"goal_id":"e","description":"d","priority":2,"goal_type":"self_modify_runtime"},"graph":{"goal_id":"e","sub_tasks":[{"id":"a","required_caps":[]}]}}`)
	wants(t, err, holdfast.KindRule)
	p := w.goals()
	if p.Waiting() != 2 || p.Violations[0].Rule != "SR-007" || p.Violations[1].Rule != "graphs" {
		t.Fatalf("%+v", p)
	}
	wants(t, w.goOn(), holdfast.KindConflict)
	wants(t, w.ack("nobody.1"), holdfast.KindNotFound)
	if err := w.ack(p.Violations[1].ID); err != nil {
		t.Fatal(err)
	}
	wants(t, w.ack(p.Violations[1].ID), holdfast.KindConflict)
	wants(t, w.goOn(), holdfast.KindConflict)
	if err := w.ack(p.Violations[0].ID); err != nil {
		t.Fatal(err)
	}
	_, err = w.submit("alice", aGoal("g", "maintenance", ""))
	wants(t, err, holdfast.KindGoalsPaused) // until somebody resumes
	if err := w.goOn(); err != nil {
		t.Fatal(err)
	}
	w.admits("alice")
	acks, resumed := w.events(holdfast.Local, "goal_violation_acknowledged"), w.events(holdfast.Local, "goals_resumed")
	if len(acks) != 2 || len(resumed) != 1 || acks[0].Who != "bob" || resumed[0].Who != "bob" || !strings.Contains(string(resumed[0].Data), `"signature"`) {
		t.Errorf("%d acknowledged, %d resumed", len(acks), len(resumed))
	}
	// The statement of one act is no statement of another.
	w.pause()
	_, err = goal.FromKernel(w.k).AckGoal("", w.sign(operator.Statement{Act: operator.ResumeGoals, Subject: w.goals().Violations[0].ID, Reason: "x"}))
	wants(t, err, holdfast.KindUsage)
}

// TestGoals_004_restart_keeps_the_pause: and one that cannot be read refuses.
func TestGoals_004_restart_keeps_the_pause(t *testing.T) {
	dir := t.TempDir()
	w, _ := goalsWorld(t, dir, "")
	before := w.pause()
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w, _ = goalsWorld(t, dir, "")
	_, err := w.submit("alice", aGoal("g", "maintenance", ""))
	wants(t, err, holdfast.KindGoalsPaused)
	if p := w.goals(); p.Violations[0].ID != before.Violations[0].ID {
		t.Errorf("%+v", p)
	}
	if ps := w.pausedGoals(); len(ps) != 1 || ps[0].Tenant != holdfast.Local || ps[0].Waiting != 1 || ps[0].Unread {
		t.Errorf("%+v", ps)
	}
	w.putRow([]byte(`{"paused":fal`), "goals_pause", holdfast.Local)
	if _, err := w.submit("alice", aGoal("g", "maintenance", "")); err == nil {
		t.Error("a pause that cannot be read admits")
	}
	if ps := w.pausedGoals(); len(ps) != 1 || !ps[0].Unread {
		t.Errorf("%+v", ps)
	}
}

// TestGoalsStayPausedAcrossAnUpdate: a pause whose row was written before there were stops
// refuses goals after the start, and ends like any other.
func TestGoalsStayPausedAcrossAnUpdate(t *testing.T) {
	dir := t.TempDir()
	w, _ := goalsWorld(t, dir, "")
	before := w.pause()
	err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		stops, err := kernel.FindStops(tx, holdfast.Local, goal.Name)
		if err == nil && len(stops) != 1 {
			err = fmt.Errorf("%d stops", len(stops))
		}
		for _, def := range kernel.Tables() {
			if err == nil && def.Name == "stop" {
				err = tx.DeleteRow(def, []any{holdfast.Local, stops[0].ID})
			}
		}
		return err
	})
	if err == nil {
		err = w.store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	w, _ = goalsWorld(t, dir, "")
	_, err = w.submit("alice", aGoal("g", "maintenance", ""))
	wants(t, err, holdfast.KindGoalsPaused)
	if !strings.Contains(err.Error(), "1 critical violation is not acknowledged") {
		t.Error(err)
	}
	if err := w.ack(before.Violations[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err = w.submit("alice", aGoal("g", "maintenance", "")); !strings.Contains(err.Error(), "nobody has resumed") {
		t.Error(err)
	}
	if err := w.goOn(); err != nil {
		t.Fatal(err)
	}
	w.admits("alice")
	if n := len(w.events(holdfast.Local, "stopped")) + len(w.events(holdfast.Local, "stop_lifted")); n != 0 {
		t.Errorf("%d events of stops: goals record their own", n)
	}
}

func (w *world) pausedGoals() (out []goal.Paused) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), func(tx kernel.Tx) (err error) {
		out, err = goal.ListPaused(tx)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// TestGoals_004_violations_since: what violated a rule at the time itself is
// within, and what violated none is not listed (004, violations_since).
func TestGoals_004_violations_since(t *testing.T) {
	w, _ := goalsWorld(t, t.TempDir(), "")
	var at []time.Time
	for i := range 4 {
		text := aGoal(fmt.Sprint("g", i), "maintenance", "")
		if i != 1 {
			text = strings.Replace(text, "tidy up", "see https://example.com", 1)
		}
		if _, err := w.submit("alice", text); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Hour)
	}
	all := w.since(time.Time{}, 10)
	if len(all) != 3 || !all[0].Allowed || all[0].Violations[0].Rule != "SR-006" ||
		all[0].Violations[0].Severity != goalrule.SeverityWarn {
		t.Fatalf("%+v", all)
	}
	for _, j := range all {
		at = append(at, j.At)
	}
	if got := w.since(at[1], 10); len(got) != 2 || !got[0].At.Equal(at[1]) {
		t.Errorf("since the second itself: %+v", got)
	}
	if got := w.since(at[1].Add(time.Microsecond), 10); len(got) != 1 {
		t.Errorf("since a moment later: %+v", got)
	}
	if got := w.since(time.Time{}, 2); len(got) != 2 || !got[1].At.Equal(at[2]) {
		t.Errorf("the newest two: %+v", got)
	}
}

func (w *world) since(at time.Time, most int) []goal.Recorded {
	w.t.Helper()
	got, err := goal.FromKernel(w.k).ViolationsSince(w.t.Context(), "", at, most)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// TestGoals_hold_asks_a_person: a rule of severity hold puts a goal to a person,
// whose approval admits it once, and whose refusal refuses it.
func TestGoals_hold_asks_a_person(t *testing.T) {
	w, seen := goalsWorld(t, t.TempDir(), `rules:
  - {id: deploys, on: goal, when: goal.goal_type == "deploy", severity: hold, message: a person must see a deploy}
`)
	deploy := aGoal("d", "deploy", "")
	out, err := w.submit("alice", deploy)
	wants(t, err, holdfast.KindHeld)
	if len(seen.goals) != 0 || len(w.events(holdfast.Local, "goal_judged")) != 0 {
		t.Error("judged before somebody decided")
	}
	if got := seen.crossed[0]; got.Verdict != holdfast.Hold || got.Gate != holdfast.K8 || got.Outcome != "" {
		t.Errorf("counted as %+v", got)
	}
	w.approve(out.Review)
	if _, err := w.submit("alice", deploy); err != nil {
		t.Fatal("after the approval:", err)
	}
	if len(seen.passed) != 1 || !seen.passed[0] || w.since(time.Time{}, 9)[0].Allowed != true {
		t.Error("what a person had admitted is recorded as refused")
	}
	out, err = w.submit("alice", deploy)
	wants(t, err, holdfast.KindHeld) // once is once
	if _, err := w.k.Decide(w.say(operator.Reject, out.Review, "no")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.submit("alice", deploy); err == nil || holdfast.KindOf(err) == holdfast.KindHeld {
		t.Error("after the refusal:", err)
	}
}

// TestGoals_004_weakened_rules_are_recorded: a rule that only observes, and one
// that fails and says that it passes then, refuse nothing; both stand in the
// record and are counted as what they are (D3; findings 4.4, number 4: there a
// rule that raises is neither logged nor counted).
func TestGoals_004_weakened_rules_are_recorded(t *testing.T) {
	w, seen := goalsWorld(t, t.TempDir(), `rules:
  - {id: watches, on: goal, when: "true", mode: observe, severity: critical, message: seen}
  - {id: passes, on: goal, when: 1 / int(goal.created_ms) == 0, severity: critical, on_error: pass, message: never}
`)
	w.admits("alice")
	if w.goals().Paused {
		t.Error("paused")
	}
	got := w.since(time.Time{}, 9)
	if len(got) != 1 || !got[0].Allowed || len(got[0].Violations) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, vs := range [][]goalrule.Violation{got[0].Violations, seen.goals[0].Violations} {
		for _, v := range vs {
			if v.Observed != (v.Rule == "watches") || v.Passed != (v.Rule == "passes") ||
				v.Severity != goalrule.SeverityCritical {
				t.Errorf("%+v", v)
			}
		}
	}
	// The same rule without the word refuses and pauses.
	w, _ = goalsWorld(t, t.TempDir(), `rules:
  - {id: fails, on: goal, when: 1 / int(goal.created_ms) == 0, severity: critical, message: never}
`)
	_, err := w.submit("alice", aGoal("g", "maintenance", ""))
	wants(t, err, holdfast.KindRule)
	if !w.goals().Paused {
		t.Error("a critical rule that fails does not pause")
	}
}

// TestGoals_004_pause_on_critical_false: a configuration may have goals go on
// after a critical violation, which still refuses its own goal; each answer says
// that this is so.
func TestGoals_004_pause_on_critical_false(t *testing.T) {
	const said = "unsafe.goals_go_on: said everywhere"
	w, _ := goalsWorld(t, t.TempDir(), "", func(c *kernel.Config, w *world) {
		conf := goalrule.Defaults()
		conf.PauseOnCritical = false
		f, err := goalrule.New(conf)
		if err != nil {
			t.Fatal(err)
		}
		c.Policy.Sections, c.Policy.Weakened = map[string]any{goal.Name: f}, []string{said}
	})
	out, err := w.submit("mallory", aGoal("evil", "exfiltrate_data", ""))
	wants(t, err, holdfast.KindRule)
	entries := w.entries(holdfast.Local)
	if w.goals().Paused || !slices.Contains(out.Weakened, said) || !slices.Contains(entries[len(entries)-1].Weakened, said) {
		t.Error(out.Weakened)
	}
	w.admits("alice")
}

// TestGoals_004_allow_critical_needs_a_permission: SR-002 on the real types
// (findings 4.4, numbers 1 and 2): the member is the agent's own word and counts
// beside the token's permission alone.
func TestGoals_004_allow_critical_needs_a_permission(t *testing.T) {
	w, _ := goalsWorld(t, t.TempDir(), "")
	for _, c := range []struct {
		role, priority, more string
		admitted             bool
	}{
		{"agent", "0", `,"allow_critical":true`, false},
		{"urgent", "0", "", false},
		{"urgent", "0", `,"allow_critical":true`, true},
		{"urgent", `"critical"`, `,"allow_critical":true`, true},
		{"agent", "1", "", true},
	} {
		text := strings.Replace(aGoal("g", "maintenance", c.more), `"normal"`, c.priority, 1)
		_, err := w.submit("alice", text, func(id *holdfast.Identity) { id.Roles = []string{c.role} })
		if (err == nil) != c.admitted {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil && !strings.Contains(err.Error(), "the priority is critical") {
			t.Error(err)
		}
	}
	if w.goals().Paused {
		t.Error("SR-002 pauses")
	}
}

// TestGoals_strangers_pause_nothing: who cannot show who they are, or may not
// submit goals, cannot have everybody's goals paused.
func TestGoals_strangers_pause_nothing(t *testing.T) {
	w, seen := goalsWorld(t, t.TempDir(), "")
	_, err := w.cross(holdfast.Request{Boundary: goalrule.Boundary, Payload: []byte(aGoal("evil", "exfiltrate_data", "")), Token: holdfast.NewSecret("no token")})
	if err == nil || len(seen.goals) != 0 || len(w.pausedGoals()) != 0 {
		t.Error(err, seen.goals, w.pausedGoals())
	}
	_, err = w.submit("mallory", aGoal("evil", "exfiltrate_data", ""), func(id *holdfast.Identity) { id.Roles = []string{"reader"} })
	wants(t, err, holdfast.KindPermission)
	if len(seen.goals) != 0 || len(w.pausedGoals()) != 0 {
		t.Error(seen.goals, w.pausedGoals())
	}
}

// TestGoals_check_records_nothing: to ask what would happen pauses nothing.
func TestGoals_check_records_nothing(t *testing.T) {
	w, seen := goalsWorld(t, t.TempDir(), "")
	out, err := w.k.Explain(t.Context(), holdfast.Request{Boundary: goalrule.Boundary, Payload: []byte(aGoal("evil", "exfiltrate_data", "")), Token: w.who("alice")})
	if err != nil || out.Verdict != holdfast.Deny || !strings.Contains(string(out.Verdicts), "SR-007") {
		t.Fatal(err, out)
	}
	if w.goals().Paused || len(seen.goals) != 0 || len(w.entries(holdfast.Local)) != 0 {
		t.Error("recorded")
	}
}
