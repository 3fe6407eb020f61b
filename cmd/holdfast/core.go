package main

import "syscall"

// withoutCore keeps what this process knows, and what it starts, from being
// written to a disk when it crashes (with GOTRACEBACK=crash): secrets that agents
// sent stand in its memory. One byte is too little for a core file, and tells
// Linux besides to hand none to a program that takes them.
func withoutCore() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil {
		return err
	}
	if l.Cur == 0 && l.Max == 0 {
		return nil // nobody can have one, but such a program
	}
	l.Cur = 1
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &l)
}
