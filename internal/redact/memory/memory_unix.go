//go:build linux || darwin

package memory

import "golang.org/x/sys/unix"

// lockedPages maps size bytes that stay in memory. It returns nil where there
// are none, and says why where they are not what they should be.
func lockedPages(size int) ([]byte, string) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, "the system gives no pages for secrets: " + err.Error()
	}
	why := undumped(b)
	if err := unix.Mlock(b); err != nil {
		why = "the system locks no more memory, so that secrets could be written to a swap: " + err.Error()
	}
	return b, why
}
