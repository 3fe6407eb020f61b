package halthook

import (
	"log/slog"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestRunsAreSynced: the file of what ran is on disk before it gets its name.
func TestRunsAreSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	path := filepath.Join(t.TempDir(), "halt.hooks")
	dir := regexp.QuoteMeta(filepath.Dir(path))
	New(Options{File: path, Log: slog.New(slog.DiscardHandler)}).keepRun(Run{Name: "one"})
	w.Want(t, "a record of hooks", dir+`/\.new-.*\.tmp`, dir)
}
