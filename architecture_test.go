package holdfast_test

import (
	"regexp"
	"strings"
	"testing"
)

// packageRow is the row of a package in the tables of doc/architecture.md.
var packageRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\S")

// TestArchitectureNamesEachPackage: the tables of doc/architecture.md have each package
// once, in the order of layers.
func TestArchitectureNamesEachPackage(t *testing.T) {
	pkgs := imports(t)
	seen := map[string]bool{}
	layer := 0
	_, tables, _ := strings.Cut(page(t, "doc/architecture.md"), "\n## Packages\n")
	for _, m := range packageRow.FindAllStringSubmatch(tables, -1) {
		dir := m[1]
		if dir == "holdfast" {
			dir = ""
		}
		if _, there := pkgs[dir]; !there {
			t.Errorf("doc/architecture.md has %q, which is no package", dir)
			continue
		}
		if seen[dir] {
			t.Errorf("doc/architecture.md has %q twice", dir)
		}
		seen[dir] = true
		if at := layerOf(dir); at < layer {
			t.Errorf("doc/architecture.md has %q behind a package of a higher layer", dir)
		} else {
			layer = at
		}
	}
	for dir := range pkgs {
		if !seen[dir] {
			t.Errorf("doc/architecture.md lacks the package %q", dir)
		}
	}
}
