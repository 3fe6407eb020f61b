// Command report reads `go test -json` and prints what a person wants of it:
// one line a package, the output of what failed, every skipped test by name,
// and a closing line with the counts. Under CI a skipped test is a failure.
//
//	go test -json ... | report [go test -json ...]
//
// With a command as its arguments, a few tests that failed beside others are run once
// more by it, alone; see tally.chance for those that are not.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

func main() {
	os.Exit(report(os.Stdin, os.Stdout, os.Getenv("CI") != "", os.Args[1:]))
}

// report reads events until they end, writes what a person wants of them, and
// returns the exit code: 1 where something failed, nothing passed, or, if strict,
// something was skipped. again is the command for a second look, without the tests
// and their packages; nothing is looked at again if it is empty.
func report(from io.Reader, to io.Writer, strict bool, again []string) int {
	t := read(from, to)
	if len(again) > 0 && t.lost() && t.chance(to) {
		t.secondLook(to, again)
	}
	failed := t.failed
	if t.lost() {
		failed = max(failed, 1)
	}
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", t.passed, failed, t.skipped)
	if failed > 0 || t.passed == 0 || (t.skipped > 0 && strict) {
		return 1
	}
	return 0
}

// tally is what came of tests.
type tally struct {
	passed, failed, skipped int
	broken                  int      // packages that failed or were not built
	final                   []string // what failed in a way that no second look mends
	tests                   map[string][]string
	certain                 map[string]string // what a test said, of all its lines, that is certain
}

// lost says whether anything failed.
func (t *tally) lost() bool { return t.failed > 0 || t.broken > 0 }

// read reads events until they end, and writes what is to be known of each.
func read(from io.Reader, to io.Writer) *tally {
	t := &tally{tests: map[string][]string{}, certain: map[string]string{}}
	output := map[string][]string{}
	in := bufio.NewScanner(from)
	in.Buffer(make([]byte, 1<<20), 64<<20)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			fmt.Fprintln(to, in.Text())
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			output[key] = keep(output[key], e.Output)
			if found := certain.FindString(e.Output); found != "" {
				t.certain[key] = found
			}
			continue
		case "build-output":
			fmt.Fprint(to, e.Output)
			continue
		case "pass":
			if e.Test != "" {
				t.passed++
			} else {
				fmt.Fprintf(to, "ok    %-60s %6.1fs\n", e.Package, e.Elapsed)
			}
		case "skip":
			if e.Test != "" {
				t.skipped++
				fmt.Fprintf(to, "SKIP  %s %s: %s", e.Package, e.Test, strings.Join(output[key], ""))
			}
		case "fail":
			fmt.Fprintf(to, "FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(last(output[key]), ""))
			hung := ""
			if e.Test == "" {
				hung = unfinished(e.Package, output)
				fmt.Fprint(to, hung)
			}
			t.fails(e, hung)
		case "build-fail":
			t.broken++
			t.final = append(t.final, e.ImportPath+" does not build")
			fmt.Fprintf(to, "FAIL  %s does not build\n", e.ImportPath)
		}
		delete(output, key)
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(to, "report:", err)
		t.broken++
		t.final = append(t.final, "its output could not be read")
	}
	return t
}

// lastLines is how much is kept of what one test, or one package, printed: the
// goroutines of a test that hung are at the end of it.
const lastLines = 400

// keep adds a line and forgets the first ones beyond twice as many as are printed.
func keep(lines []string, line string) []string {
	if lines = append(lines, line); len(lines) > 2*lastLines {
		lines = append(lines[:0], last(lines)...)
	}
	return lines
}

func last(lines []string) []string { return lines[max(0, len(lines)-lastLines):] }

// unfinished returns what the tests printed that had begun in a package and
// came to no end: where the package panics or runs out of time, the reason and
// the goroutines are given to one of them, and to whichever Go thinks ran.
func unfinished(pkg string, output map[string][]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(output)) {
		if test, ok := strings.CutPrefix(key, pkg+" "); ok && test != "" {
			fmt.Fprintf(&b, "FAIL  %s %s did not end\n%s", pkg, test, strings.Join(last(output[key]), ""))
			delete(output, key)
		}
	}
	return b.String()
}
