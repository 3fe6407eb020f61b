package snapshot

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
)

// TestFullFolderOfArchives: there is no room for an archive. It is named, nothing of
// it is left, what was there is whole, and with room it goes on.
func TestFullFolderOfArchives(t *testing.T) {
	if inOwnMounts(t) {
		return
	}
	s := newSite(t)
	if err := unix.Mount("tmpfs", s.tree.Path, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(s.tree.Path, unix.MNT_DETACH)
	f, err := OpenFolder(s.tree.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fine := func(io.Reader) error { return nil }
	put := func(id string, size int) error {
		return f.Put(t.Context(), ArchiveName(id), strings.NewReader(random(size)), fine)
	}
	if err := put("20261116-020000-5f0c1e", 400_000); err != nil {
		t.Fatal(err)
	}
	var e *holdfast.Error
	if err := put("20261123-020000-5f0c1e", 900_000); !errors.As(err, &e) || e.Rule != "disk/full" || !strings.Contains(e.Why, "no room") || e.Hint == "" {
		t.Fatalf("%v", err)
	}
	list, err := os.ReadDir(s.tree.Path)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if b, err := os.ReadFile(f.Path(list[0].Name())); err != nil || string(b) != random(400_000) {
		t.Fatalf("%d, %v", len(b), err)
	}
	if err := put("20261123-020000-5f0c1e", 400_000); err != nil {
		t.Fatal(err)
	}
}
