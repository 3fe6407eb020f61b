//go:build linux

package process

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.Faulty()
	Launcher()
	guestInit()
	os.Exit(sandboxtest.NullKept(func() int { return withRoots(m.Run) }))
}

// rootsEnv names the directory for roots that all tests share which are not about
// how roots are made: to copy one takes longer than most tests. The tests' own
// process makes it, and those that it starts with its environment use it too.
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
		fmt.Fprintln(os.Stderr, "no directory for roots:", err)
		return 1
	}
	return run()
}

func rootsFor(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(rootsEnv)
	if dir == "" {
		t.Fatal("there is no directory for roots")
	}
	return dir
}

func tier(t *testing.T) *Tier {
	t.Helper()
	b, err := Open(context.Background(), Config{Dir: rootsFor(t), Secret: func(string) bool { return false }, Note: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestRun(t *testing.T) {
	t.Parallel()
	b := tier(t)
	for name, tc := range map[string]struct {
		code string
		spec sandbox.Spec
		want posture.State
		exit int
		out  string
	}{
		"hello":   {code: "print('hello')", want: posture.Completed, out: "hello\n"},
		"fails":   {code: "import sys; sys.exit(3)", want: posture.Completed, exit: 3},
		"timeout": {code: "while True: pass", spec: sandbox.Spec{Timeout: 300 * time.Millisecond}, want: posture.Timeout, exit: 137},
		"exec":    {code: "import os; os.execv('/usr/bin/python3.11',['x'])", want: posture.SyscallBlocked, exit: 159},
		"output":  {code: "open('a.txt','w').write('x'); print(open('in/f').read())", spec: sandbox.Spec{Files: map[string][]byte{"in/f": []byte("given")}}, want: posture.Completed, out: "given\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.spec
			s.ID, s.Language, s.Code, s.Need = "t-"+name, "python3", []byte(tc.code), []posture.Wall{posture.WallPID}
			res, err := b.Run(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if res.State != tc.want || res.ExitCode != tc.exit || string(res.Stdout) != tc.out {
				t.Errorf("%s %d %q (%q), want %s %d %q; %+v", res.State, res.ExitCode, res.Stdout, res.Stderr, tc.want, tc.exit, tc.out, res)
			}
			t.Logf("%v %v %q %+v out %d skipped %v", res.Stages, res.WallTime, res.Stderr, res.Call, len(res.OutputFiles), res.Skipped)
		})
	}
}
