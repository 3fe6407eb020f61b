package snapshot

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
)

// inOwnMounts runs the test once more in a process that may mount, where only it sees
// that, and says that it did; that process it tells that it did not.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	const own = "HOLDFAST_TEST_OWN_MOUNTS"
	if os.Getenv(own) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return false
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=3m")
	cmd.Env = append(os.Environ(), own+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	runtime.LockOSThread() // the kernel ends it with the thread that began it
	defer runtime.UnlockOSThread()
	if b, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(b), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, b)
	}
	return true
}

// TestFullDisk: there is no room for a snapshot, or for what a rollback needs. It is
// named, what was kept is whole, the tree is as it was, and with room it goes on.
func TestFullDisk(t *testing.T) {
	if inOwnMounts(t) {
		return
	}
	s := newSite(t)
	if err := unix.Mount("tmpfs", s.dir, "tmpfs", 0, "size=4m,mode=700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(s.dir, 0); err != nil {
			t.Error(err)
		}
	})
	s.open()
	s.write("a", "good")
	s.write("data", random(400_000))
	m := s.take()
	good := s.picture()
	fill := filepath.Join(s.dir, "trees", "fill")
	if err := os.WriteFile(fill, []byte(random(20<<20)), 0o600); err == nil {
		t.Fatal("the disk is not small")
	}
	s.write("a", "bad")
	s.write("data", random(500_000))
	bad := s.picture()
	named := func(err error) {
		t.Helper()
		var e *holdfast.Error
		if !errors.As(err, &e) || e.Rule != "disk/full" || !strings.Contains(e.Why, "no room") || e.Hint == "" {
			t.Fatalf("%v", err)
		}
	}
	_, err := s.k.Take(t.Context(), []Tree{s.tree}, Manifest{})
	named(err)
	_, err = s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
	named(err)
	s.is(bad)
	s.grows(named)
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	s.packs(named)
	s.verified(m)
	s.open()
	s.verified(s.take())
	s.back(m)
	s.is(good)
}

// grows lets a file grow, once room was asked for, to more than there is room for: its
// copy does not take what is the ledger's.
func (s *site) grows(named func(error)) {
	s.t.Helper()
	k := &keeping{r: &repo{dir: s.dir}, a: ask{room: true}}
	named(k.grown(4 << 20))
	dir := s.t.TempDir()
	from, err := os.Create(filepath.Join(dir, "long"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(s.dir, "copy"))
	if err := errors.Join(err, from.Truncate(64<<20)); err != nil {
		s.t.Fatal(err)
	}
	defer to.Close()
	n, err := k.pour(to, from, 64<<20)
	if named(err); n != 0 {
		s.t.Fatalf("%d bytes were copied", n)
	}
	if err := os.Remove(to.Name()); err != nil {
		s.t.Fatal(err)
	}
}

// packs lets the agent take away what packs well and comes to more than the disk has
// room for, and write it: neither a rollback nor a look at one takes what is the
// ledger's.
func (s *site) packs(named func(error)) {
	s.t.Helper()
	kept := func(err error) {
		s.t.Helper()
		if named(err); !strings.Contains(err.Error(), "are the ledger's") {
			s.t.Fatal(err)
		}
	}
	s.open(func(o *Options) { o.Now = func() time.Time { return time.Now().Add(time.Hour) } }) // so that all of it has rested
	var m *Manifest
	for _, name := range []string{"packs/1", "packs/2", "packs/3"} { // each has room by itself
		s.write(name, name+string(make([]byte, 1_500_000)))
		m = s.take()
	}
	s.remove("packs")
	least := s.free()
	_, err := s.k.Rollback(s.t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
	kept(err)
	if _, err := os.Lstat(s.path("packs")); !errors.Is(err, os.ErrNotExist) {
		s.t.Fatalf("some of it was put back: %v", err)
	}
	for i := range 3 {
		s.write(fmt.Sprintf("all/%d", i), fmt.Sprint(i)+string(make([]byte, 1_500_000)))
	}
	_, err = s.k.Look(s.t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content})
	kept(err)
	s.remove("all")
	if now := s.free(); least-now > 100_000 {
		s.t.Fatalf("%d bytes are free of %d", now, least)
	}
}

// free is how many bytes the keeper's disk has room for.
func (s *site) free() int64 {
	s.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		s.t.Fatal(err)
	}
	return int64(st.Bavail) * st.Bsize
}

// random is text that does not pack.
func random(n int) string {
	b, state := make([]byte, n), uint64(42+n)
	for i := range b {
		state = state*6364136223846793005 + 1442695040888963407
		b[i] = byte(state >> 56)
	}
	return string(b)
}
