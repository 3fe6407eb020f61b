package sqlite

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestCommitIsSynced: a commit, a checkpoint of the log and a backup survive a power
// cut.
func TestCommitIsSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	s := openStore(t, t.TempDir())
	defer s.Close()
	path := regexp.QuoteMeta(s.opt.Path)
	// The tidier lengthens the log once at the beginning, and syncs it too.
	for i := range 4 {
		w.TakeSynced()
		err := s.Update(t.Context(), func(tx kernel.Tx) error { return putValue(tx, "a", fmt.Sprint(i)) })
		if err != nil {
			t.Fatal(err)
		}
		w.Want(t, "a commit", path+"-wal")
	}
	w.TakeSynced()
	s.tidy.copyBack("PASSIVE")
	w.Want(t, "a checkpoint", path)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := s.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "a backup", regexp.QuoteMeta(copied), regexp.QuoteMeta(filepath.Dir(copied)))
}
