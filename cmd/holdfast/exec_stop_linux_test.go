package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever interrupts a run has what the code had written, and exit code 130;
// where the daemon is ended instead, whoever waits is told so. Neither was done.
func TestStoppedRunShowsWhatThereWas(t *testing.T) {
	t.Parallel()
	s := newSite(t, "version: 1\nlisten: {pages: none}\nboundaries:\n  - {boundary: exec/python3.11, risk: LOW, walls: [pid, net, mount, seccomp]}\n")
	s.write("slow.py", "print('begun', flush=True)\nwhile True: pass\n")
	if err := shareRoots(filepath.Join(s.dir, "s")); err != nil {
		t.Fatal(err)
	}
	up := s.start("up", "up", "--no-operator")
	s.after("up", "listening")
	s.write("ok.py", "print(6 * 7)\n")
	s.must("exec", "--lang", "python3.11", "ok.py")
	daemon := s.pid()
	for _, c := range []struct {
		name, says string
		code       int
		end        func(run *os.Process) error
	}{
		{"interrupted", "stopped by you after", 130, func(run *os.Process) error { return run.Signal(os.Interrupt) }},
		{"ended", "Holdfast was ended while it ran", 137, func(*os.Process) error { return up.Process.Signal(os.Interrupt) }},
	} {
		run := s.start(c.name, "exec", "--lang", "python3.11", "--timeout", "30s", "slow.py")
		s.soon("the run", func() bool { return spinsBelow(daemon) })
		if err := c.end(run.Process); err != nil {
			t.Fatal(err)
		}
		_ = run.Wait()
		said, err := os.ReadFile(filepath.Join(s.dir, c.name))
		if code := run.ProcessState.ExitCode(); err != nil || code != c.code || !strings.Contains(string(said), "begun\n") || !strings.Contains(string(said), c.says) {
			t.Errorf("%s: exit %d, %v: %s", c.name, code, err, said)
		}
	}
	_ = up.Wait()
	if tail := s.must("ledger", "tail"); strings.Count(tail, "canceled") != 2 || strings.Count(tail, "done") != 1 {
		t.Error(tail)
	}
	s.must("ledger", "verify", "--semantics")
}
