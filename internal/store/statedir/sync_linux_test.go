package statedir

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestKeyFilesAreSynced: a key survives a power cut. Its file is on disk before it gets its name.
func TestKeyFilesAreSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	path := filepath.Join(t.TempDir(), "key")
	dir := regexp.QuoteMeta(filepath.Dir(path))
	if err := writeNew(path, []byte("1")); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "a new file", dir+`/\.new-.*\.tmp`, dir)
}
