package holdfast_test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRaceListIsComplete compares the Makefile's lists with the source, tests and programs
// other than cmd/ left out: each package that has a go statement or imports sync or
// sync/atomic is tested with the race detector, or is in NO_RACE with the reason. A reason
// that names RACE_PART needs a row there, and each row's alternatives match tests of its
// package.
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
	part := readRacePart(t, page(t, "Makefile"))
	for dir, reason := range left {
		if strings.HasSuffix(reason, "(RACE_PART)") && part[dir] == "" {
			t.Errorf("NO_RACE says that RACE_PART has tests of %s; it has none", dir)
		}
	}
	for dir, pattern := range part {
		for _, alternative := range splitAlternatives(pattern) {
			if !matchesTest(t, dir, alternative) {
				t.Errorf("%q of RACE_PART matches no test of %s", alternative, dir)
			}
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
		dir, reason, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(row), "./"), " ")
		if left[dir] = strings.TrimSpace(reason); left[dir] == "" {
			t.Errorf("NO_RACE has no reason for %q", dir)
		}
	}
	return raced, left
}

// readRacePart returns the patterns of the Makefile's RACE_PART by package.
func readRacePart(t *testing.T, makefile string) map[string]string {
	t.Helper()
	_, rest, begins := strings.Cut(makefile, "\ndefine RACE_PART\n")
	rows, _, ends := strings.Cut(rest, "endef\n")
	if !begins || !ends {
		t.Fatal("the Makefile has no RACE_PART")
	}
	part := map[string]string{}
	for row := range strings.Lines(rows) {
		fields := strings.Fields(strings.ReplaceAll(row, "$$", "$"))
		if len(fields) != 2 {
			t.Fatalf("RACE_PART has the row %q, which is not a package and a pattern", row)
		}
		part[strings.TrimPrefix(fields[0], "./")] = fields[1]
	}
	return part
}

// splitAlternatives returns the alternatives of a pattern, each group taken apart too:
// a(b|c)|d is ab, ac and d.
func splitAlternatives(pattern string) (list []string) {
	depth, from := 0, 0
	for i, c := range pattern + "|" {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			list = append(list, splitGroup(pattern[from:i])...)
			from = i + 1
		}
	}
	return list
}

// splitGroup returns an alternative with each choice of its first group.
func splitGroup(alternative string) (list []string) {
	before, rest, open := strings.Cut(alternative, "(")
	choices, after, closed := strings.Cut(rest, ")")
	if !open || !closed {
		return []string{alternative}
	}
	for choice := range strings.SplitSeq(choices, "|") {
		list = append(list, before+choice+after)
	}
	return list
}

// matchesTest reports whether a test in a directory has a name that pattern matches.
func matchesTest(t *testing.T, dir, pattern string) bool {
	t.Helper()
	re, err := regexp.Compile(pattern)
	if err != nil {
		t.Errorf("RACE_PART: %v", err)
		return true
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("RACE_PART has %s, which has no tests: %v", dir, err)
		return true
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			if re.MatchString(m[1]) {
				return true
			}
		}
	}
	return false
}
