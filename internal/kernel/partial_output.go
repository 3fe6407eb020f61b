package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast"
)

// JudgeSoFar asks K8, from within an act, of what has come out so far: the output
// schema, the predicates and the rules on outputs, as they are asked of all of it
// when the act has ended. The error is what they would withhold it for; a hand that
// gives its output piece by piece then gives no more. Nothing of it is recorded:
// what is in the end, and by whom it was refused, the crossing's own K8 says.
// Outside an act it is an error.
func JudgeSoFar(ctx context.Context, out holdfast.Output) error {
	in, ok := current(ctx)
	if !ok || in.soFar == nil {
		return &holdfast.Error{Kind: holdfast.KindEval, Gate: holdfast.K8, Why: "no act is under way whose output could be judged"}
	}
	return in.soFar(ctx, out)
}

// judgeSoFar is JudgeSoFar of an act that is about to begin. It works on a copy of
// the judgement: the crossing may leave an act behind.
func (c *crossing) judgeSoFar() func(context.Context, holdfast.Output) error {
	asked := *c.j
	return func(ctx context.Context, out holdfast.Output) error {
		j := asked
		j.spoke = nil
		j.fetchForOutput(ctx)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateTime)
		defer cancel()
		_, err := j.evalOutput(ctx, out)
		return err
	}
}
