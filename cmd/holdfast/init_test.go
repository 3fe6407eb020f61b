package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// beforeMain lists the packages that may allocate more than maxBeforeMain
// times before main begins, and why: every start of every command pays for it.
var beforeMain = map[string]string{}

const maxBeforeMain = 1000

var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) allocs$`)

// TestAllocationsBeforeMain runs the built program and lists every package
// that allocates a lot before main.
func TestAllocationsBeforeMain(t *testing.T) {
	program := buildCommand(t)
	cmd := exec.Command(program, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, trace.Bytes())
	}
	found := initLine.FindAllSubmatch(trace.Bytes(), -1)
	if len(found) < 10 {
		t.Fatalf("only %d packages say what they did before main:\n%s", len(found), trace.Bytes())
	}
	many := map[string]bool{}
	for _, m := range found {
		n, err := strconv.Atoi(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		if n <= maxBeforeMain {
			continue
		}
		name := string(m[1])
		many[name] = true
		why, listed := beforeMain[name]
		t.Logf("%s: %d allocations before main: %s", name, n, why)
		if !listed {
			t.Errorf("%s allocates %d times before main, more than %d: do it when it is asked for, or list it with the reason", name, n, maxBeforeMain)
		}
	}
	for name := range beforeMain {
		if !many[name] {
			t.Errorf("%s is listed and allocates at most %d times before main: take it off the list", name, maxBeforeMain)
		}
	}
}
