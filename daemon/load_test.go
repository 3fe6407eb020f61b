package daemon

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
)

// load loads text as holdfast.yaml, with further files next to it.
func loadText(t testing.TB, text string, more ...string) (*config.Loaded, error) {
	t.Helper()
	files := map[string]string{"holdfast.yaml": text}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return config.Load(filepath.Join(testfile.Write(t, files), "holdfast.yaml"))
}
