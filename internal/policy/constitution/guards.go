package constitution

import (
	"regexp"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// maxSteps bounds one call of a function whose work is not linear in its
// arguments. CEL counts the cost of a call after it was made and never looks
// at the context inside one, so such calls are measured before.
const maxSteps = 10_000_000

// guards returns a decorator that measures the calls that need it, and checks what
// is compared.
func guards(env *cel.Env, checked *cel.Ast) interpreter.InterpretableDecoratorV2 {
	classes := strict(checked)
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if want, ok := classes.values[i.ID()]; ok {
			return &ofClass{i, want}, nil
		}
		call, ok := i.(interpreter.InterpretableCall)
		if !ok {
			return i, nil
		}
		if call.Function() == "matches" {
			return guardMatches(call)
		}
		steps := stepsOf(call.Function())
		if steps == nil && !classes.lists[call.ID()] {
			return i, nil
		}
		impl := implementation(env, call)
		if impl == nil {
			// Not to know how a function is carried out is a reason
			// to refuse the rule.
			return nil, &failure.Failure{Kind: failure.ErrEval, Text: "no implementation of " + call.Function()}
		}
		measured := func(args ...ref.Val) ref.Val {
			if steps != nil && steps(args) > maxSteps {
				return types.WrapErr(failure.ErrCost)
			}
			return impl(args...)
		}
		if classes.lists[call.ID()] {
			return guardSearch(call, measured), nil
		}
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), measured), nil
	}
}

// guardMatches compiles a pattern once. Go's matcher is linear in the text
// times the pattern's instructions.
func guardMatches(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	args := call.Args()
	if len(args) != 2 {
		return nil, &failure.Failure{Kind: failure.ErrEval, Text: "matches wants a text and a pattern"}
	}
	literal, ok := args[1].(interpreter.InterpretableConst)
	if !ok {
		return nil, &failure.Failure{Kind: failure.ErrEval, Text: "the pattern of matches must be written out"}
	}
	pattern, ok := literal.Value().(types.String)
	if !ok {
		return nil, &failure.Failure{Kind: failure.ErrEval, Text: "the pattern of matches must be a string"}
	}
	size, err := types.RegexProgramSize(string(pattern))
	if err != nil {
		return nil, err
	}
	if size > maxRegex {
		return nil, &failure.Failure{Kind: failure.ErrCost, Text: "the pattern is too large"}
	}
	re, err := regexp.Compile(string(pattern))
	if err != nil {
		return nil, err
	}
	match := func(v ...ref.Val) ref.Val {
		s, ok := v[0].(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(v[0])
		}
		if product(len(s), size) > maxSteps {
			return types.WrapErr(failure.ErrCost)
		}
		return types.Bool(re.MatchString(string(s)))
	}
	// Another name than matches, so that CEL's own optimisation does not put
	// an unmeasured matcher in its place.
	return &matchCall{InterpretableCall: interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), args, match)}, nil
}

// matchCall hides from later decorators that its call has a pattern.
type matchCall struct{ interpreter.InterpretableCall }

// Args hides the pattern: what is left is the text.
func (m *matchCall) Args() []interpreter.InterpretableV2 { return m.InterpretableCall.Args()[:1] }

// stepsOf returns how to measure a call of the function before it is made, or
// nil for a function that is linear.
func stepsOf(function string) func([]ref.Val) int {
	switch function {
	case "indexOf", "lastIndexOf":
		return func(a []ref.Val) int { return product(length(a, 0), length(a, 1)) }
	case "replace":
		return func(a []ref.Val) int { return product(length(a, 0), length(a, 2)) }
	case "split":
		return func(a []ref.Val) int { return product(length(a, 0), 10) }
	case "join":
		return func(a []ref.Val) int { return product(length(a, 0), length(a, 1)) }
	case "sets.contains", "sets.equivalent", "sets.intersects":
		return func(a []ref.Val) int { return product(product(length(a, 0), length(a, 1)), 10) }
	case "distinct", "reverse", "sort", "@sortByAssociatedKeys":
		return func(a []ref.Val) int { return quadratic(a) }
	}
	return nil
}

// quadratic measures functions that compare elements with each other; for a
// text, which they only walk, it is its length.
func quadratic(a []ref.Val) int {
	n := length(a, 0)
	if len(a) > 0 {
		if _, list := a[0].(traits.Lister); list {
			return product(product(n, n), 10)
		}
	}
	return n
}

// length is in bytes or elements and at least 1: nothing costs nothing.
func length(args []ref.Val, i int) int {
	if i >= len(args) {
		return 1
	}
	n := 0
	switch v := args[i].(type) {
	case types.String:
		n = len(v)
	case traits.Sizer:
		if size, ok := v.Size().(types.Int); ok {
			n = int(size)
		}
	}
	return max(n, 1)
}

// product multiplies and stops at the bound, so that it cannot overflow.
func product(a, b int) int {
	if b != 0 && a > maxSteps/b {
		return maxSteps + 1
	}
	return a * b
}

// implementation finds what carries out a call.
func implementation(env *cel.Env, call interpreter.InterpretableCall) functions.FunctionOp {
	decl, ok := env.Functions()[call.Function()]
	if !ok {
		return nil
	}
	bindings, err := decl.Bindings()
	if err != nil {
		return nil
	}
	for _, name := range []string{call.OverloadID(), call.Function()} {
		for _, b := range bindings {
			if b.Operator == name {
				if op := operation(b, len(call.Args())); op != nil {
					return op
				}
			}
		}
	}
	return nil
}

func operation(b *functions.Overload, args int) functions.FunctionOp {
	switch {
	case args == 1 && b.Unary != nil:
		return func(v ...ref.Val) ref.Val { return b.Unary(v[0]) }
	case args == 2 && b.Binary != nil:
		return func(v ...ref.Val) ref.Val { return b.Binary(v[0], v[1]) }
	case b.Function != nil:
		return b.Function
	}
	return nil
}
