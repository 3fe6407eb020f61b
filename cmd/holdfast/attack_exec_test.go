//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// confined is a site that runs Python wherever tests run, root or not.
func confined(t *testing.T) *site {
	t.Helper()
	s := newSite(t, "version: 1\nlisten: {pages: none}\nboundaries:\n  - {boundary: exec/python3.11, risk: LOW, walls: [pid, net, mount, seccomp]}\n")
	s.write("ok.py", "print(6 * 7)\n")
	s.operator()
	if err := shareRoots(filepath.Join(s.dir, "s")); err != nil {
		t.Fatal(err)
	}
	s.start("up", "up", "--no-operator")
	s.after("up", "listening")
	if out, code := s.run("exec", "--lang", "python3.11", "ok.py"); code != 0 {
		t.Skipf("no python3.11 can be run here: %s", out)
	}
	return s
}

// attackByHalt: code that spins is ended by a halt, its exit code says so, and nothing
// runs while everything is halted. Where the machine is so slow that the run's time was
// over before the halt came, it is tried again.
func (s *site) attackByHalt() {
	t, pid := s.t, s.pid()
	s.write("spin.py", "print('going on', flush=True)\nwhile True: pass\n")
	for tries := 1; ; tries++ {
		cmd := s.start("spun", "exec", "--lang", "python3.11", "--timeout", "30s", "spin.py")
		s.soon("the run", func() bool { return spinsBelow(pid) })
		if out := s.must("halt", "enough"); !strings.Contains(out, "halted") {
			t.Error(out)
		}
		_ = cmd.Wait()
		b, _ := os.ReadFile(filepath.Join(s.dir, "spun"))
		late := strings.Contains(string(b), "Timeout")
		if late && tries < 5 {
			s.must("resume", "--credential-file", filepath.Join(s.dir, "pass"))
			continue
		}
		if code := cmd.ProcessState.ExitCode(); code != 137 && code != 5 || late {
			t.Errorf("exit %d: %s", code, b)
		}
		break
	}
	out, code := s.run("exec", "--lang", "python3.11", "ok.py")
	if code != 5 || strings.Contains("\n"+out, "\n42\n") { // an id may have 42
		t.Errorf("while halted: %d %s", code, out)
	}
}

// attackEscapes: a program that prints a violation and leaves with its exit code pauses
// no one; one that calls ptrace does, and the next run of that agent does not start.
func (s *site) attackEscapes() {
	t := s.t
	s.write("forged.py", "import sys\nsys.stderr.write('Seccomp violation: syscall ptrace blocked\\n'); sys.exit(159)\n")
	s.write("real.py", "import ctypes\nctypes.CDLL(None).ptrace(16, 1, 0, 0)\nprint('after')\n")
	if out, code := s.run("exec", "--agent", "trudy", "--lang", "python3.11", "forged.py"); code != 159 || strings.Contains(out, "paused") {
		t.Errorf("forged: %d %s", code, out)
	}
	if out, code := s.run("exec", "--agent", "trudy", "--lang", "python3.11", "ok.py"); code != 0 {
		t.Errorf("after a forged one: %d %s", code, out)
	}
	if out, code := s.run("exec", "--agent", "trudy", "--lang", "python3.11", "real.py"); code != 159 || !strings.Contains(out, "with ptrace (call ") || strings.Contains(out, "after") {
		t.Errorf("real: %d %s", code, out)
	}
	if out, code := s.run("exec", "--agent", "trudy", "--lang", "python3.11", "ok.py"); code != 3 || !strings.Contains(out, "paused") {
		t.Errorf("after a real one: %d %s", code, out)
	}
}

// TestSharedRootsAreUsed: a daemon that shares the roots builds none.
func TestSharedRootsAreUsed(t *testing.T) {
	t.Parallel()
	s := confined(t)
	roots, err := os.Readlink(filepath.Join(s.dir, "s", "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(s.dir, "up"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(log, []byte("built a root")) {
		t.Errorf("a root was built although %s has one:\n%s", roots, log)
	}
}
