package memory

import "golang.org/x/sys/unix"

// undumped leaves pages out of core dumps, and says why where it cannot.
func undumped(b []byte) string {
	if err := unix.Madvise(b, unix.MADV_DONTDUMP); err != nil {
		return "secrets could be written to a core dump: " + err.Error()
	}
	return ""
}
