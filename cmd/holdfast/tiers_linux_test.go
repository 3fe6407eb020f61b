package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// containers is a site whose daemon has containers. What is missing for it skips the
// test, and fails it in CI.
func containers(t *testing.T) (s *site, up *exec.Cmd, pass string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a container runtime")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no runc; `make deps` installs it")
		}
		t.Skip("there is no runc; `make deps` installs it")
	}
	s = newSite(t, tiersPolicy("container: {runtime: runc}"))
	pass = s.operator()
	if err := shareRoots(filepath.Join(s.dir, "s")); err != nil {
		t.Fatal(err)
	}
	up = s.start("up", "up", "--no-operator")
	s.after("up", "listening")
	return s, up, pass
}

// tiersPolicy is the configuration of a daemon with tiers of the sandbox.
func tiersPolicy(tiers string) string {
	return "version: 1\nlisten: {pages: none}\nsandbox: {" + tiers + "}\n" +
		"agents: {kinds: {trusted: {iterations: 100, trust: medium}}}\n" +
		"boundaries:\n  - {boundary: 'exec/*', risk: LOW, permissions: ['exec:run'], timeout: 10m, walls: [pid, net, mount, seccomp]}\n"
}

// ran is a run's answer, as --json has it.
type ran struct {
	Outcome struct{ Crossing string }
	Result  *posture.Document
	Error   *struct{ Kind, Why string }
}

// ran runs a file of the site's, and returns what is said of it.
func (s *site) ran(code int, args ...string) ran {
	s.t.Helper()
	out, got := s.apart(append([]string{"exec", "--json", "--lang", "python3"}, args...)...)
	var r ran
	if err := json.Unmarshal([]byte(out), &r); err != nil || got != code {
		s.t.Fatalf("%v: exit %d, want %d, %v\n%s", args, got, code, err, out)
	}
	return r
}

// TestContainersEndToEnd sends requests through a daemon into containers: what goes in
// and comes out, what is recorded of it, what halt and an attempt to get out come to.
func TestContainersEndToEnd(t *testing.T) {
	t.Parallel()
	s, up, pass := containers(t)
	s.tryTier(tierTrial{tier: "container", runtime: "runc ", note: "first process of its namespace", entropy: "12",
		why: "container: predicted entropy 12 is over 10", child: "runc"}, up.Process.Pid, pass)
}

// tierTrial is what a tier should say of itself.
type tierTrial struct {
	tier, runtime, note string
	entropy, why        string // what chooses it, and the reason that is given
	child               string // the name of a run's process among the daemon's
}

// tryTier sends the requests into a tier of the daemon with that PID.
func (s *site) tryTier(c tierTrial, daemon int, pass string) {
	t := s.t
	t.Helper()
	s.write("work.py", "import os\nprint(open('in/data').read(), sorted(os.listdir('.')))\nopen('made','w').write('of it')\n")
	s.write("data", "given")
	s.write("slow.py", "import time\nprint('begun', flush=True)\ntime.sleep(250)\n")
	s.write("escape.py", "import ctypes\nprint('before', flush=True)\nctypes.CDLL(None).ptrace(16, 1, 0, 0)\nprint('after')\n")
	s.write("ok.py", "print(6 * 7)\n")
	out := filepath.Join(s.dir, "out-"+c.tier)
	r := s.ran(0, "--kind", "trusted", "--agent", "tess", "--entropy", c.entropy, "--novelty", "0", "--file", "in/data=data", "--out", out, "work.py")
	p := r.Result.Posture
	if b, err := os.ReadFile(filepath.Join(out, "made")); r.Result.Stdout != "given ['in']\n" || string(b) != "of it" {
		t.Errorf("%q, %q, %v", r.Result.Stdout, b, err)
	}
	if p.Tier.String() != c.tier || !strings.HasPrefix(p.Runtime, c.runtime) || !strings.Contains(strings.Join(p.Notes, "; "), c.note) || !p.Names ||
		c.tier == "vm" && !strings.HasSuffix(p.Runtime, ", tcg") && !strings.HasSuffix(p.Runtime, ", kvm") {
		t.Errorf("the posture is %+v", p)
	}
	if got := s.must("ledger", "show", r.Outcome.Crossing); r.Result.Chosen != c.why || !strings.Contains(got, c.why+"; by "+p.Runtime) {
		t.Errorf("chosen was %q, and the ledger has it as\n%s", r.Result.Chosen, got)
	}
	if got := s.must("status"); !strings.Contains(got, c.tier+" tier, "+p.Runtime) {
		t.Error(got)
	}
	s.escapes(c.tier)
	s.halts(c.tier, daemon, c.child, pass)
	s.must("ledger", "verify", "--semantics")
}

