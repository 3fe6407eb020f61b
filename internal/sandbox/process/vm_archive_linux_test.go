package process

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// packGuest writes the guest's file system to the file out: the tests' programs
// self and groups, a Python with its library, and what the tests start.
func packGuest(t *testing.T, out, self, groups, tricks string) {
	t.Helper()
	python := installed(t, "python3")
	root, err := python.Root(t.Context(), t.TempDir(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Release()
	a := sandboxtest.NewArchive(t, out, self)
	err = filepath.WalkDir(root.Path, func(p string, d fs.DirEntry, err error) error {
		dst := strings.TrimPrefix(p, root.Path)
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(dst, "/dev/") {
			return err
		}
		if sandboxtest.GuestLeft.MatchString(dst) {
			return nil
		}
		info, err := d.Info()
		if err == nil {
			a.File(dst, p, info.Mode()&0o111 != 0, info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	a.File("/usr/bin/sleep", "/usr/bin/sleep", true, time.Time{}) // its libraries are Python's too
	a.Link("usr/bin/python3", filepath.Base(python.Program))
	a.File(guestTricks, tricks, true, time.Time{})
	a.File(guestGroups, groups, true, time.Time{})
	a.Close(t)
}
