// Package judge scores an action before it is done (spec 001, layer 2; D37), by rules of the
// constitution's language, a program, or a model behind an address. judge.go is the feature:
// it calls the judge that a contract names right before K7, and its opinion there follows from
// the scores. What a judge is given is data; only a whole answer of the right form is one.
package judge

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Rules is one expression for each criterion, in the order of review.Criteria.
// They need no I/O.
type Rules [5]*constitution.Score

// Score implements Judge.
func (r Rules) Score(ctx context.Context, of Request) (review.Scores, error) {
	var s review.Scores
	for i, e := range r {
		v, err := e.Eval(ctx, of.Facts)
		if err != nil {
			return review.Scores{}, err
		}
		s[i] = v
	}
	return s, s.Check()
}
