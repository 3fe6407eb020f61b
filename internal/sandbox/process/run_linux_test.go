//go:build linux

package process

import (
	"cmp"
	"context"
	"os"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.Faulty()
	Launcher()
	guestInit()
	os.Exit(m.Run())
}

// rootsEnv names a directory for roots that all tests share, where making them
// takes long.
const rootsEnv = "HOLDFAST_TEST_ROOTS"

func rootsFor(t testing.TB) string { return cmp.Or(os.Getenv(rootsEnv), t.TempDir()) }

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
	b := tier(t)
	for name, tc := range map[string]struct {
		code string
		spec sandbox.Spec
		want sandbox.State
		exit int
		out  string
	}{
		"hello":   {code: "print('hello')", want: sandbox.Completed, out: "hello\n"},
		"fails":   {code: "import sys; sys.exit(3)", want: sandbox.Completed, exit: 3},
		"timeout": {code: "while True: pass", spec: sandbox.Spec{Timeout: 300 * time.Millisecond}, want: sandbox.Timeout, exit: 137},
		"exec":    {code: "import os; os.execv('/usr/bin/python3.11',['x'])", want: sandbox.SyscallBlocked, exit: 159},
		"output":  {code: "open('a.txt','w').write('x'); print(open('in/f').read())", spec: sandbox.Spec{Files: map[string][]byte{"in/f": []byte("given")}}, want: sandbox.Completed, out: "given\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.spec
			s.ID, s.Language, s.Code, s.Need = "t-"+name, "python3", []byte(tc.code), []sandbox.Wall{sandbox.WallPID}
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
