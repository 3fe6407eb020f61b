package config

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
)

// load loads text as holdfast.yaml, with further files next to it.
func load(t testing.TB, text string, more ...string) (*Loaded, error) {
	t.Helper()
	files := map[string]string{"holdfast.yaml": text}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return Load(filepath.Join(testfile.Write(t, files), "holdfast.yaml"))
}

// lookupIn returns a lookup of environment variables that has those alone.
func lookupIn(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}
