package kernel

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
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
	// The check changes nothing of the judgement, which continues without it when its time
	// is over.
	ch := make(chan contract.OutputResult, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				j.k.log.Error("a predicate panicked", "boundary", c.Boundary, "panic", fmt.Sprint(r))
				ch <- contract.OutputResult{Asked: true, Err: contract.Withhold(holdfast.KindEval, c.Source,
					"a predicate failed")}
			}
		}()
		check := contract.OutputCheck{Contract: c, Rules: j.pol.Rules, Facts: j.facts(), Predicates: j.predicateContext,
			Time: gateTime, Log: j.k.log, Crossing: j.id}
		check.Facts.Fetched = j.fetchedOut
		ch <- check.Run(ctx, out)
	}()
	select {
	case a := <-ch:
		j.spoke = append(j.spoke, a.Spoke...)
		return a.Asked, a.Err
	case <-ctx.Done():
		return true, contract.Withhold(holdfast.KindTimeout, c.Source,
			"judging the output took longer than "+gateTime.String())
	}
}

// asksOutput says whether anything is asked of what comes out, beside the request.
func (j *judgement) asksOutput() bool {
	return j.contract.ChecksOutput() || j.pol.outputs
}
