package constitution

import (
	"context"
	"errors"
	"fmt"
	"math"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// Amount is an expression over the request that yields a whole number of at least
// zero, such as how many tokens it asks for. It never changes and may be shared.
type Amount struct{ expr *expression }

// Name is an expression over the request that yields a text that is not empty,
// such as a model's name.
type Name struct{ expr *expression }

// CompileAmount compiles an expression; where is "file:line". The names are those
// of a rule on request. An error is a *holdfast.Error of KindPredicateParse, or
// several joined.
func CompileAmount(expr, where string) (*Amount, error) {
	e, err := compileValue(expr, where, isNumber, "a number")
	return &Amount{e}, err
}

// CompileName is CompileAmount for a text.
func CompileName(expr, where string) (*Name, error) {
	e, err := compileValue(expr, where, func(t *cel.Type) bool { return t.IsExactType(cel.StringType) || t.IsExactType(cel.DynType) }, "a text")
	return &Name{e}, err
}

func compileValue(expr, where string, fits func(*cel.Type) bool, what string) (*expression, error) {
	lang, err := newLanguage()
	if err != nil {
		return nil, err
	}
	e, problems := compile(lang.bare, expr, fits, what)
	var all []error
	for _, p := range problems {
		all = append(all, &holdfast.Error{Kind: holdfast.KindPredicateParse, Gate: holdfast.K3, Rule: where,
			Why: fmt.Sprintf("%s: at %d:%d: %s", where, p.line, p.col+1, p.why), Hint: p.hint})
	}
	return e, errors.Join(all...)
}

// Eval returns the amount. What is no whole number from 0 to 2^53 is ErrValue:
// beyond that a number of JSON is not exact.
func (a *Amount) Eval(ctx context.Context, f Facts) (int64, error) {
	v, _, err := a.expr.eval(ctx, &facts{Facts: f, on: OnRequest}, MaxRuleCost)
	if err != nil {
		return 0, err
	}
	const exact = 1 << 53
	switch v := v.(type) {
	case types.Int:
		if v >= 0 && v <= exact {
			return int64(v), nil
		}
	case types.Uint:
		if v <= exact {
			return int64(v), nil
		}
	case types.Double:
		if f := float64(v); f >= 0 && f <= exact && f == math.Trunc(f) {
			return int64(f), nil
		}
	}
	return 0, &failure.Failure{Kind: failure.ErrValue}
}

// Eval returns the text.
func (n *Name) Eval(ctx context.Context, f Facts) (string, error) {
	v, _, err := n.expr.eval(ctx, &facts{Facts: f, on: OnRequest}, MaxRuleCost)
	if err != nil {
		return "", err
	}
	if s, ok := v.(types.String); ok && s != "" {
		return string(s), nil
	}
	return "", &failure.Failure{Kind: failure.ErrValue}
}
