package holdfast_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// proseFields are the members that hold text for people: holdfast.Error, opinions, reviews,
// agents, findings and notices have them.
var proseFields = []string{"Why", "Hint"}

// searches are the functions that compare, search or split a text, by package.
var searches = map[string][]string{
	"strings": {
		"Contains", "ContainsAny", "ContainsFunc", "ContainsRune", "Count", "Cut", "CutPrefix", "CutSuffix",
		"EqualFold", "Fields", "FieldsFunc", "FieldsFuncSeq", "FieldsSeq", "HasPrefix", "HasSuffix",
		"Index", "IndexAny", "IndexByte", "IndexFunc", "IndexRune",
		"LastIndex", "LastIndexAny", "LastIndexByte", "LastIndexFunc", "Lines",
		"Split", "SplitAfter", "SplitAfterN", "SplitAfterSeq", "SplitN", "SplitSeq", "TrimPrefix", "TrimSuffix",
	},
	"slices": {"Contains", "Index"},
}

// oldRecords are the files that call review.ReadSentence, the one reader of the sentences by
// which code recognised conditions before 2026-11-27.
var oldRecords = []string{"internal/policy/pause/pause.go", "internal/policy/review/review.go"}

// proseLeft are the functions that go by text and have yet to change, by file. Delete a line
// with its place.
var proseLeft = map[string]string{}

// TestNoControlFlowByProse: code does not compare, search or split text that is written for
// people; a condition has a type or a code. Text is followed through the variables of one
// function, and not through arguments. Suites of tests look at text.
func TestNoControlFlowByProse(t *testing.T) {
	left := map[string]bool{}
	sources(t, func(path string, f *ast.File, fset *token.FileSet) {
		if isSuite(f) {
			return
		}
		for _, use := range findProse(f) {
			if use.function != "" && proseLeft[path] == use.function {
				left[path] = true
				continue
			}
			t.Errorf("%s: %s %s: give the condition a type or a code", fset.Position(use.pos), use.function, use.does)
		}
		if hasCall(f, "ReadSentence") != slices.Contains(oldRecords, path) {
			t.Errorf("%s: only oldRecords call ReadSentence, which reads records before 2026-11-27", path)
		}
	})
	for path, function := range proseLeft {
		if !left[path] {
			t.Errorf("proseLeft names %s of %s, which goes by text no longer", function, path)
		}
	}
}

// TestFindProse shows what TestNoControlFlowByProse finds.
func TestFindProse(t *testing.T) {
	for _, c := range []struct{ code, does string }{
		{`return strings.Contains(err.Error(), "full")`, "calls strings.Contains"},
		{`return strings.HasPrefix(e.Why, "it cannot be")`, "calls strings.HasPrefix"},
		{`return strings.HasSuffix(e.Hint, "doctor")`, "calls strings.HasSuffix"},
		{`return strings.Index(a.b.Why, ": ") > 0`, "calls strings.Index"},
		{`return len(strings.Split(e.Why, "; ")) > 1`, "calls strings.Split"},
		{`_, _, ok := strings.Cut((e.Why), ": "); return ok`, "calls strings.Cut"},
		{`return strings.EqualFold("paused", e.Why)`, "calls strings.EqualFold"},
		{`return strings.TrimPrefix(e.Why, "rule: ") != e.Rule`, "calls strings.TrimPrefix"},
		{`return strings.Contains(e.Rule+e.Why, "x")`, "calls strings.Contains"},
		{`return strings.Contains(string(e.Why), "x")`, "calls strings.Contains"},
		{`return slices.Contains(list, e.Why)`, "calls slices.Contains"},
		{`return e.Why == daily`, "compares"},
		{`return "x" != err.Error()`, "compares"},
		{`return err.Error() == ""`, "compares"},
		{`return strings.ToLower(e.Hint) == "x"`, "compares"},
		{`switch e.Why { case "x": return true }; return false`, "switches"},
		{`switch text { case err.Error(): return true }; return false`, "switches"},
		{`return known[e.Why]`, "looks up"},
		{`why := e.Why; return strings.Contains(why, "x")`, "calls strings.Contains"},
		{`text := err.Error(); why := "at " + text; return why == "at x"`, "compares"},
		{`var hint = e.Hint; return known[hint]`, "looks up"},
		{`kind, why := e.Kind, ""; why = e.Why; switch why { case "x": return true }; return false`, "switches"},

		{`return e.Why != "" && "" == e.Hint || e.Why == nil`, ""},
		{`return strings.Contains(e.Rule, "x")`, ""},
		{`return Finding{Why: e.Why, Hint: err.Error()} == zero`, ""},
		{`log(e.Why, "cause: "+err.Error()); return true`, ""},
		{`return errors.Is(err, errFull)`, ""},
		{`return d.Error("x") == ""`, ""},
		{`known[e.Rule] = e.Why; return true`, ""},
		{`why := e.Why; return why == "" || nil != why`, ""},
		{`rule, why := e.Rule, e.Why; log(why); return rule == "x"`, ""},
	} {
		src := "package x\n\nfunc look() bool {" + c.code + "}"
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		does, function := "", "look"
		for _, use := range findProse(f) {
			does, function = use.does, use.function
		}
		if does != c.does || function != "look" {
			t.Errorf("%s: found %q in %s, want %q", c.code, does, function, c.does)
		}
	}
}

