package constitution

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
)

// inner compiles an expression that reads a past crossing. The whole source is
// parsed anew and cut down to it, so that every place stays what it is.
func (r *pastReader) inner(name string, e ast.Expr) *expression {
	nested := false
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(n ast.Expr) {
		if n.Kind() == ast.CallKind && !n.AsCall().IsMemberFunction() && n.AsCall().FunctionName() == pastRoot && !nested {
			nested = true
			r.failLink(link{id: n.ID(), name: pastRoot}, "a past function within a past function", "a past crossing knows nothing of its own past")
		}
	}))
	if nested {
		return nil
	}
	env := r.lang.bare
	parsed, found := parse(env, r.source)
	if len(found) > 0 {
		r.problems = append(r.problems, found...)
		return nil
	}
	rep := parsed.NativeRep()
	var same ast.Expr
	ast.PostOrderVisit(rep.Expr(), ast.NewExprVisitor(func(n ast.Expr) {
		if n.ID() == e.ID() {
			same = n
		}
	}))
	if same == nil {
		r.failAt(e.ID(), "the expression cannot be read", "")
		return nil
	}
	if o, ok := rep.SourceInfo().GetOffsetRange(same.ID()); ok {
		rep.SourceInfo().SetOffsetRange(rep.Expr().ID(), o)
	}
	rep.Expr().SetKindCase(same)
	want, wants := anything, "a value"
	switch name {
	case pastWhere:
		want, wants = isBool, "true or false"
	case pastSum, pastNet:
		want, wants = isAmount, "a number"
	}
	out, found := compileParsed(env, parsed, r.source, want, wants)
	for _, p := range found {
		r.problems = append(r.problems, r.aboutPast(name, e, p))
	}
	return out
}

// aboutPast says of an inner expression's problem that it is one, where its
// words would not.
func (r *pastReader) aboutPast(name string, e ast.Expr, p problem) problem {
	if p.line == 1 && p.col == 0 {
		at := r.info.GetStartLocation(e.ID())
		p.line, p.col = at.Line(), at.Column()
	}
	if unknown, ok := strings.CutPrefix(p.why, "there is no "); ok {
		variable := strings.Trim(unknown, `"`)
		if slices.Contains(r.scope, variable) {
			p.why = fmt.Sprintf("%s of past cannot know %q", name, variable)
			p.hint = "it reads the past crossing; what a macro around it walks is not there"
		}
	}
	return p
}

func anything(*cel.Type) bool { return true }

func isAmount(t *cel.Type) bool { return isNumber(t) || t.IsExactType(cel.UintType) }

// identify hashes what must be remembered to answer.
func (r *pastReader) identify(p *Past, links []link) string {
	parts := []string{p.Boundary, p.Window.String()}
	var same []string
	where, field := "", ""
	for _, l := range links[1:] {
		switch l.name {
		case pastWhere:
			where = written(l.args[0])
		case pastSame:
			same = append(same, written(l.args[0]))
		default: // whatever reads a field; the others take nothing
			if len(l.args) == 1 {
				field = l.name + " " + written(l.args[0])
			}
		}
	}
	return digest(append(append(parts, where, field), same...)...)
}

// written is an expression in a form that two have only if they ask the
// same, whatever their layout.
func written(e ast.Expr) string {
	b, err := json.Marshal(tokens(e))
	if err != nil {
		return ""
	}
	return string(b)
}

func tokens(e ast.Expr) []any {
	all := func(out []any, some ...ast.Expr) []any {
		for _, e := range some {
			out = append(out, tokens(e))
		}
		return out
	}
	switch e.Kind() {
	case ast.IdentKind:
		return []any{"name", e.AsIdent()}
	case ast.LiteralKind:
		return []any{"literal", e.AsLiteral().Type().TypeName(), fmt.Sprintf("%q", fmt.Sprint(e.AsLiteral().Value()))}
	case ast.SelectKind:
		s := e.AsSelect()
		return all([]any{"select", s.FieldName(), s.IsTestOnly()}, s.Operand())
	case ast.CallKind:
		c := e.AsCall()
		out := []any{"call", c.FunctionName(), c.IsMemberFunction()}
		if c.IsMemberFunction() {
			out = all(out, c.Target())
		}
		return all(out, c.Args()...)
	case ast.ListKind:
		return all([]any{"list", fmt.Sprint(e.AsList().OptionalIndices())}, e.AsList().Elements()...)
	case ast.MapKind:
		out := []any{"map"}
		for _, entry := range e.AsMap().Entries() {
			m := entry.AsMapEntry()
			out = all(append(out, m.IsOptional()), m.Key(), m.Value())
		}
		return out
	case ast.StructKind:
		out := []any{"struct", e.AsStruct().TypeName()}
		for _, field := range e.AsStruct().Fields() {
			f := field.AsStructField()
			out = all(append(out, f.Name(), f.IsOptional()), f.Value())
		}
		return out
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return all([]any{"walk", c.IterVar(), c.IterVar2(), c.AccuVar()}, c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	}
	return []any{"nothing"}
}

// expressions are those that read past crossings.
func (p *Past) expressions() []*expression {
	var out []*expression
	if p.where != nil {
		out = append(out, p.where)
	}
	out = append(out, p.same...)
	if p.field != nil {
		out = append(out, p.field)
	}
	return out
}
