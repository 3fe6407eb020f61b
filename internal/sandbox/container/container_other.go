//go:build !linux

package container

// Launcher does nothing here.
func Launcher() {}
