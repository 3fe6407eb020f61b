package filter

import "syscall"

// LimitCore keeps the memory of this process, and of those that it starts, from being
// written to a disk if it crashes (with GOTRACEBACK=crash): the memory holds secrets
// that agents sent. One byte is too little for a core file, and tells Linux to pass
// none to a program that takes them.
func LimitCore() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil {
		return err
	}
	if l.Cur == 0 && l.Max == 0 {
		return nil // only such a program could have one
	}
	l.Cur = 1
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &l)
}
