package kernel

import (
	"cmp"
	"context"
	"fmt"

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
	op := r.Opinion()
	op.After = r.WaitFor(j.pol.Limits, j.now)
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
