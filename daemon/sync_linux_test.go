package daemon

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestStateFilesAreSynced: keys survive a power cut. Each file is on disk before it
// gets its name.
func TestStateFilesAreSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	path := filepath.Join(t.TempDir(), "key")
	dir := regexp.QuoteMeta(filepath.Dir(path))
	temp := dir + `/\.new-.*\.tmp`
	if err := writeNew(path, []byte("1")); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "a new file", temp, dir)
}
