package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const example = `
define TOUCHES
.        none
go.mod   all
doc      none
a        endure-a
a/b      endure-b peers-b
endef
`

// TestSelectTargets: the longest directory counts, an unknown one needs everything, and
// the target with the most changed lines is first.
func TestSelectTargets(t *testing.T) {
	rows, err := parseTable(example)
	if err != nil {
		t.Fatal(err)
	}
	for numstat, want := range map[string]string{
		"":                                      "",
		"9\t9\tREADME.md":                       "",
		"9\t9\tdoc/x/y.md":                      "",
		"1\t0\ta/x.go":                          "endure-a",
		"1\t0\ta/c/x.go":                        "endure-a",
		"1\t0\ta/b/x.go":                        "endure-b peers-b",
		"1\t0\ta/x.go\n5\t0\ta/b/x.go":          "endure-b peers-b endure-a",
		"7\t0\ta/x.go\n5\t0\ta/b/x.go":          "endure-a endure-b peers-b",
		"1\t0\tgo.mod":                          "endure-a endure-b peers-b",
		"1\t0\terror.go":                        "endure-a endure-b peers-b",
		"1\t0\terror_test.go":                   "",
		"1\t0\tinternal/new/x.go":               "endure-a endure-b peers-b",
		"-\t-\ta/b/x.png":                       "endure-b peers-b",
		"1\t0\t\"a/\\303\\266.go\"":             "endure-a",
		"2\t0\tinternal/new/x.go\n9\t0\ta/x.go": "endure-a endure-b peers-b",
	} {
		got, err := rows.selectTargets(strings.NewReader(numstat))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q needs %q, want %q (%v)", numstat, got, want, err)
		}
	}
	for _, bad := range []string{"", "\ndefine TOUCHES\na\nendef\n", "\ndefine TOUCHES\na b\n"} {
		if _, err := parseTable(bad); err == nil {
			t.Errorf("%q was read as a table", bad)
		}
	}
	if _, err := rows.selectTargets(strings.NewReader("1 0 a")); err == nil {
		t.Error("a line without tabs was read")
	}
}

// TestTableIsTrue: each directory of the table exists, make knows each target, and
// `make endure` and `make peers` have no target that is not in the table.
func TestTableIsTrue(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parseTable(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for dir := range rows {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Errorf("%q of the table does not exist", dir)
		}
	}
	var made []string
	for _, m := range regexp.MustCompile(`(?m)^(ENDURE|PEERS)_([a-z]+) = `).FindAllStringSubmatch(string(text), -1) {
		made = append(made, strings.ToLower(m[1])+"-"+m[2])
	}
	slices.Sort(made)
	if all := rows.listAll(); !slices.Equal(all, made) {
		t.Errorf("the table has the targets %q, the Makefile makes %q", all, made)
	}
	for _, target := range made {
		if out, err := exec.Command("make", "-n", "-C", root, target).CombinedOutput(); err != nil {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
	}
}
