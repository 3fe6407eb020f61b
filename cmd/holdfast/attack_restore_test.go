package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const deploysAsk = `version: 1
listen: {pages: none}
boundaries:
  - {boundary: agent/step, risk: HIGH}
`

// copyState copies the state directory, or some of its files, from one place to
// another, as cp does.
func (s *site) copyState(from, to string, names ...string) {
	s.t.Helper()
	if len(names) == 0 {
		if err := os.RemoveAll(filepath.Join(s.dir, to)); err != nil {
			s.t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-a", filepath.Join(s.dir, from), filepath.Join(s.dir, to)).CombinedOutput(); err != nil {
			s.t.Fatalf("%v %s", err, out)
		}
	}
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(s.dir, from, n))
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, to, n), b, 0o600)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// putBack fails where anything is done, or nobody is told why not.
func (s *site) putBack() {
	s.t.Helper()
	if out, code := s.run("step", "bob", "deploy", `{"n":1}`); code != 5 {
		s.t.Fatalf("it is done: %d %s", code, out)
	}
	if out, code := s.run("status"); code != 5 || !strings.Contains(out, "put back to an earlier moment") {
		s.t.Fatalf("%d %s", code, out)
	}
}

// used is a state in which an approval was used, an agent was paused and a token
// was revoked; before is the state without any of it, copy.db the store alone.
//
// The first call makes it, and the others copy that.
func used(t *testing.T) (s *site, pass string) {
	t.Helper()
	dir, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	s = newSite(t, deploysAsk)
	kept := filepath.Join(dir, "used")
	usedState.Lock()
	defer usedState.Unlock()
	if !there(kept) {
		s.use()
		s.soon("the end of the last daemon", func() bool { return !there(filepath.Join(s.dir, "s", "sock")) })
		if out, err := exec.Command("cp", "-a", s.dir, kept).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	} else if out, err := exec.Command("cp", "-a", kept+"/.", s.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return s, filepath.Join(s.dir, "pass")
}

// usedState guards the state that used keeps.
var usedState sync.Mutex

// use makes the state that used returns.
func (s *site) use() {
	s.t.Helper()
	pass := s.operator()
	id := s.asks("bob", `{"n":1}`)
	s.must("review", "approve", id, "--in-part", "--credential-file", pass)
	s.must("state", "backup", "copy.db")
	s.copyState("s", "before")
	s.must("step", "bob", "deploy", `{"n":1}`)
	if out, code := s.run("step", "bob", "deploy", `{"n":1}`); code != 4 {
		s.t.Fatalf("the approval was used twice: %d %s", code, out)
	}
	s.must("agent", "pause", "bob", "loops")
	heads, err := s.command("ledger", "checkpoint").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("heads", string(heads))
}

// TestAttackRestore_the_store_alone: a store that is put back under its state, as
// a backup is, does not act upon an approval that was used since, nor forget
// that its agent was paused. Everything is halted, and says why, until a person resumes.
func TestAttackRestore_the_store_alone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		back func(s *site)
	}{
		{"a backup", func(s *site) {
			b, err := os.ReadFile(filepath.Join(s.dir, "copy.db"))
			if err != nil {
				s.t.Fatal(err)
			}
			s.write("s/holdfast.db", string(b))
		}},
		{"the file without its log", func(s *site) {
			s.copyState("before", "s", "holdfast.db")
			_ = os.Remove(filepath.Join(s.dir, "s", "holdfast.db-wal"))
			_ = os.Remove(filepath.Join(s.dir, "s", "holdfast.db-shm"))
		}},
		{"the file beside the log of the newer one", func(s *site) { s.copyState("before", "s", "holdfast.db") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, pass := used(t)
			c.back(s)
			for _, args := range [][]string{{"ledger", "verify"}, {"ledger", "verify", "--semantics"}, {"ledger", "verify", "--checkpoint", "heads"}} {
				if out, code := s.run(args...); code != 1 || !strings.Contains(out, "_checkpoints") {
					t.Errorf("%v: %d %s", args, code, out)
				}
			}
			for range 2 {
				s.putBack()
			}
			s.must("resume", "--credential-file", pass)
			s.must("ledger", "verify")
			if out, code := s.run("ledger", "verify", "--checkpoint", "heads"); code != 1 {
				t.Errorf("%d %s", code, out)
			}
		})
	}
}

// TestAttackRestore_everything: only a signed head that was kept elsewhere finds
// that the whole directory was put back, before and after it goes on.
func TestAttackRestore_everything(t *testing.T) {
	t.Parallel()
	s, _ := used(t)
	s.must("ledger", "verify", "--checkpoint", "heads")
	s.copyState("before", "s")
	for i := range 2 {
		s.must("ledger", "verify")
		if out, code := s.run("ledger", "verify", "--checkpoint", "heads"); code != 1 || !strings.Contains(out, "does not verify") {
			t.Errorf("%d %s", code, out)
		}
		if i == 0 {
			s.must("step", "bob", "deploy", `{"n":1}`) // it knows of no use
		}
	}
}