// escapes: an attempt to get out in that tier is named, pauses its agent and calls
// a person (D21); of what the code wrote nothing is let out, and others go on.
func (s *site) escapes(tier string) {
	s.t.Helper()
	agent := "mallory-" + tier
	r := s.ran(159, "--tier", tier, "--agent", agent, "escape.py")
	if r.Error == nil || r.Error.Kind != "SandboxEscapeError" || !strings.Contains(r.Error.Why, "with ptrace (call ") ||
		r.Result == nil || strings.Contains(r.Result.Stdout, "before") || r.Result.Posture.Tier.String() != tier {
		s.t.Errorf("an attempt to get out: %+v %+v", r.Error, r.Result)
	}
	if out, code := s.run("exec", "--lang", "python3", "--tier", tier, "--agent", agent, "ok.py"); code != 3 || !strings.Contains(out, "paused") {
		s.t.Errorf("after it: %d %s", code, out)
	}
	if out := s.must("review", "ls"); !strings.Contains(out, agent) {
		s.t.Errorf("nobody is asked: %s", out)
	}
	if out := s.must("ledger", "tail", "--events"); !strings.Contains(out, "sandbox_escape_attempted") || !strings.Contains(out, agent) {
		s.t.Errorf("no event tells of it: %s", out)
	}
	if r := s.ran(0, "--tier", tier, "--agent", "other", "ok.py"); r.Result.Stdout != "42\n" {
		s.t.Errorf("another's run: %+v", r.Result)
	}
}

// halts: a halt ends what runs in that tier, whose time is far from over, and
// nothing of it stays.
func (s *site) halts(tier string, daemon int, child, pass string) {
	s.t.Helper()
	name := "slow-" + tier
	cmd := s.start(name, "exec", "--lang", "python3", "--tier", tier, "slow.py")
	s.soon("the run in "+tier, func() bool { return len(below(daemon, child)) > 0 && strings.Contains(s.must("status"), "in flight") })
	began := time.Now()
	if out := s.must("halt", "enough"); !strings.Contains(out, "halted") {
		s.t.Error(out)
	}
	_ = cmd.Wait()
	took := time.Since(began)
	said, err := os.ReadFile(filepath.Join(s.dir, name))
	if code := cmd.ProcessState.ExitCode(); err != nil || code != 137 && code != 5 || strings.Contains(string(said), "Timeout") {
		s.t.Errorf("exit %d, %v: %s", code, err, said)
	}
	s.t.Logf("halted in the %s tier: the command's end came %v after `holdfast halt` was started", tier, took.Round(time.Millisecond))
	s.soon("the end of what ran", func() bool { return len(below(daemon, child)) == 0 })
	if out := s.must("ledger", "tail"); !strings.Contains(out, "halted") {
		s.t.Error(out)
	}
	s.must("resume", "--credential-file", pass)
	if r := s.ran(0, "--tier", tier, "--agent", "other", "ok.py"); r.Result.Stdout != "42\n" {
		s.t.Errorf("when it goes on: %+v", r.Result)
	}
}

// below are the processes of that name below one.
func below(pid int, name string) (found []int) {
	parents := map[int]int{}
	list, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range list {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		var of, parent int
		var state, comm string
		head, rest, _ := strings.Cut(string(b), ") ")
		of, _ = strconv.Atoi(filepath.Base(filepath.Dir(f)))
		_, comm, _ = strings.Cut(head, "(")
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && state != "Z" {
			if parents[of] = parent; strings.HasPrefix(comm, name) {
				found = append(found, of)
			}
		}
	}
	return slices.DeleteFunc(found, func(of int) bool {
		for range parents {
			if of = parents[of]; of == pid {
				return false
			}
		}
		return true
	})
}