// proseUse is a place that goes by text.
type proseUse struct {
	pos      token.Pos
	function string // "" outside of one
	does     string
}

// findProse returns the places of a file that go by text.
func findProse(f *ast.File) (out []proseUse) {
	for _, decl := range f.Decls {
		name := ""
		if fn, ok := decl.(*ast.FuncDecl); ok {
			name = fn.Name.Name
		}
		p := findProseVariables(decl)
		ast.Inspect(decl, func(n ast.Node) bool {
			if does := p.goesBy(n); does != "" {
				out = append(out, proseUse{n.Pos(), name, does})
			}
			return true
		})
	}
	return out
}

// prose are the variables of one function that hold text for people, by name.
type prose map[string]bool

// findProseVariables returns the variables that a function assigns text to, also by way of
// others.
func findProseVariables(decl ast.Decl) prose {
	p := prose{}
	for n := -1; n != len(p); {
		n = len(p)
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i := range n.Lhs {
					if id, ok := n.Lhs[i].(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) && p.isProse(n.Rhs[i]) {
						p[id.Name] = true
					}
				}
			case *ast.ValueSpec:
				for i := range n.Values {
					if len(n.Names) == len(n.Values) && p.isProse(n.Values[i]) {
						p[n.Names[i].Name] = true
					}
				}
			}
			return true
		})
	}
	return p
}

// goesBy returns what a node does with text for people, or "".
func (p prose) goesBy(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		pkg, name := calledFunction(n)
		if slices.Contains(searches[pkg], name) && slices.ContainsFunc(n.Args, p.isProse) {
			return fmt.Sprintf("calls %s.%s", pkg, name)
		}
	case *ast.BinaryExpr:
		if n.Op != token.EQL && n.Op != token.NEQ {
			return ""
		}
		if p.isProse(n.X) && !asksForNone(n.X, n.Y) || p.isProse(n.Y) && !asksForNone(n.Y, n.X) {
			return "compares"
		}
	case *ast.SwitchStmt:
		if n.Tag != nil && (p.isProse(n.Tag) || p.hasCase(n)) {
			return "switches"
		}
	case *ast.IndexExpr:
		if p.isProse(n.Index) {
			return "looks up"
		}
	}
	return ""
}

// isProse reports whether an expression is text for people, or made of it.
func (p prose) isProse(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return p[e.Name]
	case *ast.ParenExpr:
		return p.isProse(e.X)
	case *ast.SelectorExpr:
		return slices.Contains(proseFields, e.Sel.Name)
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (p.isProse(e.X) || p.isProse(e.Y))
	case *ast.CallExpr:
		if sel, ok := e.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Error" && len(e.Args) == 0 {
			return true
		}
		pkg, _ := calledFunction(e)
		id, ok := e.Fun.(*ast.Ident)
		made := pkg == "strings" || ok && id.Name == "string"
		return made && slices.ContainsFunc(e.Args, p.isProse)
	}
	return false
}

// asksForNone reports whether text is a member or a variable that is compared with "" or nil.
func asksForNone(text, with ast.Expr) bool {
	_, member := text.(*ast.SelectorExpr)
	_, variable := text.(*ast.Ident)
	lit, ok := with.(*ast.BasicLit)
	id, name := with.(*ast.Ident)
	return (member || variable) && (ok && lit.Value == `""` || name && id.Name == "nil")
}

func (p prose) hasCase(s *ast.SwitchStmt) bool {
	return slices.ContainsFunc(s.Body.List, func(c ast.Stmt) bool {
		return slices.ContainsFunc(c.(*ast.CaseClause).List, p.isProse)
	})
}

// calledFunction returns the package and the name of a function that is called as pkg.Name.
func calledFunction(c *ast.CallExpr) (pkg, name string) {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return id.Name, sel.Sel.Name
}

// hasCall reports whether a file calls a function of that name, of any package.
func hasCall(f *ast.File, name string) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		_, called := calledFunction(c)
		id, own := c.Fun.(*ast.Ident)
		found = found || called == name || own && id.Name == name
		return true
	})
	return found
}

// isSuite reports whether a file is a part of tests, though it is not named as one.
func isSuite(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
		return strings.Trim(i.Path.Value, `"`) == "testing"
	})
}
