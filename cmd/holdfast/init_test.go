package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// beforeMain lists the packages that may allocate more than their bound before main
// begins, and why: every start of most commands pays for it.
var beforeMain = map[string]string{
	"github.com/holdfast-dev/holdfast/internal/redact/token": "the tables of prefixes that every text is read by",
}

// maxBeforeMain bounds the allocations of other packages, maxOwnBeforeMain of ours:
// they build tables and regular expressions when they need them.
const (
	maxBeforeMain    = 1000
	maxOwnBeforeMain = 100
)

var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) allocs$`)

// traceInit runs the built program and returns how often each package allocates while
// it is initialised.
func traceInit(t *testing.T, program string, args ...string) map[string]int {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", "HOME="+t.TempDir(), "XDG_CONFIG_HOME=")
	cmd.Stdin = strings.NewReader(`{"a":1}`)
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, trace.Bytes())
	}
	allocations := map[string]int{}
	for _, m := range initLine.FindAllSubmatch(trace.Bytes(), -1) {
		n, err := strconv.Atoi(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		allocations[string(m[1])] = n
	}
	return allocations
}

// TestAllocationsBeforeMain runs the built program and lists every package
// that allocates a lot before main.
func TestAllocationsBeforeMain(t *testing.T) {
	found := traceInit(t, buildCommand(t), "--verbose", "version") // main's: see package early
	if len(found) < 100 {
		t.Fatalf("only %d packages are initialised", len(found))
	}
	for name, n := range found {
		limit := maxBeforeMain
		if name == "main" || strings.HasPrefix(name, "github.com/holdfast-dev/") {
			limit = maxOwnBeforeMain
		}
		if _, listed := beforeMain[name]; n > limit && !listed {
			t.Errorf("%s allocates %d times before main, more than %d: do it when it is needed, or list it with the reason", name, n, limit)
		}
	}
	for name := range beforeMain {
		if found[name] <= maxOwnBeforeMain {
			t.Errorf("%s is listed and allocates %d times before main: take it off the list", name, found[name])
		}
	}
}

// TestEarlyCommandsStartBeforeSlowPackages: a command that must start fast ends before
// the packages are initialised whose initialisation takes longer than the command.
func TestEarlyCommandsStartBeforeSlowPackages(t *testing.T) {
	program := filepath.Join(t.TempDir(), "holdfast")
	if err := os.Link(buildCommand(t), program); err != nil {
		t.Fatal(err)
	}
	for command, slow := range map[string][]string{
		"help":           {"google.golang.org/protobuf/proto", "go.opentelemetry.io/otel/trace", "net", "regexp"},
		"help exec":      {"google.golang.org/protobuf/proto", "go.opentelemetry.io/otel/trace", "net", "regexp"},
		"key":            {"cel.dev/cel-go/parser", "go.yaml.in/yaml/v4", "net", "regexp"},
		"key --exact -":  {"cel.dev/cel-go/parser", "go.yaml.in/yaml/v4", "net", "regexp"},
		"redact":         {"cel.dev/cel-go/parser", "go.yaml.in/yaml/v4", "net", "regexp"},
		"version":        {"google.golang.org/grpc", "modernc.org/sqlite", "net"},
		"version --json": {"google.golang.org/grpc", "modernc.org/sqlite", "net"},
	} {
		found := traceInit(t, program, strings.Fields(command)...)
		for _, name := range append(slow, "google.golang.org/grpc", "github.com/prometheus/client_golang/prometheus") {
			if _, there := found[name]; there {
				t.Errorf("%s: %s is initialised first", command, name)
			}
		}
	}
}
