package process

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// packGuest writes the guest's file system to the file out: the test's program
// self, a Python with its library, and what the tests start beside it.
func packGuest(t *testing.T, out, self, tricks string) {
	t.Helper()
	python := installed(t, "python3")
	m := &manifest{files: map[string]source{}, loader: newLoader()}
	if err := python.parts(m); err != nil {
		t.Fatal(err)
	}
	if err := m.program("/usr/bin/sleep", "/usr/bin/sleep"); err != nil {
		t.Fatal(err)
	}
	a := sandboxtest.NewArchive(t, out, self)
	for _, dst := range slices.Sorted(maps.Keys(m.files)) {
		if sandboxtest.GuestLeft.MatchString(dst) {
			continue
		}
		s := m.files[dst]
		a.File(dst, s.path, s.exec, s.mtime)
	}
	a.Link("usr/bin/python3", filepath.Base(python.program))
	a.File(guestTricks, tricks, true, time.Time{})
	a.Close(t)
}
