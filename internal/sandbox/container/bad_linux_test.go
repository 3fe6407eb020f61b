//go:build linux

package container_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
)

// fake is a runtime that a script stands for.
func fake(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runtime")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const tells = `case "$1" in --version) echo "runc version 1.1.5"; exit 0;; esac
`

// TestBadRuntimes: one that is not there, is too old, tells nothing, hangs, lies
// or ends is refused by name and with what to do, and leaves nothing behind.
func TestBadRuntimes(t *testing.T) {
	p := programs(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ runtime, want string }{
		"missing":          {"no-such-runtime", "is not installed"},
		"no program":       {plain, "is no program"},
		"relative":         {"./runc", "is no absolute path"},
		"old":              {fake(t, `echo "runc version 1.0.3"`), "hands out no listener"},
		"garbage":          {fake(t, `head -c 100000 /dev/zero; exit 0`), "no word of runc, crun or runsc"},
		"another":          {fake(t, `echo "containerd version 1.6"`), "no word of runc, crun or runsc"},
		"fails to tell":    {fake(t, `exit 3`), "does not tell its version"},
		"fails to run":     {fake(t, tells+`echo '{"level":"error","msg":"no room today"}' >&2; exit 1`), "no room today"},
		"says it twice":    {fake(t, tells+`echo '{"level":"error","msg":"no room today"}' >"$4"; echo out of threads >&2; echo 'fatal: no room today' >&2; exit 1`), "no room today (out of threads)"},
		"says nothing":     {fake(t, tells+`exit 0`), "it says nothing"},
		"hangs":            {fake(t, tells+`exec sleep 600`), "started no program within"},
		"hangs with kids":  {fake(t, tells+`sleep 601 & sleep 602`), "started no program within"},
		"is killed":        {fake(t, tells+`kill -9 $$`), "started no container"},
		"floods":           {fake(t, tells+`yes`), "started no"},
		"a false listener": {fake(t, tells+`python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect("listener"); s.send(b"{\"fds\":[\"seccompFd\"]}")'; exit 1`), "started no container"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "oci")
			start := time.Now()
			c, err := container.Open(t.Context(), container.Config{Dir: dir, Runtime: tc.runtime, Programs: p, Within: time.Second})
			if err == nil {
				c.Close()
				t.Fatal("it is taken")
			}
			e := (*holdfast.Error)(nil)
			if !errors.As(err, &e) || e.Kind != holdfast.KindSpawn || e.Hint == "" || !strings.Contains(e.Why, tc.want) {
				t.Errorf("%v, want %q and a hint", err, tc.want)
			}
			if time.Since(start) > 30*time.Second {
				t.Errorf("it took %v", time.Since(start))
			}
			nothingLeft(t, dir)
			if name == "hangs with kids" {
				if out, _ := exec.Command("pgrep", "-f", "^sleep 60[12]$").Output(); len(out) > 0 {
					t.Errorf("its processes are left: %s", out)
				}
			}
		})
	}
}

// TestCrun: where crun refuses this machine its own words are in the refusal, and
// where it does not a program runs.
func TestCrun(t *testing.T) {
	if _, err := exec.LookPath("crun"); err != nil {
		t.Skip("crun is not installed")
	}
	c, err := container.Open(t.Context(), container.Config{Dir: filepath.Join(t.TempDir(), "oci"), Runtime: "crun", Programs: programs(t), Secret: func(string) bool { return false }})
	if err != nil {
		if e := (*holdfast.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Why, "crun (1.") && !strings.Contains(e.Why, "/crun (") || e.Hint == "" {
			t.Errorf("the refusal does not name it: %v", err)
		}
		t.Log(err)
		return
	}
	defer c.Close()
	res, err := c.Run(t.Context(), sandbox.Spec{ID: "crun", Language: "python3", Code: []byte("print(6*7)"), Need: need(c)})
	if err != nil || string(res.Stdout) != "42\n" {
		t.Errorf("%+v %v", res, err)
	}
}
