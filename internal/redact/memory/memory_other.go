//go:build !linux && !darwin

package memory

// lockedPages has none on this system.
func lockedPages(int) ([]byte, string) {
	return nil, "this system locks no memory, so that secrets could be written to a swap"
}
