//go:build !linux

package daemon

// insideWorkspace does nothing where there are no workspaces.
func insideWorkspace() {}
