package grant

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWorkspaceOddRepository: a repository whose settings are a FIFO holds no run
// up.
func TestWorkspaceOddRepository(t *testing.T) {
	if _, err := shortText(t.TempDir()); err == nil {
		t.Error("a folder has a text")
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := shortText(path); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}
