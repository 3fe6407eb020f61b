package kernel

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// k3Bounds asks whether there is room (spec 003 section 1.4, D9). It judges
// what the store showed a moment ago; the begin record takes the amounts in
// one atomic step and may still refuse.
func k3Bounds(_ context.Context, j *judgement) holdfast.Opinion {
	switch {
	case j.contract == nil:
		return deny(holdfast.K3, holdfast.KindBudgetNotFound, "an unlisted boundary has no budget", "")
	case j.whoErr != nil:
		return deny(holdfast.K3, holdfast.KindUsageTracking, "nobody is known whose budget could be asked", "")
	case j.priceErr != nil:
		return *j.priceErr
	case j.planErr != nil:
		return j.outOfBounds(j.planErr)
	case j.factErr != nil || j.roomErr != nil:
		op := deny(holdfast.K3, holdfast.KindUsageTracking, "the usage counters cannot be read", "nothing is allowed until the store answers; see `holdfast doctor`")
		op.State = "USAGE_UNAVAILABLE"
		return op
	case j.replay != nil:
		return allow(holdfast.K3, "ALLOWED", "replay", "a replay of a settled result is charged nothing")
	case j.room != nil:
		return j.outOfBounds(j.room)
	case len(j.draws)+len(j.rates) == 0:
		return allow(holdfast.K3, "ALLOWED", noneDeclared, "the contract consumes nothing that is counted")
	}
	return allow(holdfast.K3, "ALLOWED", "", fmt.Sprintf("there is room: budgets asked %d, rates asked %d", len(j.draws), len(j.rates)))
}

// outOfBounds is a budget's refusal by the boundary's own name of it.
func (j *judgement) outOfBounds(r *budget.Refusal) holdfast.Opinion {
	op := explained(r)
	op.After = j.after(r)
	if op.Kind != holdfast.KindBounds {
		return op
	}
	name := j.refusals().Amount
	if r.Rate != nil {
		name = j.refusals().Rate
	}
	op.Kind = cmp.Or(name, op.Kind)
	return op
}

// after is how long until there may be room for what was refused: until the
// oldest taking leaves a rate's window, or until a budget's window ends. It is 0
// where there never will be, and where nobody knows.
func (j *judgement) after(r *budget.Refusal) time.Duration {
	d := r.Draw
	switch {
	case r.Kind != holdfast.KindBounds:
		return 0
	case r.Rate != nil && r.Rate.Limit > 0:
		return r.After
	case r.Rate != nil || d.Amount > d.Limit:
		return 0
	}
	if ends := budget.End(j.pol.Limits, d); ends > 0 {
		return max(0, time.Unix(ends, 0).Sub(j.now))
	}
	return 0
}

// explained says why there is no room.
func explained(r *budget.Refusal) holdfast.Opinion {
	op := deny(holdfast.K3, r.Kind, "", "")
	op.State = "EXCEEDED"
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
		op.Why = fmt.Sprintf("%s: %s asked, %s of %s left", d.Name, plainly(d.Resource, d.Amount), plainly(d.Resource, max(0, d.Limit-r.Counter.Used)), plainly(d.Resource, d.Limit))
		op.Hint = "raise the budget in holdfast.yaml, or wait for its window to end"
		switch {
		case d.Resource == holdfast.Iterations && d.Window == 0:
			op.Hint = "start another session, or raise iterations of the agent's kind under agents: kinds: in holdfast.yaml"
		case d.Window == 0:
			op.Hint = "raise the budget in holdfast.yaml; it does not reset by itself"
		}
		if then := follows(d.Exceed); then != "" {
			op.Hint = then
		}
	}
	return op
}

// plainly is an amount in a letter: money in dollars, anything else as a number.
func plainly(r holdfast.Resource, n int64) string {
	if r == holdfast.MoneyMicro {
		return words(r, n)
	}
	return strconv.FormatInt(n, 10)
}

// follows is the hint of a budget whose exceeding stops more than the request.
func follows(x budget.Exceed) string {
	switch x {
	case budget.EndChain:
		return "to exceed it ends the chain for ever: start another one, or raise the budget in holdfast.yaml before"
	case budget.PauseAgent:
		return "to exceed it pauses the agent: a person who approves its review (`holdfast review ls`) grants as much again"
	case budget.BlockTenant:
		return "to exceed it blocks every agent of the tenant until its window ends, or a person says `holdfast budget unblock`"
	}
	return ""
}
