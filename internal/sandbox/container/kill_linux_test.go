//go:build linux

package container_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
)

const childDir = "HOLDFAST_TEST_OCI_DIR"

// patience is how long anything may take on a busy machine.
const patience = 90 * time.Second

// eventually waits until f is true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("after %v it is not so that %s", patience, what)
		}
	}
}

// TestKilledHoldfast: when Holdfast is killed while a container runs, its heir
// takes container, processes, control groups, mounts and folders away, without a
// Holdfast that starts anew. Where the heir is killed too, the next one does.
func TestKilledHoldfast(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		runForEver(t, dir)
		return
	}
	t.Run("heir", func(t *testing.T) {
		dir, cmd := victim(t)
		inside, _ := processesOf(t, dir)
		end := heirsOf(t, cmd.Process.Pid)
		kill(t, end, unix.SIGTERM) // which ends no heir
		cmd.Process.Kill()
		cmd.Wait()
		eventually(t, "its folders are gone", func() bool {
			runs, _ := os.ReadDir(filepath.Join(dir, "runs"))
			state, _ := os.ReadDir(filepath.Join(dir, "state"))
			return len(runs)+len(state) == 0
		})
		eventually(t, "its processes are gone", func() bool { return len(still(inside)) == 0 })
		eventually(t, "its control groups are gone", func() bool { return len(groupsOf(cmd.Process.Pid)) == 0 })
		eventually(t, "its heir has ended", func() bool { return len(still(end)) == 0 })
		nothingLeft(t, dir)
	})
	t.Run("next", func(t *testing.T) {
		dir, cmd := victim(t)
		// Else it has another heir before it is killed itself.
		if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		kill(t, heirsOf(t, cmd.Process.Pid), unix.SIGKILL)
		cmd.Process.Kill()
		cmd.Wait()
		if list, _ := os.ReadDir(filepath.Join(dir, "runs")); len(list) == 0 {
			t.Fatal("nothing was left, so that nothing is shown")
		}
		c, err := container.Open(t.Context(), container.Config{Dir: dir, Runtime: "runc", Programs: programs(t), Warn: func(s string) { t.Log(s) }})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		nothingLeft(t, dir)
		for _, d := range groupsOf(cmd.Process.Pid) {
			t.Errorf("%s is left", d)
		}
	})
}

// TestHeirKeepsNoRights that it does not need, has a session of its own, and is
// followed by another one where it was killed; Close ends it.
func TestHeirKeepsNoRights(t *testing.T) {
	c, _ := open(t, nil)
	hello := func() {
		t.Helper()
		if res, err := c.Run(t.Context(), sandbox.Spec{ID: "hello", Language: "python3", Code: []byte("print(1)"), Need: need(c)}); err != nil || string(res.Stdout) != "1\n" {
			t.Fatal(res, err)
		}
	}
	hello()
	first := heirsOf(t, os.Getpid())
	if len(first) != 1 {
		t.Fatalf("heirs: %v", first)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", first[0].pid))
	if err != nil {
		t.Fatal(err)
	}
	rights := "0000000000000000"
	if os.Geteuid() == 0 {
		rights = fmt.Sprintf("%016x", 1<<unix.CAP_KILL|1<<unix.CAP_DAC_OVERRIDE)
	}
	for _, line := range []string{"CapEff:\t" + rights, "CapPrm:\t" + rights, "CapAmb:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !strings.Contains(string(status), line) {
			t.Errorf("its status lacks %q:\n%s", line, status)
		}
	}
	if os.Geteuid() == 0 && !strings.Contains(string(status), "CapBnd:\t"+rights) {
		t.Errorf("rights can come back to it:\n%s", status)
	}
	if sid, err := unix.Getsid(first[0].pid); err != nil || sid != first[0].pid {
		t.Errorf("its session is %d (%v)", sid, err)
	}
	kill(t, first, unix.SIGKILL)
	eventually(t, "another one waits", func() bool {
		hello()
		second := heirsOf(t, os.Getpid())
		return len(second) == 1 && second[0] != first[0]
	})
	c.Close()
	if left := heirsOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("heirs after the tier was closed: %v", left)
	}
}

