//go:build linux

package container_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
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
	owner := ownerOf(t, os.DevNull)
	dir := filepath.Join(t.TempDir(), "oci")
	c, err := container.Open(t.Context(), container.Config{Dir: dir, Runtime: "runsc", Programs: programs(t), Secret: func(string) bool { return false }, Warn: func(s string) { t.Log(s) }})
	if err != nil {
		t.Skip("runsc runs nothing here: ", err)
	}
	defer c.Close()
	p := c.Posture()
	t.Logf("%+v", p)
	if !slices.Contains(p.Up, posture.WallGVisor) || p.Names || slices.Contains(p.Up, posture.WallSeccomp) || p.Down[posture.WallSeccomp] == "" || !strings.Contains(p.Runtime, "platform ") {
		t.Errorf("its posture is %+v", p)
	}
	run := func(code string, change func(*sandbox.Spec)) *posture.Result {
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
	for name, code := range map[string]string{"i386": `\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3`, "x32": `\xb8\x27\x00\x00\x40\x0f\x05\xc3`} { // getpid
		code := "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(b'" + code + "')\nprint('came back with', ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))() < 0)"
		res := run(code, nil)
		if res.ExitCode == 128+int(unix.SIGSEGV) && faultsOutside(t, code) {
			t.Logf("this machine has no door of %s", name)
			continue
		}
		if string(res.Stdout) != "came back with True\n" {
			t.Errorf("a call of %s: %s %d %q %q", name, res.State, res.ExitCode, res.Stdout, res.Stderr)
		}
	}
	if res := run("while True: pass", func(s *sandbox.Spec) { s.Timeout = 3 * time.Second }); res.State != posture.Timeout || res.ExitCode != posture.ExitLimit {
		t.Errorf("%s %d", res.State, res.ExitCode)
	}
	if _, err := c.Run(t.Context(), sandbox.Spec{ID: "gv", Language: "python3", Code: []byte("1")}); err == nil {
		t.Error("a request for every wall runs where no call is named")
	}
	c.Close()
	nothingLeft(t, dir)
	if after := ownerOf(t, os.DevNull); after != owner {
		t.Errorf("%s belonged to %d and belongs to %d now: runsc gives its user what it is started with", os.DevNull, owner, after)
	}
}

// faultsOutside says whether the code faults without any wall, too.
func faultsOutside(t *testing.T, code string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", code)
	err := cmd.Run()
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == unix.SIGSEGV
}

func ownerOf(t *testing.T, name string) uint32 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(name, &s); err != nil {
		t.Fatal(err)
	}
	return s.Uid
}
