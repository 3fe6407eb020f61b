//go:build !linux

// Package syncwatch tells tests which files their process brought to disk.
package syncwatch

import "testing"

// All is the path of a sync of every file system.
const All = "all"

// Watch records the files that this process and its children synced.
type Watch struct{}

// StartAlone skips the test: only Linux reports syncs.
func StartAlone(t *testing.T) *Watch {
	t.Helper()
	t.Skip("only Linux reports syncs")
	return nil
}

// TakeSynced returns nothing.
func (*Watch) TakeSynced() []string { return nil }

// Want does nothing.
func (*Watch) Want(*testing.T, string, ...string) {}
