package judge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func shell(script string, args ...string) Command {
	return Command{Argv: append([]string{"/bin/sh", "-c", script}, args...)}
}

func TestCommandIsGivenTheRequestAndNamedVariablesOnly(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_NAMED", "yes")
	t.Setenv("HOLDFAST_TEST_SECRET", "no")
	c := Command{Argv: []string{"/usr/bin/env"}, Env: []string{"HOLDFAST_TEST_NAMED"}}
	out, err := c.Ask(t.Context(), nil)
	if err != nil || string(out) != "HOLDFAST_TEST_NAMED=yes\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err = (Command{Argv: []string{"/usr/bin/env"}}).Ask(t.Context(), nil); err != nil || len(out) != 0 {
		t.Errorf("without names: %q, %v", out, err)
	}
	if out, err = shell("cat").Ask(t.Context(), []byte("given")); err != nil || string(out) != "given" {
		t.Errorf("%q, %v", out, err)
	}
	// One that does not read what it is given is no fault.
	if out, err = shell("echo ok").Ask(t.Context(), []byte(strings.Repeat("x", 1<<20))); err != nil || string(out) != "ok\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestCommandEndsInTimeWithAllThatItStarted(t *testing.T) {
	note := filepath.Join(t.TempDir(), "pid")
	c := shell(`sleep 600 & echo $! >"$0"; wait`, note)
	c.Within = 200 * time.Millisecond
	_, err := c.Ask(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Fatalf("%v", err)
	}
	b, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("what it started runs on as %d", pid)
}

// zombie says whether a process has ended and only waits for its parent.
func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(b), ") Z ")
}

func TestCommandEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shell("echo no").Ask(ctx, nil); err == nil {
		t.Error("it ran")
	}
}

func TestCommandIsUnusable(t *testing.T) {
	for name, script := range map[string]string{
		"prints too much":                    "exec yes",
		"prints 64 KiB +1":                   "head -c 65537 /dev/zero",
		"fails":                              "exit 3",
		"is killed":                          "kill -9 $$",
		"says words":                         "echo five",
		"says nothing":                       ":",
		"says it twice":                      "echo '" + fives + fives + "'",
		"says a list":                        "echo '[" + fives + "]'",
		"floods its errors and says nothing": "head -c 4194304 /dev/zero >&2",
		"says it and fails":                  "echo '" + fives + "'; exit 1",
		"says it and is killed":              "echo '" + fives + "'; kill -9 $$",
		"leaves one that holds its output":   "setsid sleep 5 & echo '" + fives + "'",
	} {
		_, err := shell(script).Score(t.Context(), Request{})
		if holdfast.KindOf(err) != holdfast.KindConfidence {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]Command{"zero value": {}, "not there": {Argv: []string{"/nowhere"}}} {
		if _, err := c.Score(t.Context(), Request{}); holdfast.KindOf(err) != holdfast.KindConfidence {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRulesWithoutExpressionsGiveNoScores(t *testing.T) {
	if s, err := (Rules{}).Score(t.Context(), Request{}); err == nil {
		t.Errorf("%v", s)
	}
}
