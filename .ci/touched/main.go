// Command touched prints the targets of `make endure` and `make peers` that a change
// needs, one a line, those with the most changed lines first.
//
//	git diff --numstat --no-renames BASE | touched MAKEFILE
//
// The Makefile's variable TOUCHES maps directories to targets. The longest directory
// that contains a file counts; a directory that no row contains needs every target. So
// does the root package, which everything imports; its tests need none.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: git diff --numstat --no-renames BASE | touched MAKEFILE")
		os.Exit(2)
	}
	if err := printTargets(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "touched:", err)
		os.Exit(1)
	}
}

// printTargets writes the targets for a change that git describes by --numstat.
func printTargets(makefile string, numstat io.Reader, to io.Writer) error {
	text, err := os.ReadFile(makefile)
	if err != nil {
		return err
	}
	t, err := parseTable(string(text))
	if err != nil {
		return err
	}
	targets, err := t.selectTargets(numstat)
	for _, target := range targets {
		fmt.Fprintln(to, target)
	}
	return err
}

// table maps directories, and files, to targets.
type table map[string][]string

// parseTable reads the variable TOUCHES of a Makefile: a directory and its targets a
// line. The target "all" means every target of the table, "none" no target.
func parseTable(makefile string) (table, error) {
	_, rest, begins := strings.Cut(makefile, "\ndefine TOUCHES\n")
	rows, _, ends := strings.Cut(rest, "\nendef\n")
	if !begins || !ends {
		return nil, fmt.Errorf("cannot read table: the Makefile defines no TOUCHES")
	}
	t := table{}
	for row := range strings.Lines(rows) {
		fields := strings.Fields(row)
		if len(fields) < 2 {
			return nil, fmt.Errorf("cannot read table: the row %q has no target", strings.TrimSpace(row))
		}
		t[fields[0]] = fields[1:]
	}
	return t, nil
}

// listAll returns every target of the table.
func (t table) listAll() []string {
	all := map[string]bool{}
	for _, targets := range t {
		for _, target := range targets {
			all[target] = target != "all" && target != "none"
		}
	}
	maps.DeleteFunc(all, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(all))
}

// targetsFor returns the targets of the longest directory that contains a file. The
// directory "." contains the files at the root and no directory.
func (t table) targetsFor(file string) []string {
	if path.Dir(file) == "." && path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") {
		return t.listAll()
	}
	for dir := file; ; dir = path.Dir(dir) {
		if dir == "." && path.Dir(file) != "." {
			return t.listAll()
		}
		targets, named := t[dir]
		switch {
		case named && targets[0] == "all", dir == "." && !named:
			return t.listAll()
		case named && targets[0] == "none":
			return nil
		case named:
			return targets
		}
	}
}

// selectTargets reads lines of `git diff --numstat` (added, removed, path; "-" for a
// binary file) and returns the targets in order of changed lines.
func (t table) selectTargets(numstat io.Reader) ([]string, error) {
	changed := map[string]int{}
	in := bufio.NewScanner(numstat)
	for in.Scan() {
		fields := strings.SplitN(in.Text(), "\t", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("cannot read change: invalid line %q", in.Text())
		}
		lines := 1 // a binary file counts as one line
		for _, count := range fields[:2] {
			if n, err := strconv.Atoi(count); err == nil {
				lines += n
			}
		}
		for _, target := range t.targetsFor(strings.Trim(fields[2], `"`)) {
			changed[target] += lines
		}
	}
	return slices.SortedFunc(maps.Keys(changed), func(a, b string) int {
		return cmp.Or(changed[b]-changed[a], strings.Compare(a, b))
	}), in.Err()
}
