// Command report reads `go test -json` and prints a summary: one line for each
// package, the output of each test that failed, every skipped test by name, and a
// closing line with the counts. It fails if a test, a package or a build failed or no test
// passed, and under CI also if a test was skipped. Lines that are not JSON are printed.
//
//	go test -json ... | report
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
	os.Exit(report(os.Stdin, os.Stdout, os.Getenv("CI") != ""))
}

// report reads events until they end, writes the summary, and returns the exit code:
// 1 if something failed, nothing passed, or, if strict, something was skipped.
func report(from io.Reader, to io.Writer, strict bool) int {
	t := readEvents(from, to)
	failed := t.failed
	if t.broken > 0 {
		failed = max(failed, 1)
	}
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", t.passed, failed, t.skipped)
	if failed > 0 || t.passed == 0 || (t.skipped > 0 && strict) {
		return 1
	}
	return 0
}

// tally counts the results of tests.
type tally struct {
	passed, failed, skipped int
	broken                  int // packages that failed or were not built, and a failure to read
}

// readEvents reads events until they end, and writes each result of interest.
func readEvents(from io.Reader, to io.Writer) tally {
	var t tally
	output := map[string][]string{}
	in := bufio.NewScanner(from)
	in.Buffer(make([]byte, 1<<20), longestEvent)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			fmt.Fprintln(to, in.Text())
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			output[key] = appendLine(output[key], e.Output)
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
			fmt.Fprintf(to, "FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(lastOf(output[key]), ""))
			if e.Test != "" {
				t.failed++
				break
			}
			t.broken++
			fmt.Fprint(to, takeUnfinished(e.Package, output))
		case "build-fail":
			t.broken++
			fmt.Fprintf(to, "FAIL  %s does not build\n", e.ImportPath)
		}
		delete(output, key)
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(to, "report: cannot read the events:", err)
		t.broken++
	}
	return t
}

// longestEvent bounds one line of `go test -json`, in bytes.
const longestEvent = 4 << 20

// lastLines is the number of lines that are printed of one test or package: the
// goroutines of a test that hung are at the end of its output.
const lastLines = 400

// appendLine adds a line and drops the first ones beyond twice as many as are printed.
func appendLine(lines []string, line string) []string {
	if lines = append(lines, line); len(lines) > 2*lastLines {
		lines = append(lines[:0], lastOf(lines)...)
	}
	return lines
}

func lastOf(lines []string) []string { return lines[max(0, len(lines)-lastLines):] }

// takeUnfinished removes and returns the output of the package's tests that began and
// did not end: if the package panics or times out, the reason and the goroutines are
// in the output of one of them, and of the one that Go reports as running.
func takeUnfinished(pkg string, output map[string][]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(output)) {
		if test, ok := strings.CutPrefix(key, pkg+" "); ok && test != "" {
			fmt.Fprintf(&b, "FAIL  %s %s did not end\n%s", pkg, test, strings.Join(lastOf(output[key]), ""))
			delete(output, key)
		}
	}
	return b.String()
}
