package kernel

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// evalOutput asks K8 of what came out: the output schema, the contract's
// predicates in their order, then the rules on outputs. It works on a copy, so
// that nothing a predicate does reaches the caller (D12). The first result
// says whether anything was asked.
func (j *judgement) evalOutput(ctx context.Context, out holdfast.Output) (bool, error) {
	c := j.contract
	if !j.asksOutput() {
		return false, nil
	}
	ch := make(chan evaluation, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				j.k.log.Error("a predicate panicked", "boundary", c.Boundary, "panic", fmt.Sprint(r))
				ch <- evaluation{asked: true, err: violation(holdfast.KindEval, c.Source, "a predicate failed")}
			}
		}()
		ch <- j.evalAll(ctx, out)
	}()
	select {
	case a := <-ch:
		j.spoke = append(j.spoke, a.spoke...)
		return a.asked, a.err
	case <-ctx.Done():
		return true, violation(holdfast.KindTimeout, c.Source, "judging the output took longer than "+gateTime.String())
	}
}

// asksOutput says whether anything is asked of what comes out, beside the request.
func (j *judgement) asksOutput() bool {
	return j.contract.output != nil || len(j.contract.predicates) > 0 || j.pol.outputs
}

// evaluation is what K8 says of an output. Who judges it changes nothing of the
// judgement, which goes on without it when its time is over.
type evaluation struct {
	asked bool
	spoke []constitution.Finding
	err   error
}

func (j *judgement) evalAll(ctx context.Context, out holdfast.Output) evaluation {
	c := j.contract
	needsTree := c.output != nil || len(c.predicates) > 0
	tree, err := outputTree(out.Body)
	if err != nil && needsTree {
		return evaluation{asked: true, err: violation(holdfast.KindType, c.Source, "the output is not JSON that a predicate can be asked of")}
	}
	if c.output != nil && out.ExitCode == 0 {
		if err := j.conformsTo(ctx, out, tree); err != nil {
			return evaluation{asked: true, err: err}
		}
	}
	facts := j.facts()
	facts.Fetched = j.fetchedOut
	facts.Output, facts.OutputSize, facts.ExitCode = tree, len(out.Body), out.ExitCode
	if err != nil {
		facts.Output = string(out.Body)
	}
	for _, p := range c.predicates {
		if err := j.askPredicate(ctx, p, facts); err != nil {
			return evaluation{asked: true, err: err}
		}
	}
	return j.askRules(ctx, facts, needsTree)
}

// conformsTo holds the structured output against the contract's schema.
func (j *judgement) conformsTo(ctx context.Context, out holdfast.Output, tree any) error {
	const rule = "output_schema_conformance"
	if out.Structured != nil {
		var err error
		if tree, err = outputTree(out.Structured); err != nil {
			return violation(holdfast.KindType, rule, "the structured output is not JSON")
		}
	}
	errs, err := j.contract.output.Validate(ctx, tree)
	if err != nil {
		return violation(holdfast.KindEval, rule, "the output could not be validated")
	}
	if len(errs) > 0 {
		return violation(holdfast.KindEvalFailure, rule, "the output violates its schema: "+violations(errs))
	}
	return nil
}

func (j *judgement) askRules(ctx context.Context, facts constitution.Facts, asked bool) evaluation {
	found := j.pol.Rules.Judge(ctx, constitution.OnOutput, facts)
	a := evaluation{asked: asked || len(found) > 0, spoke: found}
	for _, f := range found {
		if f.Verdict == holdfast.Allow {
			continue
		}
		rule := f.Rule + " (" + f.Where + ")"
		if f.Err != nil {
			a.err = violation(holdfast.KindEval, rule, "the rule "+f.Rule+" failed: "+excerpt.Of(f.Err.Error(), 256))
			return a
		}
		a.err = violation(holdfast.KindEvalFailure, rule, f.Message)
		return a
	}
	return a
}
