package constitution

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// pastVariable gives the request that is being judged to the calls that stand
// for past functions. No rule can write its name or theirs.
const pastVariable = "@request"

func pastCall(kind string) string { return "@past." + kind }

func askingType() *cel.Type { return cel.OpaqueType("request") }

// pastDeclarations declares the calls that stand for past functions.
func pastDeclarations() []cel.EnvOption {
	out := append(exactFunctions(), cel.Variable(pastVariable, askingType()))
	for kind, result := range map[string]*cel.Type{
		pastHappened: cel.BoolType, pastCount: cel.IntType, pastSum: exactType(), pastNet: exactType(),
		pastLast: cel.TimestampType, pastDistinct: cel.IntType,
	} {
		name := pastCall(kind)
		out = append(out, cel.Function(name, cel.Overload(name, []*cel.Type{askingType(), cel.IntType}, result,
			cel.BinaryBinding(func(who, which ref.Val) ref.Val {
				a, ok := who.(asking)
				n, number := which.(types.Int)
				if !ok || !number {
					return types.MaybeNoSuchOverloadErr(who)
				}
				return a.past(int(n))
			}))))
	}
	return out
}

// internal says whether a name is one of those that no rule can write.
func internal(name string) bool { return strings.HasPrefix(name, "@") }

// pastUnits is the registered cost of a function, if it is one of ours.
func pastUnits(function string) (uint64, bool) {
	switch {
	case strings.HasPrefix(function, "@past."):
		return PastCost, true
	case strings.HasPrefix(function, "@exact."):
		return 20, true // about a microsecond, in units of 50 ns
	}
	return 0, false
}

// asking is the request that is being judged, as a value.
type asking struct{ act *facts }

var _ ref.Val = asking{}

// ConvertToNative implements ref.Val.
func (asking) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a request is no %v", t)
}

// ConvertToType implements ref.Val.
func (asking) ConvertToType(ref.Type) ref.Val { return types.NewErr("no such overload") }

// Equal implements ref.Val.
func (asking) Equal(ref.Val) ref.Val { return types.NewErr("no such overload") }

// Type implements ref.Val.
func (asking) Type() ref.Type { return askingType() }

// Value implements ref.Val.
func (a asking) Value() any { return a.act }

// past answers a past function of the rule that is being judged.
func (a asking) past(n int) ref.Val {
	if a.act.rule == nil || n < 0 || n >= len(a.act.rule.pasts) {
		return types.WrapErr(&failure.Failure{Kind: failure.ErrEval, Text: "there is no such past function"})
	}
	p := a.act.rule.pasts[n]
	answer, err := a.act.ask(p)
	if err != nil {
		return types.WrapErr(err)
	}
	switch p.kind {
	case pastHappened:
		return types.Bool(answer.Count > 0)
	case pastCount:
		return types.Int(answer.Count)
	case pastSum, pastNet:
		return fromMillionths(answer.Sum)
	case pastDistinct:
		return types.Int(answer.Distinct)
	case pastLast:
		if answer.Last.IsZero() {
			return types.WrapErr(&failure.Failure{Kind: failure.ErrEval, Text: "last of " + p.Text +
				": there was none; ask happened() first"})
		}
		return types.Timestamp{Time: answer.Last}
	}
	return types.WrapErr(&failure.Failure{Kind: failure.ErrEval, Text: "there is no such past function"})
}

// ask asks the history once for each ID, so that rules that are judged together
// judge the same.
func (a *facts) ask(p *Past) (Answer, error) {
	if got, ok := a.asked[p.ID]; ok {
		return got.answer, got.err
	}
	answer, err := a.askOnce(p)
	if a.asked == nil {
		a.asked = map[string]asked{}
	}
	a.asked[p.ID] = asked{answer, err}
	return answer, err
}

type asked struct {
	answer Answer
	err    error
}

func (a *facts) askOnce(p *Past) (Answer, error) {
	if a.History == nil {
		return Answer{}, untold(p, errors.New("there is no history here"))
	}
	group, cost, err := p.group(a.ctx, a, a.left-min(a.inner, a.left))
	a.inner += cost
	if err != nil {
		return Answer{}, err
	}
	answer, err := a.History.Ask(p, group, a.Now)
	if err != nil {
		return Answer{}, untold(p, err)
	}
	return answer, nil
}

// untold is the failure of a history. Its words are the history's, not an
// agent's.
func untold(p *Past, err error) error {
	return &failure.Failure{Kind: failure.ErrEval, Text: failure.ErrHistory.Error() + " for " + p.Text + ": " +
		err.Error(), Cause: errors.Join(failure.ErrHistory, err)}
}
