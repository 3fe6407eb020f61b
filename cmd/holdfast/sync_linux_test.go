package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestOperatorKeyIsSynced: a replaced key file survives a power cut.
func TestOperatorKeyIsSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("# 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := appendKey(daemon.Paths{OperatorPub: path}, "# 2"); err != nil {
		t.Fatal(err)
	}
	dir := regexp.QuoteMeta(filepath.Dir(path))
	w.Want(t, "a replaced file", dir+`/\.new-.*\.tmp`, dir)
}