// proc is a process, known by its start too: numbers come again.
type proc struct {
	pid   int
	start string
}

// procs are the processes for which f is true, of their files in /proc.
func procs(t *testing.T, f func(dir string, parent int) bool) (list []proc) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		if p, parent, ok := look(pid); ok && f(d, parent) {
			list = append(list, p)
		}
	}
	return list
}

// look finds a process that has not ended.
func look(pid int) (p proc, parent int, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	rest := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if err != nil || len(rest) < 20 || rest[0] == "Z" || rest[0] == "X" {
		return proc{}, 0, false
	}
	parent, _ = strconv.Atoi(rest[1])
	return proc{pid, rest[19]}, parent, true
}

// still are those that have not ended.
func still(list []proc) (left []proc) {
	for _, p := range list {
		if now, _, ok := look(p.pid); ok && now == p {
			left = append(left, p)
		}
	}
	return left
}

func kill(t *testing.T, list []proc, sig unix.Signal) {
	t.Helper()
	if len(list) == 0 {
		t.Fatal("there is none to be killed")
	}
	for _, p := range list {
		if err := unix.Kill(p.pid, sig); err != nil {
			t.Fatal(err)
		}
	}
}

// heirsOf are the heirs of a process.
func heirsOf(t *testing.T, pid int) []proc {
	t.Helper()
	return procs(t, func(dir string, parent int) bool {
		line, _ := os.ReadFile(dir + "/cmdline")
		return parent == pid && strings.HasPrefix(string(line), "holdfast-container-heir\x00")
	})
}

// processesOf are those that see a tier's folders mounted: what runs in its
// containers, and their runtimes.
func processesOf(t *testing.T, dir string) (list []proc, inside bool) {
	t.Helper()
	parts := strings.Split(dir, "/")
	tail := strings.Join(parts[len(parts)-3:], "/") + "/" // whatever is mounted above
	list = procs(t, func(at string, _ int) bool {
		mounts, _ := os.ReadFile(at + "/mountinfo")
		code, _ := os.ReadFile(at + "/cmdline")
		sees := strings.Contains(string(mounts), tail)
		inside = inside || sees && strings.Contains(string(code), "/code/")
		return sees
	})
	return list, inside
}

// victim is a Holdfast in whose container a program runs that does not end.
func victim(t *testing.T) (dir string, cmd *exec.Cmd) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "oci")
	cmd = exec.Command("/proc/self/exe", "-test.run=^TestKilledHoldfast$", "-test.v")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			cmd.Process.Kill()
			cmd.Wait()
			t.Log(out.String())
		}
	})
	eventually(t, "its program runs", func() bool {
		_, inside := processesOf(t, dir)
		_, err := os.Stat(filepath.Join(dir, "opened"))
		return inside && err == nil
	})
	return dir, cmd
}

// runForEver runs a program that does not end, and marks in dir that it is the
// next, when the trial is over.
func runForEver(t *testing.T, dir string) {
	c, err := container.Open(t.Context(), container.Config{Dir: dir, Runtime: "runc", Programs: programs(t), Secret: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "opened"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := c.Run(t.Context(), sandbox.Spec{ID: "ever", Language: "python3", Code: []byte("import time\nwhile True: time.sleep(1)"), Need: need(c), Timeout: 100 * time.Second})
	t.Fatalf("its program ended: %+v, %v", res, err)
}

// groupsOf are the control groups of a process's tier.
func groupsOf(pid int) []string {
	a, _ := filepath.Glob("/sys/fs/cgroup/holdfast-oci-" + strconv.Itoa(pid) + "-*")
	b, _ := filepath.Glob("/sys/fs/cgroup/*/holdfast-oci-" + strconv.Itoa(pid) + "-*")
	return append(a, b...)
}
