package server

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func number(t *testing.T, s string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || !alive(pid) {
		t.Fatalf("%q is nobody: %v", s, err)
	}
	t.Cleanup(func() {
		if alive(pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	return pid
}

// escaped checks that a process is out of reach of signals to the group, so
// that the sweep alone can have ended it.
func escaped(t *testing.T, pid int, p *Process) {
	t.Helper()
	group, err := unix.Getpgid(pid)
	if err != nil || group == p.PID() {
		t.Fatalf("%d is in group %d: %v", pid, group, err)
	}
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Fatalf("%d is in session %d: %v", pid, sid, err)
	}
}

// TestEscapedDie: a descendant that forked twice and made a session of its own
// dies with the server, closed or ended of itself.
func TestEscapedDie(t *testing.T) {
	t.Run("closed", func(t *testing.T) {
		p := launch(t, "escape")
		pid := number(t, line(t, p))
		escaped(t, pid, p)
		other := launch(t, "escape")
		spared := number(t, line(t, other))
		p.Close()
		eventually(t, "the escaped process lives on", func() bool { return !alive(pid) })
		if !alive(spared) {
			t.Error("another server's descendant died with it")
		}
	})
	t.Run("ended", func(t *testing.T) {
		p := launch(t, "escape and end")
		b, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the escaped process lives on", func() bool { return !alive(pid) })
		p.Close()
	})
}

// TestSweepLost: what a killed Holdfast left behind is found by the next one,
// and what a living one runs is left alone.
func TestSweepLost(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=holder of escape")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var server, lost int
	if _, err := fmt.Sscan(line(t, out), &server, &lost); err != nil {
		t.Fatal(err)
	}
	number(t, strconv.Itoa(lost))
	mine := launch(t, "escape")
	spared := number(t, line(t, mine))
	SweepLost()
	if !alive(lost) || !alive(server) || !alive(spared) {
		t.Fatal("a living holdfast's servers were swept")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the server outlives a killed holdfast", func() bool { return !alive(server) })
	if !alive(lost) {
		t.Fatal("nothing is left to find")
	}
	if n := SweepLost(); n < 1 {
		t.Errorf("%d found", n)
	}
	eventually(t, "what a killed holdfast left lives on", func() bool { return !alive(lost) })
	if !alive(spared) || !alive(mine.PID()) {
		t.Error("a living holdfast's server was swept")
	}
}

func TestOwnerGone(t *testing.T) {
	self := strconv.Itoa(os.Getpid())
	for mark, want := range map[string]bool{
		newMark():                         false,
		self + "-1-ABC":                   true, // an earlier process of the same number
		self + "-" + startOf(os.Getpid()): false,
		"":                                false,
		"x-1-ABC":                         false,
		"-1-1-ABC":                        false,
		"0-1-ABC":                         false,
		self + "--ABC":                    false,
		"4194399-1-ABC":                   true, // above the largest number
	} {
		if got := ownerGone(mark); got != want {
			t.Errorf("%q: %v", mark, got)
		}
	}
}
