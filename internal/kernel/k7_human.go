package kernel

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// k7Human asks whether a person must answer first (spec 003 section 1.8, D11,
// D37). Risk decides before confidence: PROHIBITED never, HIGH always.
func k7Human(ctx context.Context, j *judgement) holdfast.Opinion {
	c := j.contract
	if c == nil {
		return deny(holdfast.K7, holdfast.KindValue, "an unlisted boundary has no operation type and no threshold", "")
	}
	if j.isUnruled() {
		return allow(holdfast.K7, "PASS", c.Source, j.own.Unasked)
	}
	risk := j.risk()
	if risk == holdfast.Prohibited {
		why, rule := j.prohibition()
		op := deny(holdfast.K7, holdfast.KindProhibited, why, "nobody can approve it; only a contract with another risk opens it")
		op.State, op.Rule = "FAULTED", rule
		return op
	}
	if c.BoundsErr != nil {
		return refusal(holdfast.K7, "FAULTED", c.BoundsErr)
	}
	if j.replay != nil {
		return allow(holdfast.K7, "PASS", "replay", "what was settled is given back; nothing is done")
	}
	if j.own != nil && j.own.Unasked != "" {
		return allow(holdfast.K7, "PASS", c.Source, j.own.Unasked)
	}
	limit := c.ThresholdFor(risk)
	j.limit = &limit
	score, err := confidence(ctx, j)
	if err != nil {
		op := refusal(holdfast.K7, "FAULTED", err)
		op.Rule = c.Source
		return op
	}
	j.score = score
	switch {
	case risk == holdfast.High:
		j.reason = review.CauseRisk
		return askPerson(holdfast.K7, c.Source, review.AlwaysAsked)
	case score != nil && *score < limit:
		return askPerson(holdfast.K7, c.Source, fmt.Sprintf("the confidence %.2f is below %.2f", *score, limit))
	}
	return allow(holdfast.K7, "PASS", c.Source, passWhy(risk, score, limit))
}

func passWhy(r holdfast.Risk, score *float64, limit float64) string {
	if score == nil {
		return "the risk is " + r.String()
	}
	return fmt.Sprintf("the confidence %.2f reaches %.2f", *score, limit)
}

// confidence returns the score, or nil where the contract asks none. A source
// that fails denies (D37).
func confidence(ctx context.Context, j *judgement) (*float64, error) {
	c := j.contract
	var v float64
	switch {
	case c.Confidence == "" || c.Confidence == "none":
		return nil, nil
	case c.Confidence == "declared":
		if j.req.Confidence == nil {
			return nil, &holdfast.Error{Kind: holdfast.KindConfidence, Gate: holdfast.K7, Why: "the boundary's evaluator declared no confidence"}
		}
		v = *j.req.Confidence
	case c.ScoreErr != nil:
		return nil, &holdfast.Error{Kind: holdfast.KindConfidence, Gate: holdfast.K7,
			Why: "the confidence expression is not usable", Err: c.ScoreErr}
	default:
		got, err := c.Score.Eval(ctx, j.facts())
		if err != nil {
			if errors.Is(err, failure.ErrValue) {
				return nil, &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K7, Why: outOfRange, Err: err}
			}
			j.k.log.Error("a confidence expression failed", "boundary", c.Boundary, "err", err)
			return nil, &holdfast.Error{Kind: holdfast.KindConfidence, Gate: holdfast.K7, Why: "the confidence expression failed", Err: err}
		}
		v = got
	}
	if math.IsNaN(v) || v < 0 || v > 1 {
		return nil, &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K7, Why: outOfRange}
	}
	return &v, nil
}

const outOfRange = "the confidence is not between 0 and 1"

// facts is what rules may see of the request.
func (j *judgement) facts() constitution.Facts {
	f := constitution.Facts{Boundary: j.req.Boundary, Who: j.who, Level: j.agent.Level,
		PayloadSize: len(j.req.Payload), Now: j.now, History: j.asks, Sights: j.sights, Fetched: j.fetched}
	if j.contract != nil {
		f.Operation, f.Risk = j.contract.Operation, j.risk()
	}
	if j.doc != nil {
		f.Payload = j.doc.Value()
	}
	return f
}
