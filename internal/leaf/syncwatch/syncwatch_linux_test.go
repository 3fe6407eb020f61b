package syncwatch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWatchRecordsSyncs(t *testing.T) {
	w := StartAlone(t)
	if w == nil {
		return
	}
	path := filepath.Join(t.TempDir(), "a")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("1"); err != nil || len(w.TakeSynced()) != 0 {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := w.TakeSynced(); !slices.Equal(got, []string{path}) {
		t.Errorf("%q", got)
	}
}
