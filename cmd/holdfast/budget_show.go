package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

const budgetHelp = `
Say how each budget in force stands: what was used of it, what crossings under way
reserve beside that, what is left, when its window ends, and what follows where it
is exceeded. The tightest comes first; what cannot be read is unknown, stands before
it, and makes the exit code 1.

    holdfast budget ls [AGENT] [--tenant NAME] [--json]

With AGENT it is of those that the agent's requests draw on; of intents and chains
those that the newest records of it name. "each session" is a budget that every
session has for itself, and that nobody has drawn on. All is read at one moment,
with a daemon and without one; without one, what is reserved is what a crash left.
How often agents may cross ("limits" in the configuration) is no budget.

    $ holdfast budget ls
    $ holdfast budget nightly --json
`

// budgetShow prints how budgets stand.
func budgetShow(a *app, args []string) error {
	rest, err := a.parse(a.flags("budget ls"), args, 0, 1)
	if err != nil {
		return err
	}
	ask := survey.Ask{Tenant: a.tenant}
	if len(rest) == 1 {
		ask.Agent = rest[0]
	}
	s, err := a.budgets(ask)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(s)
	} else {
		a.sayBudgets(s, time.Now())
	}
	if len(s.Rows) > 0 && s.Rows[0].Unknown != "" {
		err = errors.Join(err, fail("what cannot be read is refused; `holdfast doctor` looks at the store", "how some budgets stand is unknown"))
	}
	return err
}

// budgets asks the owner, or looks by itself where there is none.
func (a *app) budgets(ask survey.Ask) (*survey.Standings, error) {
	p, err := a.paths()
	if err != nil {
		return nil, err
	}
	c, _, err := a.dial(a.ctx, p)
	switch {
	case err == nil:
		return c.Budgets(a.ctx, ask)
	case !errors.Is(err, api.ErrNobody):
		return nil, a.silent(p, err)
	}
	return a.lookBudgets(ask)
}

// lookBudgets reads them from the state, by the configuration as it is now.
func (a *app) lookBudgets(ask survey.Ask) (out *survey.Standings, err error) {
	_, l, err := a.loads()
	if err != nil {
		return nil, err
	}
	err = a.read(func(_ daemon.Paths, st kernel.Store) error {
		return st.View(a.ctx, func(tx kernel.Tx) error {
			s, err := survey.Read(tx, l.Policy, ask, time.Now())
			out = &s
			return err
		})
	})
	return out, err
}

func (a *app) sayBudgets(s *survey.Standings, now time.Time) {
	l := a.look()
	var rows [][]string
	for i := range s.Rows {
		r := &s.Rows[i]
		share := "    ?"
		if part, ok := r.Share(); ok {
			share = fmt.Sprintf("%3.0f %%", 100*part)
		}
		of := ""
		if r.Tenant != a.tenant {
			of = " of tenant " + r.Tenant
		}
		rows = append(rows, []string{l.bar(r), share, r.Whose() + of, resourceName(r.Resource) + prefix(" at ", r.Boundary), amounts(r), ending(r, now), exceeding(r.Exceed)})
	}
	table(a.out, rows)
	if len(rows) == 0 {
		fmt.Fprintln(a.out, "no budget is in force")
	}
	if s.More > 0 {
		fmt.Fprintf(a.out, "%d more, which have more room\n", s.More)
	}
}

// barWidth is how many columns a bar takes.
const barWidth = 20

// bar draws how much is used, reserved and left; what is unknown is neither.
func (l look) bar(r *survey.Standing) string {
	signs := [3]string{"#", "=", "."}
	if l.utf8 {
		signs = [3]string{"█", "▒", "░"}
	}
	share, known := r.Share()
	if !known {
		return l.dim(strings.Repeat("?", barWidth))
	}
	taken := min(barWidth, max(0, int(share*barWidth)))
	if taken == 0 && share > 0 {
		taken = 1
	}
	held := 0
	if r.Reserved != nil && *r.Reserved > 0 && r.Limit > 0 {
		held = min(taken, max(1, int(float64(*r.Reserved)/float64(r.Limit)*barWidth)))
	}
	code := "32"
	switch {
	case share >= 0.9:
		code = "31"
	case share >= 0.75:
		code = "33"
	}
	return l.paint(code, strings.Repeat(signs[0], taken-held)+strings.Repeat(signs[1], held)) + l.dim(strings.Repeat(signs[2], barWidth-taken))
}

func resourceName(r holdfast.Resource) string {
	if r == holdfast.MoneyMicro {
		return "money"
	}
	return string(r)
}

func amountOf(r holdfast.Resource, n int64) string {
	if r == holdfast.MoneyMicro {
		return story.Dollars(n)
	}
	return fmt.Sprint(n)
}

// amounts says what is used, reserved and left, as far as it is known.
func amounts(r *survey.Standing) string {
	if r.Left == nil {
		return "unknown: " + r.Unknown
	}
	left := fmt.Sprintf("%s of %s left", amountOf(r.Resource, *r.Left), amountOf(r.Resource, r.Limit))
	if r.Granted > 0 {
		left += fmt.Sprintf(" (%s granted)", amountOf(r.Resource, r.Granted))
	}
	if r.Used == nil {
		return left + ", used unknown: " + r.Unknown
	}
	used := amountOf(r.Resource, *r.Used) + " used, "
	if *r.Reserved > 0 {
		used += amountOf(r.Resource, *r.Reserved) + " reserved, "
	}
	return used + left
}

func ending(r *survey.Standing, now time.Time) string {
	if r.Ends.IsZero() {
		return "does not reset"
	}
	return "until " + r.Ends.Format(time.RFC3339) + " (" + story.Short(r.Ends.Sub(now)) + ")"
}

// exceeding says what exceeding a budget brings.
func exceeding(x budget.Exceed) string {
	switch x {
	case budget.EndChain:
		return "then the chain ends"
	case budget.BlockTenant:
		return "then every agent of the tenant is refused"
	case budget.PauseAgent:
		return "then the agent is paused, and a person asked"
	}
	return "then the request is refused"
}

// tightest adds to a status the budget that refuses next; up is whether its owner said
// it. What the status says of a state that is not there, or of a configuration that
// does not load, is not said twice.
func (a *app) tightest(s *api.Status, up bool) {
	ask, look := survey.Ask{Live: true}, a.lookBudgets
	if up {
		look = func(ask survey.Ask) (*survey.Standings, error) { return a.client.Budgets(a.ctx, ask) }
	}
	out, err := look(ask)
	switch {
	case err == nil && len(out.Rows) > 0:
		s.Tightest = &out.Rows[0]
	case err != nil && up:
		s.Problems = append(s.Problems, "how budgets stand cannot be read: "+err.Error())
	}
}

// tightestLine says it in one line.
func tightestLine(r *survey.Standing, now time.Time) string {
	of := ""
	if r.Tenant != holdfast.Local {
		of = " of tenant " + r.Tenant
	}
	return fmt.Sprintf("tightest: %s of %s%s, %s, %s; `holdfast budget` has all", resourceName(r.Resource)+prefix(" at ", r.Boundary), r.Whose(), of, amounts(r), ending(r, now))
}
