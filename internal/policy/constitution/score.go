package constitution

import (
	"context"
	"errors"
	"fmt"
	"math"

	"cel.dev/cel-go/common/types"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// Score is an expression over the request that yields how sure one may be that
// it is right, from 0 to 1 (K7). It never changes and may be shared.
type Score struct {
	where     string
	expr      *expression
	low, high float64 // what it may yield
}

// CompileScore compiles a contract's confidence expression; where is
// "file:line" of the contract. The names are those of a rule on request. An
// error is a *holdfast.Error of KindConfidence, or several joined.
func CompileScore(expr, where string) (*Score, error) { return compileScore(expr, where, 0, 1) }

// CompileCriterion compiles one of the five criteria of a judge that is written
// in rules: as CompileScore, but from 1 to 5 (spec 001, layer 2).
func CompileCriterion(expr, where string) (*Score, error) { return compileScore(expr, where, 1, 5) }

func compileScore(expr, where string, low, high float64) (*Score, error) {
	lang, err := newLanguage()
	if err != nil {
		return nil, err
	}
	e, problems := compile(lang.bare, expr, isNumber, "a number")
	var all []error
	for _, p := range problems {
		at := fmt.Sprintf("%s: at %d:%d", where, p.line, p.col+1)
		all = append(all, &holdfast.Error{Kind: holdfast.KindConfidence, Gate: holdfast.K7, Rule: where,
			Why: at + ": " + p.why, Hint: p.hint})
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	return &Score{where: where, expr: e, low: low, high: high}, nil
}

// Where is the contract's place, "file:line".
func (s *Score) Where() string { return s.where }

// Eval returns the score. NaN, a value outside its range and a value that is no
// number are ErrValue; other failures are ErrCost, ErrTimeout, ErrEval or
// ErrType. A failing score is no score: the caller denies (D3, D37).
func (s *Score) Eval(ctx context.Context, f Facts) (float64, error) {
	if s == nil || s.expr == nil {
		return math.NaN(), &failure.Failure{Kind: failure.ErrEval, Text: "no expression"}
	}
	v, _, err := s.expr.eval(ctx, &facts{Facts: f, on: OnRequest}, MaxRuleCost)
	if err != nil {
		return math.NaN(), err
	}
	var score float64
	switch v := v.(type) {
	case types.Double:
		score = float64(v)
	case types.Int:
		score = float64(v)
	default:
		return math.NaN(), &failure.Failure{Kind: failure.ErrValue}
	}
	if math.IsNaN(score) || score < s.low || score > s.high {
		return math.NaN(), &failure.Failure{Kind: failure.ErrValue}
	}
	return score, nil
}
