package repeat

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTimesInFull: without the race detector a full run does everything as
// often as it says.
func TestTimesInFull(t *testing.T) {
	want := map[bool]int{false: 10_000, true: 1000}[watched]
	if testing.Short() {
		want = 100
	}
	if got := Times(10_000, 7); got != want {
		t.Errorf("%d times instead of %d", got, want)
	}
	want = map[bool]int{false: 10_000, true: 200}[watched]
	if testing.Short() {
		want = 100
	}
	if got := Heavy(10_000, 7); got != want {
		t.Errorf("%d heavy times instead of %d", got, want)
	}
	for _, f := range []func(int, int) int{Times, Heavy} {
		if got := f(20, 7); got < 7 || got > 20 {
			t.Errorf("%d times", got)
		}
	}
}

// TestEachIsRunInFull: the Makefile names every test that repeats less under
// the race detector, and its package, to be run in full without it.
func TestEachIsRunInFull(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(regexp.MustCompile(`(?m)^ENDURING = (.*)$`).FindStringSubmatch(string(text))[1])
	packages := strings.Fields(regexp.MustCompile(`(?m)^ENDURE = (.*)$`).FindStringSubmatch(string(text))[1])
	found := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join(root, "internal", "repeat") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		for _, test := range repeating(f) {
			found++
			if !named.MatchString(test) || !slices.Contains(packages, "./"+filepath.ToSlash(dir)) {
				t.Errorf("%s of %s repeats less with the race detector, and the Makefile does not run it without", test, dir)
			}
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Errorf("%d tests, %v", found, err)
	}
}

// repeating are the file's tests that ask Times, themselves or by a function of
// the same file.
func repeating(f *ast.File) (tests []string) {
	asks := map[string]bool{"repeat.Times": true, "repeat.Heavy": true}
	for range 3 { // a function of a function
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || asks[fn.Name.Name] {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && asks[types.ExprString(call.Fun)] {
					asks[fn.Name.Name] = true
				}
				return true
			})
		}
	}
	delete(asks, "repeat.Times")
	delete(asks, "repeat.Heavy")
	for name := range asks {
		if strings.HasPrefix(name, "Test") {
			tests = append(tests, name)
		}
	}
	return tests
}
