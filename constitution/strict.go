package constitution

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// strict finds the members of a payload that a condition compares with something
// of one known class, by the ids of their expressions. In CEL a text never equals
// a number: `args.amount == 100` would be silent where an agent writes "100", and
// `args.to in ["eve"]` where it writes ["eve"]. Such a member of another class is
// an error instead, and so a denial (D3). What a macro walks may be mixed and is
// compared as CEL does, and so is what is compared with null or with another
// member.
func strict(checked *cel.Ast) map[int64]class {
	var out map[int64]class
	note := func(e ast.Expr, c class) {
		if c == classAny || !rooted(e) {
			return
		}
		if out == nil {
			out = map[int64]class{}
		}
		out[e.ID()] = c
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
		}
	}))
	return out
}

// rooted says whether an expression is a member of a payload, an output or a
// subject.
func rooted(e ast.Expr) bool {
	for depth := 0; ; depth++ {
		switch e.Kind() {
		case ast.SelectKind:
			if e.AsSelect().IsTestOnly() {
				return false
			}
			e = e.AsSelect().Operand()
		case ast.CallKind:
			if e.AsCall().FunctionName() != operators.Index {
				return false
			}
			e = e.AsCall().Args()[0]
		case ast.IdentKind:
			name := e.AsIdent()
			return depth > 0 && (name == "args" || name == "output" || On(name).goals())
		default:
			return false
		}
	}
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

// ofClass is a member that must be of one class.
type ofClass struct {
	interpreter.InterpretableV2
	want class
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
	if is := classOfValue(v); is != classAny && is != o.want {
		return types.WrapErr(&failure{kind: ErrEval, text: fmt.Sprintf("what is compared with %s is %s", o.want, is)})
	}
	return v
}
