package holdfast_test

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// maxPackageLines is the most lines that a package has, without tests and generated code.
const maxPackageLines = 5000

// limits are the packages with more lines, or with a limit below it, each with its own limit, in lines, and the
// reason. A limit that is 500 lines too high fails.
var limits = map[string]struct {
	lines int
	why   string
}{
	"daemon":                   {2_900, "it only composes"},
	"internal/kernel":          {8_500, "the transactions of features, escapes and pauses of agents are one step with the crossing; 7,500 was the aim"},
	"internal/sandbox/process": {7_300, "code between fork and exec shares state that no package should export"},
	"internal/redact/certain":  {6_200, "its detectors are methods of one scanner, which reads a text once"},
}

// TestPackageSizes: no package has more lines than maxPackageLines, or than its own limit.
// The command has no limit as a whole, but its files and functions have (TestCommandSizes).
func TestPackageSizes(t *testing.T) {
	lines := map[string]int{}
	sources(t, func(path string, f *ast.File, fset *token.FileSet) {
		if dir := packageOf(path); dir != "cmd/holdfast" && !ast.IsGenerated(f) {
			lines[dir] += fset.File(f.FileStart).LineCount()
		}
	})
	for dir, n := range lines {
		limit, listed := limits[dir]
		switch {
		case !listed && n > maxPackageLines:
			t.Errorf("%s has %d lines, more than %d: does it have two subjects?", dir, n, maxPackageLines)
		case listed && n > limit.lines:
			t.Errorf("%s has %d lines, more than its limit of %d", dir, n, limit.lines)
		case listed && (n < limit.lines-500 || n <= maxPackageLines && limit.lines > maxPackageLines):
			t.Errorf("%s has %d lines: lower its limit of %d", dir, n, limit.lines)
		}
	}
	for dir := range limits {
		if lines[dir] == 0 {
			t.Errorf("limits names %q, which is not there", dir)
		}
	}
}

// The most lines that a file and a function of the command have.
const (
	maxCommandFile     = 300
	maxCommandFunction = 60
)

// TestCommandSizes: the command has flags, one call and output; logic belongs to the
// package of its subject.
func TestCommandSizes(t *testing.T) {
	sources(t, func(path string, f *ast.File, fset *token.FileSet) {
		if !strings.HasPrefix(path, "cmd/holdfast/") {
			return
		}
		if n := fset.File(f.FileStart).LineCount(); n > maxCommandFile {
			t.Errorf("%s has %d lines, more than %d", path, n, maxCommandFile)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
			if n > maxCommandFunction {
				t.Errorf("%s: %s has %d lines, more than %d", path, fn.Name.Name, n, maxCommandFunction)
			}
		}
	})
}
