// Command report reads `go test -json` and prints what a person wants of it:
// one line a package, the output of what failed, every skipped test by name,
// and a closing line with the counts. Under CI a skipped test is a failure.
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

// report reads events until they end, writes what a person wants of them, and
// returns the exit code: 1 where something failed, nothing passed, or, if strict,
// something was skipped.
func report(from io.Reader, to io.Writer, strict bool) int {
	passed, failed, skipped, broken := 0, 0, 0, 0
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
		case "output", "build-output":
			if e.Action == "build-output" {
				fmt.Fprint(to, e.Output)
				continue
			}
			output[key] = keep(output[key], e.Output)
			continue
		case "pass":
			if e.Test != "" {
				passed++
			} else {
				fmt.Fprintf(to, "ok    %-60s %6.1fs\n", e.Package, e.Elapsed)
			}
		case "skip":
			if e.Test != "" {
				skipped++
				fmt.Fprintf(to, "SKIP  %s %s: %s", e.Package, e.Test, strings.Join(output[key], ""))
			}
		case "fail":
			if e.Test != "" {
				failed++
			} else {
				broken++
			}
			fmt.Fprintf(to, "FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(last(output[key]), ""))
			if e.Test == "" {
				fmt.Fprint(to, unfinished(e.Package, output))
			}
		case "build-fail":
			broken++
			fmt.Fprintf(to, "FAIL  %s does not build\n", e.ImportPath)
		}
		delete(output, key)
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(to, "report:", err)
		broken++
	}
	if broken > 0 && failed == 0 {
		failed = broken
	}
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || passed == 0 || (skipped > 0 && strict) {
		return 1
	}
	return 0
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
