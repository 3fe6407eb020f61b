package redaction

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

var trufflehogTargets = map[string]target{every: {atLeast: 88}}

// readTrufflehog reads the tables of the detectors' pattern tests: each has an input and
// the secrets that are wanted in it. Files are parsed, never built. What a test computes
// otherwise than by constants, concatenation and fmt.Sprintf is left out, and so are wanted
// texts that the input does not contain, such as two values joined.
func readTrufflehog(dir string, each func(Text) error) error {
	wanted := func(path string) bool {
		return strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "integration")
	}
	return walkFiles(dir, wanted, func(path string, content []byte) error {
		file, err := parser.ParseFile(token.NewFileSet(), path, content, 0)
		if err != nil {
			return nil
		}
		v := evaluator{map[string]ast.Expr{}}
		v.declareAll(file)
		var failed error
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok && failed == nil {
				if t, ok := v.readCase(path, lit); ok {
					failed = each(t)
				}
			}
			return failed == nil
		})
		return failed
	})
}

// evaluator knows the constants and variables of a file.
type evaluator struct{ known map[string]ast.Expr }

func (v evaluator) declareAll(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.ValueSpec:
			for i, name := range d.Names {
				if i < len(d.Values) {
					v.known[name.Name] = d.Values[i]
				}
			}
		case *ast.AssignStmt:
			for i, left := range d.Lhs {
				if name, ok := left.(*ast.Ident); ok && d.Tok == token.DEFINE && len(d.Lhs) == len(d.Rhs) {
					v.known[name.Name] = d.Rhs[i]
				}
			}
		}
		return true
	})
}

// readCase returns the text of a test case with the fields input and want.
func (v evaluator) readCase(path string, lit *ast.CompositeLit) (Text, bool) {
	fields := map[string]ast.Expr{}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				fields[key.Name] = kv.Value
			}
		}
	}
	input, ok := v.evalString(fields["input"], 0)
	want, isList := fields["want"].(*ast.CompositeLit)
	if name, isName := fields["want"].(*ast.Ident); isName && name.Name == "nil" {
		want, isList = &ast.CompositeLit{}, true
	}
	if !ok || !isList || input == "" {
		return Text{}, false
	}
	t := Text{Path: path, Body: []byte(input)}
	if len(want.Elts) == 0 {
		t.Marks = []Mark{{Class: "inputs without a secret", End: len(input)}}
	}
	for _, e := range want.Elts {
		secret, ok := v.evalString(e, 0)
		if at := strings.Index(input, secret); ok && secret != "" && at >= 0 {
			t.Marks = append(t.Marks, Mark{Class: "wanted", Start: at, End: at + len(secret), Secret: true})
		}
	}
	return t, len(t.Marks) > 0
}

var verbs = regexp.MustCompile(`%[sqvd]`)

// evalString returns the string of an expression.
func (v evaluator) evalString(e ast.Expr, depth int) (string, bool) {
	if depth > 8 {
		return "", false
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		return v.evalString(v.known[e.Name], depth+1)
	case *ast.ParenExpr:
		return v.evalString(e.X, depth+1)
	case *ast.BinaryExpr:
		left, ok := v.evalString(e.X, depth+1)
		right, ok2 := v.evalString(e.Y, depth+1)
		return left + right, ok && ok2 && e.Op == token.ADD
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.SelectorExpr)
		if !ok || f.Sel.Name != "Sprintf" || len(e.Args) == 0 {
			return "", false
		}
		format, ok := v.evalString(e.Args[0], depth+1)
		if !ok || len(verbs.FindAllString(format, -1)) != len(e.Args)-1 {
			return "", false
		}
		var args []any
		for _, a := range e.Args[1:] {
			s, ok := v.evalString(a, depth+1)
			if !ok {
				return "", false
			}
			args = append(args, s)
		}
		return fmt.Sprintf(verbs.ReplaceAllString(format, "%s"), args...), true
	}
	return "", false
}
