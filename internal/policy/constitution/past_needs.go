package constitution

import "cel.dev/cel-go/common/ast"

// Reads says whether See reads a name such as "args" or "payload_size": who judges
// a crossing of long ago may not know them all.
func (p *Past) Reads(name string) bool {
	found := false
	for _, e := range p.expressions() {
		ast.PreOrderVisit(e.checked.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
			found = found || x.Kind() == ast.IdentKind && x.AsIdent() == name
		}))
	}
	return found
}
