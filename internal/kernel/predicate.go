package kernel

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/outputcheck"
	"github.com/holdfast-dev/holdfast/internal/policy/trust"
)

// askPredicate asks one predicate of the output (D12).
func (j *judgement) askPredicate(ctx context.Context, p constitution.Predicate, f constitution.Facts) error {
	ok, why, err := p.Check(ctx, f, j.predicateContext())
	rule := p.ID + " " + excerpt.Of(p.Version, 16) + " (" + p.Where + ")"
	switch {
	case errors.Is(err, failure.ErrTimeout):
		return violation(holdfast.KindTimeout, rule, "the predicate "+p.ID+" took longer than "+gateTime.String())
	case errors.Is(err, failure.ErrType):
		return violation(holdfast.KindType, rule, "the output cannot be given to the predicate "+p.ID)
	case err != nil:
		j.k.log.Error("a predicate failed", "predicate", p.ID, "crossing", j.id, "err", err)
		return violation(holdfast.KindEval, rule, "the predicate "+p.ID+" failed")
	case !ok:
		return violation(holdfast.KindEvalFailure, rule, why)
	}
	return nil
}

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
		HasReview:    j.approved,
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
	if j.contract.output == nil {
		return errors.New("the contract names no output schema")
	}
	ctx, cancel := context.WithTimeout(context.Background(), gateTime)
	defer cancel()
	vs, err := j.contract.output.Validate(ctx, output)
	if err == nil && len(vs) > 0 {
		err = errors.New(violations(vs))
	}
	return err
}
