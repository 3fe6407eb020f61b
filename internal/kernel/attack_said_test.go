package kernel_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/exceed"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// TestAttack_goals_resumed_by_an_old_statement: a statement that was refused was
// not carried out, and whoever kept it sends it again once it would be taken.
func TestAttack_goals_resumed_by_an_old_statement(t *testing.T) {
	w, _ := goalsWorld(t, t.TempDir(), "")
	resume := func() operator.Signed {
		return w.sign(operator.Statement{Act: operator.ResumeGoals, Subject: "goals", Reason: "go on"})
	}
	early := resume()
	wants(t, goal.FromKernel(w.k).ResumeGoals("", early), holdfast.KindConflict) // nothing is paused
	w.advance(time.Second)
	p := w.pause()
	unseen := resume()
	wants(t, goal.FromKernel(w.k).ResumeGoals("", unseen), holdfast.KindConflict) // a violation waits
	w.advance(time.Second)
	if err := w.ack(p.Violations[0].ID); err != nil {
		t.Fatal(err)
	}
	for _, old := range []operator.Signed{early, unseen} {
		refusedAs(t, goal.FromKernel(w.k).ResumeGoals("", old), holdfast.KindConflict, "statement/before")
	}
	_, err := w.submit("alice", aGoal("g", "maintenance", ""))
	wants(t, err, holdfast.KindGoalsPaused)
	for name, s := range map[string]operator.Statement{
		"of another tenant": {Act: operator.ResumeGoals, Subject: "goals", Tenant: "other", Reason: "x"},
		"of another act":    {Act: operator.AckGoal, Subject: "goals", Reason: "x"},
		"of everything":     {Act: operator.Resume, Subject: "everything", Reason: "x"},
	} {
		if err := goal.FromKernel(w.k).ResumeGoals("", w.sign(s)); err == nil {
			t.Errorf("a statement %s resumes goals", name)
		}
	}
	if err := goal.FromKernel(w.k).ResumeGoals("", resume()); err != nil {
		t.Fatal(err)
	}
	w.admits("alice")
	// A clock that was set back keeps nobody from resuming.
	if err := w.ack(w.pause().Violations[0].ID); err != nil {
		t.Fatal(err)
	}
	w.advance(-time.Hour)
	if err := goal.FromKernel(w.k).ResumeGoals("", resume()); err != nil {
		t.Error(err)
	}
}

// TestAttack_block_lifted_by_an_old_statement: the same of a tenant's block.
func TestAttack_block_lifted_by_an_old_statement(t *testing.T) {
	w := newWorld(t, "", limits(theTable()[0]))
	w.passes(w.pays("ada", 50_000_000))
	unblock := func() operator.Signed {
		return w.sign(operator.Statement{Act: operator.Unblock, Subject: "budget", Reason: "go on"})
	}
	lift := func(s operator.Signed) error {
		_, err := exceed.FromKernel(w.k).UnblockTenant(holdfast.Local, s)
		return err
	}
	early := unblock()
	wants(t, lift(early), holdfast.KindConflict)
	w.advance(time.Second)
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	refusedAs(t, lift(early), holdfast.KindConflict, "statement/before")
	w.refusedAs(w.pays("bea", 0), holdfast.GateHalt, holdfast.KindTenantBlocked)
	for name, s := range map[string]operator.Statement{
		"of another tenant": {Act: operator.Unblock, Subject: "budget", Tenant: "other", Reason: "x"},
		"of another act":    {Act: operator.ResumeGoals, Subject: "budget", Reason: "x"},
	} {
		if err := lift(w.sign(s)); err == nil {
			t.Errorf("a statement %s lifts the block", name)
		}
	}
	now := unblock()
	if err := lift(now); err != nil {
		t.Fatal(err)
	}
	wants(t, lift(now), holdfast.KindConflict)
	w.passes(w.pays("bea", 0))
}

// TestAttack_budgets_of_one_line: limits that are written on one line have one
// name; each agent is held to its own.
func TestAttack_budgets_of_one_line(t *testing.T) {
	of := func(session string, n int64) budget.Limit {
		return budget.Limit{Scope: budget.Session, Match: session, Resource: holdfast.MoneyMicro, Amount: n, Exceed: budget.PauseAgent, Source: "holdfast.yaml:3"}
	}
	w := newWorld(t, "", limits(of("rich", 9_000_000), of("poor", 1_000_000)))
	w.passes(w.pays("ada", 1_000_000, session("poor")))
	w.refusedAs(w.pays("ada", 1, session("poor")), holdfast.K3, holdfast.KindBounds)
	w.refusedAs(w.pays("ada", 0, session("poor")), holdfast.GateHalt, holdfast.KindPaused)
	w.approve(w.spentReview(1).ID)
	w.passes(w.pays("ada", 1_000_000, session("poor")))
	w.refusedAs(w.pays("ada", 1, session("poor")), holdfast.K3, holdfast.KindBounds)
}
