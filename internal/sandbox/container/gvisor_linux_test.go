//go:build linux

package container_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
)

// TestGVisor: under runsc the wall stands by its name, with the platform that it
// really used, the kernel that a program sees is not the host's, and the limits
// end it; that no call is named there the posture says.
func TestGVisor(t *testing.T) {
	if _, err := exec.LookPath("runsc"); err != nil {
		t.Skip("runsc is not installed")
	}
	dir := filepath.Join(t.TempDir(), "oci")
	c, err := container.Open(t.Context(), container.Config{Dir: dir, Runtime: "runsc", Programs: programs(t), Secret: func(string) bool { return false }, Warn: func(s string) { t.Log(s) }})
	if err != nil {
		t.Skip("runsc runs nothing here: ", err)
	}
	defer c.Close()
	p := c.Posture()
	t.Logf("%+v", p)
	if !slices.Contains(p.Up, sandbox.WallGVisor) || p.Names || slices.Contains(p.Up, sandbox.WallSeccomp) || p.Down[sandbox.WallSeccomp] == "" || !strings.Contains(p.Runtime, "platform ") {
		t.Errorf("its posture is %+v", p)
	}
	run := func(code string, change func(*sandbox.Spec)) *sandbox.Result {
		t.Helper()
		spec := sandbox.Spec{ID: "gv", Language: "python3", Code: []byte(code), Need: p.Up}
		if change != nil {
			change(&spec)
		}
		res, err := c.Run(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	host, err := exec.Command("uname", "-r").Output()
	if err != nil {
		t.Fatal(err)
	}
	res := run("import os; print(os.uname().release); open('out.txt','w').write(open('in.txt').read()); raise SystemExit(5)", func(s *sandbox.Spec) { s.Files = map[string][]byte{"in.txt": []byte("given")} })
	if res.ExitCode != 5 || string(res.Stdout) == string(host) || len(res.Stdout) < 4 || string(res.OutputFiles["out.txt"]) != "given" {
		t.Errorf("%d %q %q %v", res.ExitCode, res.Stdout, res.Stderr, res.OutputFiles)
	}
	if res := run("while True: pass", func(s *sandbox.Spec) { s.Timeout = 3 * time.Second }); res.State != sandbox.Timeout || res.ExitCode != sandbox.ExitLimit {
		t.Errorf("%s %d", res.State, res.ExitCode)
	}
	if _, err := c.Run(t.Context(), sandbox.Spec{ID: "gv", Language: "python3", Code: []byte("1")}); err == nil {
		t.Error("a request for every wall runs where no call is named")
	}
	c.Close()
	nothingLeft(t, dir)
}
