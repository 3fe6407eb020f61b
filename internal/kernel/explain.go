package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast"
)

// Check says what would happen to req: the gates are asked in order until one
// denies, and nothing is recorded, reserved or held.
func (k *Kernel) Check(ctx context.Context, req holdfast.Request) (*holdfast.Outcome, error) {
	return k.wouldBe(ctx, req, false)
}

// Explain asks all eight gates without stopping and returns their eight
// opinions, and halt's where everything is halted. Nothing is recorded.
func (k *Kernel) Explain(ctx context.Context, req holdfast.Request) (*holdfast.Outcome, error) {
	return k.wouldBe(ctx, req, true)
}

func (k *Kernel) wouldBe(ctx context.Context, req holdfast.Request, all bool) (*holdfast.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, edgeTime)
	defer cancel()
	parent, _ := current(ctx)
	c := &crossing{k: k, caller: ctx, out: holdfast.Outcome{Boundary: req.Boundary}}
	j, err := k.make(ctx, &req, parent, byCaller)
	if err != nil {
		return c.outcome(), err
	}
	c.j, j.looks = j, true
	k.fetch(ctx, j)
	op := j.before()
	if op != nil {
		j.opinions = append(j.opinions, *op)
	}
	if op == nil || all {
		judgeAll(ctx, j, all)
	}
	out := c.outcome()
	out.Crossing = "" // nothing was made that could be found by it
	out.Verdict = j.verdict()
	if op != nil {
		out.Verdict = holdfast.Deny
	}
	if out.Verdict == holdfast.Hold && j.human.Review != nil {
		out.Review, out.Expires = j.human.Review.ID, j.human.Review.Expires
	}
	return out, nil
}
