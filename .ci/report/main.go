// Command report reads `go test -json` and prints what a person wants of it:
// one line a package, the output of what failed, every skipped test by name,
// and a closing line with the counts. Under CI a skipped test is a failure.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

func main() {
	passed, failed, skipped, broken := 0, 0, 0, 0
	output := map[string][]string{}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 64<<20)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			fmt.Println(in.Text())
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			if e.Action == "build-output" {
				fmt.Print(e.Output)
				continue
			}
			output[key] = append(output[key], e.Output)
			continue
		case "pass":
			if e.Test != "" {
				passed++
			} else {
				fmt.Printf("ok    %-60s %6.1fs\n", e.Package, e.Elapsed)
			}
		case "skip":
			if e.Test != "" {
				skipped++
				fmt.Printf("SKIP  %s %s: %s", e.Package, e.Test, strings.Join(output[key], ""))
			}
		case "fail":
			if e.Test != "" {
				failed++
			} else {
				broken++
			}
			fmt.Printf("FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(output[key], ""))
		case "build-fail":
			broken++
			fmt.Printf("FAIL  %s does not build\n", e.ImportPath)
		}
		delete(output, key)
	}
	if err := in.Err(); err != nil {
		fmt.Println("report:", err)
		broken++
	}
	if broken > 0 && failed == 0 {
		failed = broken
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || passed == 0 || (skipped > 0 && os.Getenv("CI") != "") {
		os.Exit(1)
	}
}
