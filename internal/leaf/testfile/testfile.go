// Package testfile writes the files that a test reads.
package testfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Write puts files into a new directory and returns it.
func Write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
