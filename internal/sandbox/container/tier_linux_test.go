//go:build linux

package container_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	guestInit()
	process.Launcher()
	container.Launcher()
	os.Exit(sandboxtest.NullKept(func() int { return withRoots(m.Run) }))
}

// rootsEnv names the directory for roots that all tests share, and the processes that
// they start with their environment: to copy a root takes longer than most tests.
const rootsEnv = "HOLDFAST_TEST_ROOTS"

func withRoots(run func() int) int {
	if os.Getenv(rootsEnv) != "" {
		return run()
	}
	dir, err := os.MkdirTemp("", "roots")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Setenv(rootsEnv, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot make a directory for roots:", err)
		return 1
	}
	return run()
}

// programs is a process tier, from which languages come.
func programs(t *testing.T) *process.Tier {
	t.Helper()
	p, err := process.Open(context.Background(), process.Config{Dir: os.Getenv(rootsEnv), Secret: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func open(t *testing.T, change func(*container.Config)) (*container.Tier, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts containers")
	}
	cfg := container.Config{Dir: filepath.Join(t.TempDir(), "oci"), Runtime: "runc", Programs: programs(t), Secret: func(string) bool { return false }, Warn: func(s string) { t.Log(s) }}
	if change != nil {
		change(&cfg)
	}
	c, err := container.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, cfg.Dir
}

// need is every wall that stands here.
func need(c *container.Tier) []posture.Wall { return c.Posture().Up }

func TestRun(t *testing.T) {
	c, dir := open(t, nil)
	t.Logf("%s: %+v", c.Runtime(), c.Posture())
	for name, tc := range map[string]struct {
		code  string
		spec  sandbox.Spec
		want  posture.State
		why   posture.Reason
		exit  int
		out   string
		files map[string]string
	}{
		"hello":   {code: "print('hello')", want: posture.Completed, out: "hello\n"},
		"fails":   {code: "import sys; sys.exit(3)", want: posture.Completed, exit: 3},
		"137":     {code: "import sys; sys.exit(137)", want: posture.Completed, exit: 137},
		"node":    {code: "console.log(6*7)", spec: sandbox.Spec{Language: "node"}, want: posture.Completed, out: "42\n"},
		"timeout": {code: "while True: pass", spec: sandbox.Spec{Timeout: 300 * time.Millisecond}, want: posture.Timeout, why: posture.ReasonWall, exit: 137},
		"oom":     {code: "b=bytearray(200<<20)\nfor i in range(0,len(b),4096): b[i]=1\nprint('held')", spec: sandbox.Spec{MemoryMB: 48}, want: posture.OOM, why: posture.ReasonOOM, exit: 137},
		"output":  {code: "import os\nwhile True: os.write(1,b'y'*65536)", want: posture.Completed, why: posture.ReasonOutput, exit: 137},
		"exec":    {code: "import os; os.execv('/usr/bin/python3.11',['x'])", want: posture.SyscallBlocked, why: posture.ReasonEscape, exit: 159},
		"signal":  {code: "import ctypes; ctypes.string_at(0)", want: posture.Completed, why: posture.ReasonSignal, exit: 139},
		"files":   {code: "open('a/b.txt','w').write('x'); print(open('a/f').read()); import os; os.symlink('/etc','l')", spec: sandbox.Spec{Files: map[string][]byte{"a/f": []byte("given")}}, want: posture.Completed, out: "given\n", files: map[string]string{"a/b.txt": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := tc.spec
			spec.ID, spec.Code, spec.Need = "run", []byte(tc.code), need(c)
			if spec.Language == "" {
				spec.Language = "python3"
			}
			if tc.why == posture.ReasonOOM && !up(c, posture.WallMemory) {
				t.Skip("no control group holds its memory here, and the posture says so")
			}
			res, err := c.Run(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if res.State != tc.want || res.Reason != tc.why || res.ExitCode != tc.exit || tc.out != "" && string(res.Stdout) != tc.out {
				t.Errorf("%s %q %d, want %s %q %d; out %.200q err %.600q call %v", res.State, res.Reason, res.ExitCode, tc.want, tc.why, tc.exit, res.Stdout, res.Stderr, res.Call)
			}
			for name, want := range tc.files {
				if got := string(res.OutputFiles[name]); got != want {
					t.Errorf("%s holds %q, want %q (%v)", name, got, want, res.Skipped)
				}
			}
			if len(res.States) == 0 || len(res.Around) == 0 {
				t.Error("the result has no states")
			}
			t.Log(res.Stages, res.MemoryPeak>>20, "MB", res.UserTime, res.SystemTime, res.Refused)
		})
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if list := c.Troubles(); len(list) > 0 {
		t.Error(list)
	}
	nothingLeft(t, dir)
}

func up(c *container.Tier, w posture.Wall) bool {
	for _, have := range c.Posture().Up {
		if have == w {
			return true
		}
	}
	return false
}

// nothingLeft: no folder of a run, no container, no control group and no mount is
// there any more.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	for _, sub := range []string{"runs", "state"} {
		if list, _ := os.ReadDir(filepath.Join(dir, sub)); len(list) > 0 {
			t.Errorf("%s still has %v", sub, list)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	if strings.Contains(string(mounts), dir) {
		t.Error("a mount of the tier's is left")
	}
	filepath.WalkDir("/sys/fs/cgroup", func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.Contains(e.Name(), "holdfast-oci-"+pidPrefix()) {
			t.Errorf("%s is left", path)
		}
		return nil
	})
}

func pidPrefix() string { return strconv.Itoa(os.Getpid()) + "-" }
