package authority

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestAuthorityIsSynced: the authority's files survive a power cut.
func TestAuthorityIsSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	dir := t.TempDir()
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	dir = regexp.QuoteMeta(dir)
	w.Want(t, "a new authority", filepath.Join(dir, authorityKey), dir, filepath.Join(dir, authorityCert), dir)
}
