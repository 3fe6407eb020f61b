package snapshot

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

const nobody = "HOLDFAST_TEST_NOBODY"

// TestFoldersThatAreShut: who runs as Holdfast's own user shuts folders, and the tree
// itself, so that nothing can be written to them. The tree goes back all the same, and
// what was shut in the version, or is no part of it, is shut again.
func TestFoldersThatAreShut(t *testing.T) {
	if os.Geteuid() == 0 { // who may write everywhere
		tmp := t.TempDir()
		if err := errors.Join(os.Chmod(filepath.Dir(tmp), 0o755), os.Chown(tmp, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestFoldersThatAreShut$", "-test.v", "-test.timeout=3m")
		cmd.Dir, cmd.Env = "/", append(os.Environ(), "TMPDIR="+tmp, nobody+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
		runtime.LockOSThread() // the kernel ends it with the thread that began it
		defer runtime.UnlockOSThread()
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		return
	}
	s := newSite(t)
	t.Cleanup(func() {
		for _, path := range []string{"", "d", "new", "shut", "shut/sub"} {
			_ = os.Chmod(s.path(path), 0o700) // so that it can be taken away
		}
	})
	for _, name := range []string{"a", "d/f", "shut/f", "shut/sub/f"} {
		s.write(name, "good")
	}
	modes := func(mode os.FileMode, names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.Chmod(s.path(name), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	modes(0o555, "shut/sub", "shut")
	m := s.take()
	good := s.picture()
	modes(0o700, "shut", "shut/sub")
	for _, name := range []string{"a", "d/f", "shut/f", "shut/sub/f", "new/f"} {
		s.write(name, "bad")
	}
	s.remove("shut/sub/f")
	modes(0o555, "shut/sub", "shut", "d", "new", "")
	s.back(m)
	s.is(good)
	if info, err := os.Stat(s.tree.Path); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("the tree's mode is %v, %v", info.Mode(), err)
	}
}
