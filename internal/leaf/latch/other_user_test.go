package latch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestD34_AnotherUsersFileHalts: a person stops an ordinary user's Holdfast as root,
// with a file that it can neither read nor write. It is halted, and whoever owns
// the directory resumes.
func TestD34_AnotherUsersFileHalts(t *testing.T) {
	const key = "HOLDFAST_TEST_HALT"
	if path := os.Getenv(key); path != "" {
		anothers(t, path)
		return
	}
	if os.Geteuid() != 0 {
		l := latch(t)
		if err := os.WriteFile(l.Path(), []byte(`{}`), 0); err != nil {
			t.Fatal(err)
		}
		anothers(t, l.Path()) // one's own, which says as little
		return
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "halt") // whose parents everybody may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	self, state := filepath.Join(dir, "self"), filepath.Join(dir, "state")
	path := filepath.Join(state, "HALT")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(self, b, 0o755), os.Mkdir(state, 0o700), os.WriteFile(path, []byte(`{"who":"root"}`), 0o600), os.Chown(state, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.Env = state, append(os.Environ(), key+"="+path, "TMPDIR="+state)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after resuming: %v", err)
	}
}

// anothers is what one who cannot read the latch sees of it, and does.
func anothers(t *testing.T, path string) {
	l, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := l.Read(); !l.Halted() || !s.Halted || s.Why != Unreadable || !errors.Is(err, os.ErrPermission) {
		t.Fatalf("%v %+v %v", l.Halted(), s, err)
	}
	if set, err := l.SetFirst("maria", "too", noon); set || err != nil {
		t.Fatal(set, err)
	}
	if err := l.Reword("maria", "other words"); err != nil && !l.Halted() {
		t.Fatal(err)
	}
	if !l.Halted() {
		t.Fatal("not halted any more")
	}
	if err := l.Clear(); err != nil || l.Halted() {
		t.Fatalf("resume: %v", err)
	}
}