// TestAttackRestore_what_is_missing: without a key, without the store, or with its
// log alone nothing is done, and what is wrong is said.
func TestAttackRestore_what_is_missing(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{"ledger.key": "ledger.key is missing", "seal.key": "seal.key is missing", "token.key": "token.key is missing",
		"runtime.id": "runtime.id is missing", "holdfast.db": "is missing, but its keys are there"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := used(t)
			if err := os.Rename(filepath.Join(s.dir, "s", name), filepath.Join(s.dir, "away")); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"step", "bob", "plan"}, {"up", "--no-operator"}} {
				if out, code := s.run(args...); code != 1 || !strings.Contains(out, says) {
					t.Errorf("%v: %d %s", args, code, out)
				}
			}
			if there(filepath.Join(s.dir, "s", name)) {
				t.Error("it was made anew")
			}
		})
	}
}

// TestAttackRestore_two_of_one_state: two that run on copies of one state are two
// histories, and the head that either signed does not verify in the other.
func TestAttackRestore_two_of_one_state(t *testing.T) {
	t.Parallel()
	s := newSite(t, "version: 1\nlisten: {pages: none}\n")
	s.must("step", "bob", "plan")
	s.copyState("s", "t")
	s.must("step", "one", "plan")
	s.must("step", "two", "plan", "--state", filepath.Join(s.dir, "t"))
	s.must("ledger", "verify")
	s.must("ledger", "verify", "--state", filepath.Join(s.dir, "t"))
	heads, err := s.command("ledger", "checkpoint", "--state", filepath.Join(s.dir, "t")).Output()
	if err != nil {
		t.Fatal(err)
	}
	s.write("heads", string(heads))
	if out, code := s.run("ledger", "verify", "--checkpoint", "heads"); code != 1 {
		t.Errorf("%d %s", code, out)
	}
	// One's store under the other's state.
	s.copyState("t", "s", "holdfast.db")
	s.putBack()
}

// TestAttackRestore_under_a_living_daemon: where the older store is copied over
// the open one, whatever is answered then is no approval used twice without a
// word: the daemon refuses, or the ledger does not verify.
func TestAttackRestore_under_a_living_daemon(t *testing.T) {
	t.Parallel()
	for name, emptied := range map[string]bool{"the file": false, "the file, its log emptied": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := used(t)
			up := s.start("out", "up", "--no-operator")
			s.soon("the daemon", func() bool { return there(filepath.Join(s.dir, "s", "sock")) })
			s.must("status")
			s.copyState("before", "s", "holdfast.db")
			if emptied {
				s.write("s/holdfast.db-wal", "")
			}
			out, code := s.run("step", "bob", "deploy", `{"n":1}`)
			s.stop(up)
			verified, bad := s.run("ledger", "verify")
			t.Logf("step: %d %.300s\nverify: %d %.300s", code, out, bad, verified)
			if code == 0 && bad == 0 {
				t.Error("an approval was used twice, and the ledger verifies")
			}
			again, code := s.run("step", "bob", "deploy", `{"n":1}`)
			t.Logf("afterwards: %d %.300s", code, again)
			if code == 0 {
				t.Error("an approval was used twice after a restart")
			}
		})
	}
}

// TestAttackRestore_the_log_alone: an older log beside a newer store is not taken
// for what was done.
func TestAttackRestore_the_log_alone(t *testing.T) {
	t.Parallel()
	s := newSite(t, "version: 1\nlisten: {pages: none}\n")
	up := s.start("out", "up", "--no-operator")
	s.soon("the daemon", func() bool { return there(filepath.Join(s.dir, "s", "sock")) })
	s.must("step", "bob", "plan")
	if err := os.Mkdir(filepath.Join(s.dir, "before"), 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(s.dir, "s", "holdfast.db-wal"))
	if err != nil || len(b) == 0 {
		t.Skip("there is no log to keep: ", err)
	}
	s.write("before/holdfast.db-wal", string(b))
	s.must("agent", "pause", "bob", "loops")
	s.must("step", "eve", "plan")
	s.stop(up)
	s.must("ledger", "verify")
	s.copyState("before", "s", "holdfast.db-wal")
	_ = os.Remove(filepath.Join(s.dir, "s", "holdfast.db-shm"))
	verified, bad := s.run("ledger", "verify")
	out, code := s.run("step", "bob", "plan")
	t.Logf("verify: %d %.300s\nstep: %d %.300s", bad, verified, code, out)
	if code == 0 {
		t.Error("the pause is forgotten")
	}
}
