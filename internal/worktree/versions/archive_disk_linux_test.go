package versions

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testdisk"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"golang.org/x/sys/unix"
)

// TestArchiveOnAFullDisk: below the state there is room for records, and for no
// archive. That is named and recorded, nothing of it is left, the snapshot is whole, and
// with room it goes on.
func TestArchiveOnAFullDisk(t *testing.T) {
	if testdisk.RunOnSmallDisk(t, "96m") {
		return
	}
	s, folder := openArchived(t)
	big := make([]byte, 16<<20)
	rand.Read(big)
	s.write("big", string(big))
	m := s.taken()
	free := allBut(t, filepath.Dir(s.tree), 8<<20)
	_, err := s.d.snapshots.archive(t.Context(), "me", "", "asked for")
	var e *holdfast.Error
	if !errors.As(err, &e) || !errors.As(e.Err, &e) || e.Rule != "disk/full" || e.Hint == "" {
		t.Fatalf("%v", err)
	}
	if left, _ := filepath.Glob(
		filepath.Join(s.d.snapshots.Dir, scratchName+"*"),
	); len(left) != 0 || len(files(t, folder)) != 0 {
		t.Fatalf("%v, %v", left, files(t, folder))
	}
	if ev := s.events(m.ID, eventArchived); len(ev) != 1 || ev[0]["done"] != false || ev[0]["error"] == "" {
		t.Fatalf("%v", ev)
	}
	if s.d.store.Poisoned() != nil {
		t.Fatal("the ledger cannot go on")
	}
	free()
	if err := s.d.snapshots.whole(t.Context(), m.ID); err != nil {
		t.Fatal(err)
	}
	if a, err := s.d.snapshots.archive(t.Context(), "me", "", "asked for"); err != nil || len(files(t, folder)) != 1 || files(t, folder)[0] != snapshot.ArchiveName(m.ID) || a.Verified != readBack {
		t.Fatalf("%+v, %v", a, err)
	}
}

// allBut takes what room there is where dir is, but for so many bytes, and returns
// what gives it back.
func allBut(t *testing.T, dir string, left int64) (free func()) {
	t.Helper()
	var st unix.Statfs_t
	f, err := os.Create(filepath.Join(dir, "fill"))
	if err == nil {
		defer f.Close()
		err = unix.Statfs(f.Name(), &st)
	}
	if err == nil {
		err = unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-left)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
}
