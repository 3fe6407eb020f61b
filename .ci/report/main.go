// Command report reads `go test -json` and prints a summary: one line for each
// package, the output of each test that failed, every skipped test by name, and a
// closing line with the counts. It fails if a test, a package or a build failed or no test
// passed, and under CI also if a test was skipped. Lines that are not JSON are printed.
// Given files, it reads them all at the same time, and in each of them a test must pass.
//
//	go test -json ... | report
//	report <(go test -json ...) <(go test -json ...)
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
	"sync"
)

type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

func main() {
	from := []io.Reader{os.Stdin}
	if len(os.Args) > 1 {
		from = nil
	}
	for _, name := range os.Args[1:] {
		f, err := os.Open(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "report: cannot open the events:", err)
			os.Exit(2)
		}
		from = append(from, f)
	}
	os.Exit(report(from, os.Stdout, os.Getenv("CI") != ""))
}

// report reads streams of events until they end, writes the summary, and returns the exit
// code: 1 if something failed, no test of a stream passed, or, if strict, something was
// skipped.
func report(from []io.Reader, to io.Writer, strict bool) int {
	to = &lockedWriter{to: to}
	tallies := make([]tally, len(from))
	var wg sync.WaitGroup
	for i, r := range from {
		wg.Go(func() { tallies[i] = readEvents(r, to) })
	}
	wg.Wait()
	var sum tally
	empty := false
	for _, t := range tallies {
		sum.passed += t.passed
		sum.failed += t.failed
		sum.skipped += t.skipped
		sum.broken += t.broken
		empty = empty || t.passed == 0
	}
	failed := sum.failed
	if sum.broken > 0 {
		failed = max(failed, 1)
	}
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", sum.passed, failed, sum.skipped)
	if failed > 0 || empty || (sum.skipped > 0 && strict) {
		return 1
	}
	return 0
}

// lockedWriter writes what is written at the same time one after the other.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
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
			text := fmt.Sprintf("FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(lastOf(output[key]), ""))
			if e.Test != "" {
				t.failed++
			} else {
				t.broken++
				text += takeUnfinished(e.Package, output)
			}
			fmt.Fprint(to, text)
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
