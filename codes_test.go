package holdfast_test

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// TestErrorCodesAreInOneTable: no other code than internal/leaf/errorcode goes from the kind
// of an error to an HTTP status, a gRPC code or an exit code.
func TestErrorCodesAreInOneTable(t *testing.T) {
	sources(t, func(path string, f *ast.File, fset *token.FileSet) {
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CaseClause)
			if !ok || !namesKind(c.List) {
				return true
			}
			for _, s := range c.Body {
				if pos := findCode(s); pos.IsValid() {
					t.Errorf("%s: the codes of a kind belong in internal/leaf/errorcode", fset.Position(pos))
				}
			}
			return true
		})
	})
}

// namesKind reports whether a case is about a kind of error.
func namesKind(list []ast.Expr) (found bool) {
	for _, e := range list {
		ast.Inspect(e, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			found = found || ok && isPackage(s.X, "holdfast") && strings.HasPrefix(s.Sel.Name, "Kind")
			return true
		})
	}
	return found
}

// findCode returns the place of a code in a statement.
func findCode(s ast.Stmt) (pos token.Pos) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if isPackage(n.X, "http") && strings.HasPrefix(n.Sel.Name, "Status") || isPackage(n.X, "codes") {
				pos = n.Pos()
			}
		case *ast.Ident:
			if rest, ok := strings.CutPrefix(n.Name, "exit"); ok && rest != "" && token.IsExported(rest) {
				pos = n.Pos()
			}
		}
		return true
	})
	return pos
}

func isPackage(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
