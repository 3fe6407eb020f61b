package constitution

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// Needs is what of a payload something reads, for who judges a crossing of long
// ago of which not everything is known.
type Needs struct {
	// Members are the names of the members of args that it reads, sorted.
	Members []string
	// All says that it may read any of them, or how many bytes they have.
	All bool
}

// Any says whether it reads one of these members, or anything at all where
// whole says that every member is meant.
func (n Needs) Any(members []string, whole bool) bool {
	if whole || n.All {
		return n.All || len(n.Members) > 0
	}
	return slices.ContainsFunc(n.Members, func(m string) bool { return slices.Contains(members, m) })
}

// Needs is what the rule with that id reads of a request's payload: its condition,
// and its past functions of the request itself. All of it where no rule has the id.
func (s *Set) Needs(id string) Needs {
	r := s.named[id]
	if r == nil || r.expr == nil {
		return Needs{All: true}
	}
	of := []*expression{r.expr}
	for _, p := range r.pasts {
		of = append(of, p.expressions()...)
	}
	return needs(of)
}

// Needs is what See reads of a payload.
func (p *Past) Needs() Needs { return needs(p.expressions()) }

func needs(of []*expression) Needs {
	var out Needs
	named := map[string]bool{}
	whole, single := 0, 0 // how often args is named, and with one member
	for _, e := range of {
		ast.PreOrderVisit(e.checked.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
			switch x.Kind() {
			case ast.IdentKind:
				out.All = out.All || x.AsIdent() == "payload_size"
				if x.AsIdent() == "args" {
					whole++
				}
			case ast.SelectKind:
				if s := x.AsSelect(); isArgs(s.Operand()) {
					named[s.FieldName()] = true
					single++
				}
			case ast.CallKind:
				c := x.AsCall()
				if c.FunctionName() != operators.Index || len(c.Args()) != 2 || !isArgs(c.Args()[0]) || c.Args()[1].Kind() != ast.LiteralKind {
					break
				}
				if name, ok := c.Args()[1].AsLiteral().Value().(string); ok {
					named[name] = true
					single++
				}
			}
		}))
	}
	out.All = out.All || whole > single
	for name := range named {
		out.Members = append(out.Members, name)
	}
	slices.Sort(out.Members)
	return out
}

func isArgs(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "args" }
