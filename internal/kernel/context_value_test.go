package kernel

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestOneContextValue: a context tells the kernel which crossing a call is inside of (D1),
// and nothing else.
func TestOneContextValue(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "WithValue" && (sel.Sel.Name != "Value" || len(call.Args) != 1) {
				return true
			}
			key, ok := call.Args[len(call.Args)/2].(*ast.CompositeLit)
			if !ok {
				return true // the Value of something else
			}
			if name, ok := key.Type.(*ast.Ident); !ok || name.Name != "insideKey" {
				t.Errorf("%s: a context value under %v", f.Name(), key.Type)
			}
			found++
			return true
		})
	}
	if found != 2 {
		t.Errorf("%d uses of insideKey, expected 2: where it is set and where it is read", found)
	}
}
