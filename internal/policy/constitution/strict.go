package constitution

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// strictness is what a condition compares whose class only the payload decides, by
// the ids of the expressions.
type strictness struct {
	// values must be of a class; where they are what a macro walks, they must
	// only hold no other values, where the class does not.
	values map[int64]wanted
	// lists are calls that look for a plain value in a list: where it is not
	// found, no element may hold other values.
	lists map[int64]bool
}

type wanted struct {
	is     class
	walked bool
}

// strict finds what a condition compares with something of one known class. In CEL
// a text never equals a number: `args.amount == 100` would be silent where an agent
// writes "100", and `args.to in ["eve"]` where it writes ["eve"]. Such a value of
// another class is an error instead, and so a denial (D3), wherever in a payload it
// stands. What a macro walks and what in searches may be mixed texts, numbers and
// truths, but no list or object may hide one. What is compared with null or with
// another value of no known class is compared as CEL does.
func strict(checked *cel.Ast) strictness {
	out := strictness{values: map[int64]wanted{}, lists: map[int64]bool{}}
	note := func(e ast.Expr, c class) {
		if c != classAny && dynamic(checked, e) {
			out.values[e.ID()] = wanted{c, walked(e)}
		}
	}
	search := func(call, list ast.Expr, c class) {
		if (c == classText || c == classNumber || c == classTruth) && (dynamic(checked, list) || dynamicList(checked, list)) {
			out.lists[call.ID()] = true
		}
	}
	ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		a, b := e.AsCall().Args()[0], e.AsCall().Args()[1]
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			note(a, knownClass(checked, b))
			note(b, knownClass(checked, a))
		case operators.In:
			note(a, elementClass(checked, b))
			search(e, b, knownClass(checked, a))
		case "sets.contains":
			search(e, a, elementClass(checked, b))
		case "sets.intersects":
			search(e, a, elementClass(checked, b))
			search(e, b, elementClass(checked, a))
		}
	}))
	return out
}

// dynamic says whether only the payload decides what an expression is.
func dynamic(checked *cel.Ast, e ast.Expr) bool {
	t := checked.NativeRep().GetType(e.ID())
	return t != nil && t.Kind() == types.DynKind
}

func dynamicList(checked *cel.Ast, e ast.Expr) bool {
	t := checked.NativeRep().GetType(e.ID())
	return t != nil && t.Kind() == types.ListKind && len(t.Parameters()) == 1 && t.Parameters()[0].Kind() == types.DynKind
}

// walked says whether an expression is the variable of a macro, by its name: what
// is not one of the facts.
func walked(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() != "args" && e.AsIdent() != "output" && e.AsIdent() != factsVariable && !On(e.AsIdent()).goals()
}

// knownClass is the class that every value of an expression has, if that is known.
func knownClass(checked *cel.Ast, e ast.Expr) class {
	return classOfType(checked.NativeRep().GetType(e.ID()))
}

func elementClass(checked *cel.Ast, list ast.Expr) class {
	t := checked.NativeRep().GetType(list.ID())
	if t == nil || t.Kind() != types.ListKind || len(t.Parameters()) != 1 {
		return classAny
	}
	return classOfType(t.Parameters()[0])
}

func classOfType(t *types.Type) class {
	if t == nil {
		return classAny
	}
	switch t.Kind() {
	case types.StringKind:
		return classText
	case types.IntKind, types.UintKind, types.DoubleKind:
		return classNumber
	case types.BoolKind:
		return classTruth
	case types.ListKind:
		return classList
	case types.MapKind:
		return classObject
	case types.TimestampKind, types.DurationKind, types.BytesKind:
		return classTime
	}
	return classAny
}

func classOfValue(v ref.Val) class {
	switch v.(type) {
	case types.String:
		return classText
	case types.Int, types.Uint, types.Double:
		return classNumber
	case types.Bool:
		return classTruth
	case types.Null:
		return classNull
	case traits.Mapper:
		return classObject
	case traits.Lister:
		return classList
	}
	return classAny
}

// ofClass is a value that must be of one class.
type ofClass struct {
	interpreter.InterpretableV2
	want wanted
}

// Exec implements interpreter.InterpretableV2.
func (o *ofClass) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return o.check(o.InterpretableV2.Exec(frame))
}

// Eval implements interpreter.Interpretable.
func (o *ofClass) Eval(a interpreter.Activation) ref.Val {
	return o.check(o.InterpretableV2.Eval(a))
}

func (o *ofClass) check(v ref.Val) ref.Val {
	is := classOfValue(v)
	if is == classAny || is == o.want.is || o.want.walked && !holds(is) {
		return v
	}
	return types.WrapErr(&failure.Failure{Kind: failure.ErrEval,
		Text: fmt.Sprintf("what is compared with %s is %s", o.want.is, is)})
}

// holds says whether values of a class hold others.
func holds(c class) bool { return c == classList || c == classObject }

// guardSearch makes a search that finds nothing an error where a list or an object
// stands among what was searched.
func guardSearch(call interpreter.InterpretableCall, impl functions.FunctionOp) interpreter.InterpretableV2 {
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		found := impl(args...)
		if found != types.False {
			return found
		}
		for _, a := range args {
			list, ok := a.(traits.Lister)
			if !ok {
				continue
			}
			for it := list.Iterator(); it.HasNext() == types.True; {
				if is := classOfValue(it.Next()); holds(is) {
					return types.WrapErr(&failure.Failure{Kind: failure.ErrEval,
						Text: fmt.Sprintf("among what is searched for a value is %s", is)})
				}
			}
		}
		return found
	})
}
