package budget

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// WaitFor returns the time until there may be room for what was refused: until the oldest
// taking leaves a rate's window, or a budget's window ends. It is 0 if there never will be,
// or if it is unknown.
func (r *Refusal) WaitFor(limits []Limit, now time.Time) time.Duration {
	d := r.Draw
	switch {
	case r.Kind != holdfast.KindBounds:
		return 0
	case r.Rate != nil && r.Rate.Limit > 0:
		return r.After
	case r.Rate != nil || d.Amount > d.Limit:
		return 0
	}
	if ends := End(limits, d); ends > 0 {
		return max(0, time.Unix(ends, 0).Sub(now))
	}
	return 0
}

// Opinion returns the refusal as the opinion of K3.
func (r *Refusal) Opinion() holdfast.Opinion {
	op := holdfast.Opinion{Gate: holdfast.K3, Verdict: holdfast.Deny, Kind: r.Kind, State: "EXCEEDED"}
	if r.Rate != nil {
		op.Rule = r.Rate.Name
		op.Why = "the rate is used up: " + r.Rate.Name
		op.Hint = "there is room again in " + r.After.Round(time.Second).String()
		return op
	}
	d := r.Draw
	op.Rule = d.Name
	switch r.Kind {
	case holdfast.KindBudgetNotFound:
		op.State = "BUDGET_NOT_FOUND"
		op.Why = fmt.Sprintf("no budget covers %s", d.Resource)
		op.Hint = "add one under budgets: in holdfast.yaml"
	case holdfast.KindValue:
		op.Why = fmt.Sprintf("the amount of %s asked for is negative", d.Resource)
	case holdfast.KindInvalidBudget:
		op.Why = fmt.Sprintf("the budget of %s is negative", d.Resource)
	case holdfast.KindUsageTracking:
		op.State = "USAGE_UNAVAILABLE"
		op.Why = fmt.Sprintf("the usage counter of %s is damaged", d.Resource)
	case holdfast.KindOverflow:
		op.Why = fmt.Sprintf("the sum of %s overflows", d.Resource)
	default:
		op.Why = fmt.Sprintf("%s: %s asked, %s of %s left", d.Name, formatPlain(d.Resource, d.Amount),
			formatPlain(d.Resource, max(0, d.Limit-r.Counter.Used)), formatPlain(d.Resource, d.Limit))
		op.Hint = "raise the budget in holdfast.yaml, or wait for its window to end"
		switch {
		case d.Resource == holdfast.Iterations && d.Window == 0:
			op.Hint = "start another session, or raise iterations of the agent's kind under agents: kinds: in holdfast.yaml"
		case d.Window == 0:
			op.Hint = "raise the budget in holdfast.yaml; it does not reset by itself"
		}
		if then := d.Exceed.hint(); then != "" {
			op.Hint = then
		}
	}
	return op
}

// formatPlain is FormatAmount without the name of the resource.
func formatPlain(r holdfast.Resource, n int64) string {
	if r == holdfast.MoneyMicro {
		return FormatAmount(r, n)
	}
	return strconv.FormatInt(n, 10)
}

// hint returns what a caller should know of a budget whose exceeding stops more than the
// request.
func (x Exceed) hint() string {
	switch x {
	case EndChain:
		return "to exceed it ends the chain for ever: start another one, or raise the budget in holdfast.yaml before"
	case PauseAgent:
		return "to exceed it pauses the agent: a person who approves its review (`holdfast review ls`) grants as much again"
	case BlockTenant:
		return "to exceed it blocks every agent of the tenant until its window ends, or a person says `holdfast budget unblock`"
	}
	return ""
}

// FormatAmount returns an amount for people: money in dollars.
func FormatAmount(r holdfast.Resource, n int64) string {
	if r != holdfast.MoneyMicro {
		return fmt.Sprintf("%d %s", n, r)
	}
	sign := ""
	if n < 0 {
		sign = "-"
	}
	u := uint64(n)
	if n < 0 {
		u = -u
	}
	return fmt.Sprintf("%s$%d.%06d", sign, u/1_000_000, u%1_000_000)
}
