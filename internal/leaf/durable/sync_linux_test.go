package durable

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestFilesAreSynced: the content of a file is on disk before its name is. A cache waits for neither.
func TestFilesAreSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	path := filepath.Join(t.TempDir(), "file")
	dir := regexp.QuoteMeta(filepath.Dir(path))
	if err := CreateFile(path, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "a new file", regexp.QuoteMeta(path), dir)
	if err := ReplaceFile(path, []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "a replaced file", dir+`/\.new-.*\.tmp`, dir)
	if err := ReplaceCache(path, []byte("3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if synced := w.TakeSynced(); len(synced) != 0 {
		t.Errorf("a cache waited for %q", synced)
	}
}
