package console

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// Bounds of the page of agents.
const (
	maxPaused  = 100
	maxRunning = 200
	maxWithin  = 20 // of one agent
	maxBudgets = 20
)

// agentsView is every agent that ever crossed, those that a person must let go
// on first.
type agentsView struct {
	// Anomalies are what holds that is out of the ordinary, the worst first.
	Anomalies []story.Anomaly
	// Unchecked says that one of them is that nobody looked, which a look with the
	// operator key open ends.
	Unchecked bool
	Paused    []holdfast.Agent
	// Running are those with tokens of their own, each with those within it beneath.
	Running []story.Branch
	// Budgets are those that can refuse next, the tightest first; MoreBudgets is how
	// many others there are.
	Budgets     []survey.Standing
	MoreBudgets int
	More        int // how many are not shown
	// Trees are what agents with others within them spent together with those, on the
	// first page.
	Trees []spend.Sum
	// Today is a page of what was spent on models since UTC midnight, the dearest
	// first; Rows is how much there is in all, Spent its sum, in millionths of a
	// dollar.
	Today []spend.Sum
	Rows  int
	Spent int64
	// Before is how many dearer rows there are on the pages before; Behind is how
	// many there are on those behind, and Least what they cost together.
	Before, Behind int
	Least          int64
}

func (s *Console) agents(v *visit) {
	var as []holdfast.Agent
	var view agentsView
	err := s.c.View(v.r.Context(), func(tx kernel.Tx) (err error) {
		if as, err = tx.Agents(""); err != nil {
			return err
		}
		day, _, err := spend.Read(tx, v.now)
		view.spent(day, v.r.URL.Query().Get("spent"))
		if err != nil || s.c.Budgets == nil {
			return err
		}
		b, err := s.c.Budgets(tx, v.now)
		view.Budgets = b.Rows[:min(len(b.Rows), maxBudgets)]
		view.MoreBudgets = b.More + len(b.Rows) - len(view.Budgets)
		return err
	})
	if err != nil {
		v.fail(err)
		return
	}
	view.share(as)
	if s.c.Anomalies != nil {
		view.Anomalies = s.c.Anomalies()
		view.Unchecked = slices.ContainsFunc(view.Anomalies, func(a story.Anomaly) bool { return a.Condition == watch.NoHumanCheck })
		view.Anomalies = view.Anomalies[:min(len(view.Anomalies), maxPaused)]
	}
	v.show("Agents", "agents", view)
}

// share puts the agents into the lists, as many as have room.
func (view *agentsView) share(as []holdfast.Agent) {
	within := map[[2]string]int{}
	for _, a := range story.Tree(as) {
		owner := [2]string{a.Tenant, a.Owner}
		switch {
		case a.State != holdfast.AgentRunning && len(view.Paused) < maxPaused:
			view.Paused = append(view.Paused, a.Agent)
		case a.State == holdfast.AgentRunning && len(view.Running) < maxRunning && (a.Owner == "" || within[owner] < maxWithin):
			view.Running = append(view.Running, a)
			within[owner]++
		default:
			view.More++
		}
	}
}

// maxSpent bounds the rows of what was spent that one page has.
const maxSpent = 50

// spent takes the page that begins at a row, as a link of this page says it; the
// first where it says nothing that is there.
func (view *agentsView) spent(day []spend.Sum, at string) {
	first, err := strconv.Atoi(at)
	if err != nil || first < 0 || first >= len(day) {
		first = 0
	}
	end := min(first+maxSpent, len(day))
	view.Today, view.Rows, view.Before, view.Behind = day[first:end], len(day), first, len(day)-end
	if first == 0 {
		view.Trees = spend.ByTrees(day)
		view.Trees = view.Trees[:min(len(view.Trees), maxSpent)]
	}
	for i, x := range day {
		view.Spent += x.Micro
		if i >= end {
			view.Least += x.Micro
		}
	}
}

// Dearer is where the page before begins, and Cheaper the one behind.
func (view agentsView) Dearer() int  { return max(0, view.Before-maxSpent) }
func (view agentsView) Cheaper() int { return view.Rows - view.Behind }

// pauseID names a pause by all that a page shows of it: one for another reason has another.
func pauseID(a holdfast.Agent) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", a.Condition, a.Review, a.Why))
	return hex.EncodeToString(sum[:])
}

// unpause lets the agent go on that the page showed: paused, and for the reason
// that stood there. One that was paused anew since is another decision.
func (s *Console) unpause(v *visit) {
	f := v.r.PostForm
	tenant, name := f.Get("tenant"), f.Get("agent")
	err := s.c.View(v.r.Context(), func(tx kernel.Tx) error {
		a, err := tx.Agent(tenant, name)
		switch {
		case errors.Is(err, kernel.ErrNotFound):
			return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is no such agent"}
		case err == nil && a.State == holdfast.AgentRunning:
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "it is not paused"}
		case err == nil && pauseID(a) != f.Get("pause"):
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "it was paused anew since you looked"}
		}
		return err
	})
	var signed operator.Signed
	if err == nil {
		signed, err = v.s.sign(operator.Statement{Act: operator.Unpause, Subject: name, Tenant: tenant, Reason: oneLine(f.Get("reason"))}, s.c.Runtime, v.now)
	}
	var got kernel.Unpaused
	if err == nil {
		got, err = s.c.Kernel.Unpause(tenant, signed)
	}
	if err != nil {
		v.goTo(v.at, "/agents", "not unpaused: "+letter(s.asError(err)), true)
		return
	}
	words := excerpt.Of(name, 64) + " goes on"
	if len(got.Settled) > 0 {
		words += ", which answers " + strings.Join(got.Settled, ", ") + ": approved"
	}
	if len(got.Left) > 0 {
		words += "; who asked cannot answer " + strings.Join(got.Left, ", ")
	}
	v.goTo(v.at, "/agents", words, false)
}
