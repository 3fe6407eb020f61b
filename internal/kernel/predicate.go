package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/outputcheck"
	"github.com/holdfast-dev/holdfast/internal/policy/trust"
)

// predicateContext is what the built-in predicates may know of this crossing.
func (j *judgement) predicateContext() outputcheck.Context {
	left := map[holdfast.Resource]int64{}
	for i, d := range j.draws {
		room := max(0, d.Limit-j.usedBefore(i))
		if old, seen := left[d.Resource]; !seen || room < old {
			left[d.Resource] = room
		}
	}
	return outputcheck.Context{
		May:          j.may,
		Listed:       func(name string) bool { return j.k.lookup(j.pol, name) != nil },
		Own:          j.pol.Own,
		PersonalData: func(text string) bool { return j.k.redact.Text([]byte(text)).Found() },
		HasReview:    j.human.Approved,
		MaxDepth:     trust.Depth(j.agent.Level),
		BudgetLeft:   left,
		Conforms:     j.conforms,
	}
}

// may says whether this agent could cross a boundary, as K2 and the risk would
// have it.
func (j *judgement) may(boundary string) bool {
	c := j.k.lookup(j.pol, boundary)
	if c == nil || c.Risk == holdfast.Prohibited || len(token.Missing(c.Permissions, j.granted)) > 0 {
		return false
	}
	for _, p := range c.Permissions {
		if !trust.May(j.agent.Level, p) {
			return false
		}
	}
	return true
}

func (j *judgement) conforms(output any) error {
	ctx, cancel := context.WithTimeout(context.Background(), gateTime)
	defer cancel()
	return j.contract.Conforms(ctx, output)
}
