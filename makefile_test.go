package holdfast_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRaceListIsComplete compares the Makefile's lists with the source: each package that
// starts a goroutine or imports sync is tested with the race detector, or is named with
// the reason why it is not.
func TestRaceListIsComplete(t *testing.T) {
	shares := map[string]bool{}
	sources(t, func(file string, f *ast.File, _ *token.FileSet) {
		if f.Name.Name != "main" || strings.HasPrefix(file, "cmd/") {
			shares[path.Dir(file)] = shares[path.Dir(file)] || sharesMemory(f)
		}
	})
	raced, left := readRaceLists(t, page(t, "Makefile"))
	for _, dir := range slices.Sorted(maps.Keys(shares)) {
		switch {
		case shares[dir] && !raced[dir] && left[dir] == "":
			t.Errorf("%s starts a goroutine or uses sync: add it to RACE, or to NO_RACE with the reason", dir)
		case raced[dir] && left[dir] != "":
			t.Errorf("%s is in RACE and in NO_RACE", dir)
		case left[dir] != "" && !shares[dir]:
			t.Errorf("%s is in NO_RACE, and starts no goroutine and does not use sync", dir)
		}
	}
	for dir := range raced {
		if _, exists := shares[dir]; !exists {
			t.Errorf("RACE has %s, which is not a package", dir)
		}
	}
	for dir := range left {
		if _, exists := shares[dir]; !exists {
			t.Errorf("NO_RACE has %s, which is not a package", dir)
		}
	}
}

// sharesMemory reports whether a file starts a goroutine or imports sync or sync/atomic.
func sharesMemory(f *ast.File) (shares bool) {
	for _, imp := range f.Imports {
		shares = shares || imp.Path.Value == `"sync"` || imp.Path.Value == `"sync/atomic"`
	}
	ast.Inspect(f, func(n ast.Node) bool {
		_, is := n.(*ast.GoStmt)
		shares = shares || is
		return !shares
	})
	return shares
}

// readRaceLists returns the packages of the Makefile's RACE, and those of NO_RACE with
// their reasons.
func readRaceLists(t *testing.T, makefile string) (raced map[string]bool, left map[string]string) {
	t.Helper()
	raced, left = map[string]bool{}, map[string]string{}
	race := regexp.MustCompile(`(?m)^RACE = ((?:.*\\\n)*.*)$`).FindStringSubmatch(makefile)
	_, rest, begins := strings.Cut(makefile, "\ndefine NO_RACE\n")
	rows, _, ends := strings.Cut(rest, "endef\n")
	if race == nil || !begins || !ends {
		t.Fatal("the Makefile has no RACE or no NO_RACE")
	}
	for _, dir := range strings.Fields(strings.ReplaceAll(race[1], "\\", " ")) {
		raced[strings.TrimPrefix(dir, "./")] = true
	}
	for row := range strings.Lines(rows) {
		dir, reason, _ := strings.Cut(strings.TrimSpace(row), " ")
		if left[dir] = strings.TrimSpace(reason); left[dir] == "" {
			t.Errorf("NO_RACE has no reason for %q", dir)
		}
	}
	return raced, left
}
