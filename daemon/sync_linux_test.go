package daemon

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestStateFilesAreSynced: keys and records survive a power cut. Each file is on
// disk before it gets its name.
func TestStateFilesAreSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	path := filepath.Join(t.TempDir(), "key")
	dir := regexp.QuoteMeta(filepath.Dir(path))
	temp := dir + `/\.new-.*\.tmp`
	d := &Daemon{Paths: Paths{Dir: filepath.Dir(path)}}
	(&webhook{d: d}).remember("1")
	w.Want(t, "a record of reviews", temp, dir)
	h := &haltHooks{d: d}
	if err := h.keep(); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "a record of hooks", temp, dir)
}
