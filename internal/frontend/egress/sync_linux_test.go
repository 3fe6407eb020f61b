package egress

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
	path := filepath.Join(t.TempDir(), "key")
	if err := writeNew(path, 0o600, []byte("1")); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "a new file", regexp.QuoteMeta(path))
}
