package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// mostAgain is how many tests, those that others are part of, are looked at again.
// Where more failed it was no chance.
const mostAgain = 6

// certain is what a test says that failed for no want of time: what the race
// detector saw and who panicked, and of the escape suites who got out.
var certain = regexp.MustCompile(`DATA RACE|race detected|panic: |IT GOT THROUGH|IT FOUND|IT CAME OUT|IT LEFT|A MESSAGE PASSED`)

// fails counts what failed by e, beside tests that hung.
func (t *tally) fails(e event, hung string) {
	name := strings.TrimSpace(e.Package + " " + e.Test)
	if found := t.certain[e.Package+" "+e.Test]; found != "" {
		t.final = append(t.final, name+" said "+found)
	}
	if e.Test != "" {
		t.failed++
		top, _, _ := strings.Cut(e.Test, "/")
		if !slices.Contains(t.tests[e.Package], top) {
			t.tests[e.Package] = append(t.tests[e.Package], top)
		}
		return
	}
	t.broken++
	if hung != "" || len(t.tests[e.Package]) == 0 {
		t.final = append(t.final, name+" did not end as its tests did")
	}
}

// chance says whether what failed may have failed by what ran beside it: few tests,
// each to its end, and none of them with a word that is certain.
func (t *tally) chance(to io.Writer) bool {
	n := 0
	for _, tests := range t.tests {
		n += len(tests)
	}
	switch {
	case len(t.final) > 0:
		fmt.Fprintf(to, "no second look: %s\n", strings.Join(t.final, "; "))
		return false
	case n > mostAgain:
		fmt.Fprintf(to, "no second look: %d tests failed, more than %d\n", n, mostAgain)
		return false
	}
	return true
}

// secondLook runs by a command, package by package and one after the other, the
// tests that failed. They have passed if each of them does.
func (t *tally) secondLook(to io.Writer, command []string) {
	first, names := t.tests, []string{}
	for pkg, tests := range first {
		fmt.Fprintf(to, "AGAIN %s %s, alone\n", pkg, strings.Join(tests, ", "))
		cmd := exec.Command(command[0], append(slices.Clone(command[1:]), "-parallel=1", "-run=^("+strings.Join(tests, "|")+")$", pkg)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			fmt.Fprintln(to, "report:", err)
			return
		}
		now := read(out, to)
		err = cmd.Wait()
		if err != nil || now.lost() || now.skipped > 0 || now.passed < len(tests) {
			fmt.Fprintf(to, "%s failed again\n", pkg)
			return
		}
		for _, test := range tests {
			names = append(names, pkg+" "+test)
		}
	}
	slices.Sort(names)
	t.passed, t.failed, t.broken = t.passed+t.failed, 0, 0
	fmt.Fprintf(to, "%d failed beside others and passed alone: %s\n", len(names), strings.Join(names, ", "))
}
