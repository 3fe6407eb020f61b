//go:build peers

package main

import (
	"path/filepath"
	"testing"
)

// TestPeerScripts runs the scripts that need public programs, as TestScripts runs the others.
func TestPeerScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, filepath.Join("testdata", "peers"))
}
