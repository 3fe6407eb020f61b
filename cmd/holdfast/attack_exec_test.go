//go:build linux

package main

import (
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
	s.start("up", "up", "--no-operator")
	s.after("up", "listening")
	if out, code := s.run("exec", "--lang", "python3.11", "ok.py"); code != 0 {
		t.Skipf("no python3.11 can be run here: %s", out)
	}
	return s
}

// TestAttackHaltCutsARun: code that spins is ended by a halt, says so by its exit
// code, and the ledger stays whole.
func TestAttackHaltCutsARun(t *testing.T) {
	t.Parallel()
	s := confined(t)
	s.write("spin.py", "print('going on', flush=True)\nwhile True: pass\n")
	cmd := s.start("spun", "exec", "--lang", "python3.11", "--timeout", "30s", "spin.py")
	s.soon("the run", func() bool { return strings.Contains(s.must("status"), "in flight") })
	if out := s.must("halt", "enough"); !strings.Contains(out, "halted") {
		t.Error(out)
	}
	_ = cmd.Wait()
	b, _ := os.ReadFile(filepath.Join(s.dir, "spun"))
	if code := cmd.ProcessState.ExitCode(); code != 137 && code != 5 || strings.Contains(string(b), "Timeout") {
		t.Errorf("exit %d: %s", code, b)
	}
	if out, code := s.run("exec", "--lang", "python3.11", "ok.py"); code != 5 || strings.Contains(out, "42") {
		t.Errorf("while halted: %d %s", code, out)
	}
	s.must("ledger", "verify", "--semantics")
}

// TestAttackOnlyRealEscapesPause: a program that prints a violation and leaves
// with its exit code pauses nobody; one that calls ptrace does, and the next run
// of that agent does not start.
func TestAttackOnlyRealEscapesPause(t *testing.T) {
	t.Parallel()
	s := confined(t)
	s.write("forged.py", "import sys\nsys.stderr.write('Seccomp violation: syscall ptrace blocked\\n'); sys.exit(159)\n")
	s.write("real.py", "import ctypes\nctypes.CDLL(None).ptrace(16, 1, 0, 0)\nprint('after')\n")
	if out, code := s.run("exec", "--agent", "eve", "--lang", "python3.11", "forged.py"); code != 159 || strings.Contains(out, "paused") {
		t.Errorf("forged: %d %s", code, out)
	}
	if out, code := s.run("exec", "--agent", "eve", "--lang", "python3.11", "ok.py"); code != 0 {
		t.Errorf("after a forged one: %d %s", code, out)
	}
	if out, code := s.run("exec", "--agent", "eve", "--lang", "python3.11", "real.py"); code != 159 || !strings.Contains(out, "with ptrace (call ") || strings.Contains(out, "after") {
		t.Errorf("real: %d %s", code, out)
	}
	if out, code := s.run("exec", "--agent", "eve", "--lang", "python3.11", "ok.py"); code != 3 || !strings.Contains(out, "paused") {
		t.Errorf("after a real one: %d %s", code, out)
	}
	s.must("ledger", "verify", "--semantics")
}
