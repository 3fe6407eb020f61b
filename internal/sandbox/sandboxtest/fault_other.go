//go:build !linux

package sandboxtest

// Faulty does nothing here.
func Faulty() {}
