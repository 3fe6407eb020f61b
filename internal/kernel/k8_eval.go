package kernel

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/ownfile"
)

// k8Eval is armed here: the contract's predicates exist, and the rules over
// the request are judged (D2). The predicates over the output are asked by
// evalOutput, after the act.
func k8Eval(ctx context.Context, j *judgement) holdfast.Opinion {
	if j.contract == nil {
		return deny(holdfast.K8, holdfast.KindPredicateNotFound, "an unlisted boundary has no predicates", "")
	}
	if j.doc == nil {
		return deny(holdfast.K8, holdfast.KindEval, "there is nothing well formed to judge", "")
	}
	if j.contract.PredicateErr != nil {
		return refusal(holdfast.K8, "PREDICATE_NOT_FOUND", j.contract.PredicateErr)
	}
	if j.isUnruled() {
		return allow(holdfast.K8, "READY", j.contract.Source, j.own.Unruled)
	}
	if ownfile.IsNamed(j.doc.Value(), j.pol.Own) {
		op := deny(holdfast.K8, holdfast.KindRule, "the request names Holdfast's own files", "nothing that an agent does may touch the state directory or the configuration")
		op.State, op.Rule = "FAIL", "celestial L1 (built in)"
		return op
	}
	if len(j.contract.Misfits) > 0 {
		op := deny(holdfast.K8, holdfast.KindEval,
			"a rule could never speak here: "+excerpt.Of(j.contract.Misfits[0], 512),
			"the tool showed itself after the rules were loaded; `holdfast status` names each rule to correct")
		op.State = "EVAL_ERROR"
		return op
	}
	j.ask(ctx)
	found := j.pol.Rules.Judge(ctx, constitution.OnRequest, j.facts())
	if ctx.Err() != nil {
		return deny(holdfast.K8, holdfast.KindTimeout, "the rules took longer than "+gateTime.String(), "")
	}
	j.spoke = append(j.spoke, found...)
	j.ruled = true
	return j.ruleOpinion(found)
}

// ruleOpinion makes one opinion of several findings; the worst one leads.
func (j *judgement) ruleOpinion(found []constitution.Finding) holdfast.Opinion {
	var worst *constitution.Finding
	others := 0
	for i := range found {
		f := &found[i]
		if f.Verdict == holdfast.Allow {
			continue
		}
		if worst == nil || record.IsGraver(f, worst) {
			worst = f
		}
		others++
	}
	if worst == nil {
		why := "no rule objects"
		for _, f := range found {
			why += fmt.Sprintf("; %s (%s) %s: %s", f.Rule, f.Severity, record.HowOf(&f), f.Message)
		}
		return allow(holdfast.K8, "READY", "rules", excerpt.Of(why, 512))
	}
	rule := worst.Rule + " (" + worst.Where + ")"
	why := worst.Message
	switch {
	case others == 2:
		why += " (and 1 more rule objects)"
	case others > 2:
		why += fmt.Sprintf(" (and %d more rules object)", others-1)
	}
	if worst.Verdict == holdfast.Hold {
		return askPerson(holdfast.K8, rule, why)
	}
	op := deny(holdfast.K8, holdfast.KindRule, why, worst.Hint)
	op.State, op.Rule = "FAIL", rule
	if worst.Err != nil {
		op.Kind, op.State = holdfast.KindEval, "EVAL_ERROR"
		op.Why = "the rule " + worst.Rule + " failed: " + excerpt.Of(worst.Err.Error(), 256)
	}
	return op
}
