package constitution

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// exact is a sum, and what arithmetic makes of it. Doubles would lose cents,
// and CEL adds no int to a double; so a rule's arithmetic with a sum is carried
// out in fractions, and what it is compared with is taken at its decimal form.
type exact struct{ *big.Rat }

var _ ref.Val = exact{}

func exactType() *cel.Type { return cel.OpaqueType("exact number") }

// maxExactBits bounds a numerator or denominator.
const maxExactBits = 4_096

func newExact(r *big.Rat) ref.Val {
	if r.Num().BitLen() > maxExactBits || r.Denom().BitLen() > maxExactBits {
		return types.NewErr("overflow")
	}
	return exact{r}
}

func fromMillionths(n int64) ref.Val { return exact{big.NewRat(n, 1_000_000)} }

// ConvertToNative implements ref.Val.
func (e exact) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("an exact number is no %v", t)
}

// ConvertToType implements ref.Val.
func (e exact) ConvertToType(ref.Type) ref.Val { return types.NewErr("no such overload") }

// Equal implements ref.Val.
func (e exact) Equal(other ref.Val) ref.Val {
	r, err := toExact(other)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(e.Cmp(r) == 0)
}

// Type implements ref.Val.
func (e exact) Type() ref.Type { return exactType() }

// Value implements ref.Val.
func (e exact) Value() any { return e.Rat }

// toExact takes a double at its shortest decimal form, which is what was written.
func toExact(v ref.Val) (*big.Rat, error) {
	switch v := v.(type) {
	case exact:
		return v.Rat, nil
	case types.Int:
		return new(big.Rat).SetInt64(int64(v)), nil
	case types.Uint:
		return new(big.Rat).SetUint64(uint64(v)), nil
	case types.Double:
		f := float64(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, &failure.Failure{Kind: failure.ErrEval, Text: "a value is not a number"}
		}
		if r, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64)); ok {
			return r, nil
		}
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("no such overload")
}

// The names that a rule's operators get where one side is exact. No rule can
// write them.
const (
	exactOf     = "@exact.of"
	exactDouble = "@exact.double"
	exactNegate = "@exact.-_"
)

// exactOperators are the operators with two sides that a sum may stand in: what
// they become, and whether the result is a number too.
func exactOperators() map[string]struct {
	name   string
	number bool
} {
	out := map[string]struct {
		name   string
		number bool
	}{}
	for _, op := range []string{operators.Add, operators.Subtract, operators.Multiply} {
		out[op] = struct {
			name   string
			number bool
		}{"@exact." + op, true}
	}
	for _, op := range []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Equals, operators.NotEquals} {
		out[op] = struct {
			name   string
			number bool
		}{"@exact." + op, false}
	}
	return out
}

// exactFunctions declares the arithmetic. Each is declared for the pairs of
// types it is made for, so that a sum that is compared with a text is refused
// when the rule is loaded.
func exactFunctions() []cel.EnvOption {
	number := exactType()
	var out []cel.EnvOption
	for op, to := range exactOperators() {
		result := cel.BoolType
		if to.number {
			result = number
		}
		options := []cel.FunctionOpt{cel.SingletonBinaryBinding(exactBinary(op))}
		for _, t := range []*cel.Type{number, cel.IntType, cel.UintType, cel.DoubleType} {
			options = append(options, cel.Overload(to.name+" with "+t.String(), []*cel.Type{number, t}, result))
			if t != number {
				options = append(options, cel.Overload(to.name+" after "+t.String(), []*cel.Type{t, number}, result))
			}
		}
		out = append(out, cel.Function(to.name, options...))
	}
	one := func(name string, result *cel.Type, f func(ref.Val) ref.Val, args ...*cel.Type) {
		options := []cel.FunctionOpt{cel.SingletonUnaryBinding(f)}
		for _, t := range args {
			options = append(options, cel.Overload(name+" "+t.String(), []*cel.Type{t}, result))
		}
		out = append(out, cel.Function(name, options...))
	}
	one(exactOf, number, exactUnary(newExact), number, cel.IntType, cel.UintType, cel.DoubleType)
	one(exactNegate, number, exactUnary(func(r *big.Rat) ref.Val { return newExact(new(big.Rat).Neg(r)) }), number)
	one(exactDouble, cel.DoubleType, exactUnary(func(r *big.Rat) ref.Val {
		f, _ := r.Float64()
		return types.Double(f)
	}), number)
	return out
}

func exactUnary(f func(*big.Rat) ref.Val) func(ref.Val) ref.Val {
	return func(v ref.Val) ref.Val {
		r, err := toExact(v)
		if err != nil {
			return types.WrapErr(err)
		}
		return f(r)
	}
}

func exactBinary(op string) func(ref.Val, ref.Val) ref.Val {
	return func(left, right ref.Val) ref.Val {
		a, err := toExact(left)
		if err != nil {
			return types.WrapErr(err)
		}
		b, err := toExact(right)
		if err != nil {
			return types.WrapErr(err)
		}
		switch op {
		case operators.Add:
			return newExact(new(big.Rat).Add(a, b))
		case operators.Subtract:
			return newExact(new(big.Rat).Sub(a, b))
		case operators.Multiply:
			return newExact(new(big.Rat).Mul(a, b))
		}
		return exactCompare(op, a.Cmp(b))
	}
}

func exactCompare(op string, c int) ref.Val {
	switch op {
	case operators.Less:
		return types.Bool(c < 0)
	case operators.LessEquals:
		return types.Bool(c <= 0)
	case operators.Greater:
		return types.Bool(c > 0)
	case operators.GreaterEquals:
		return types.Bool(c >= 0)
	case operators.Equals:
		return types.Bool(c == 0)
	case operators.NotEquals:
		return types.Bool(c != 0)
	}
	return types.NewErr("no such overload")
}
