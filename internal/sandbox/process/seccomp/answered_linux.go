package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// isAnswered reports whether Holdfast answers a call of that name itself. The kernel's
// answer would reveal what other runs do: how many threads the machine has and what
// memory is free (sysinfo), how full the disk of the state directory is (statfs). A
// program gets the figures of its own limits instead.
//
// Waiting on a futex that is not private is answered too; see isShared.
func isAnswered(name string) bool {
	return slices.Contains([]string{"sysinfo", "statfs", "fstatfs"}, name)
}

// IsShared reports whether a call waits on a futex that is not private. The C library
// joins threads by it: the kernel clears a word, and wakes who waits there, when
// a thread ends. The word is found by its file where a file is mapped, so that a
// run could be woken by a thread of another. Holdfast looks at the word instead,
// and no one waits in the kernel.
func (c Call) IsShared() bool {
	op := uint32(c.args[1])
	return c.Name == "futex" && op&futexPrivate == 0 && (IsFutexWait(op) || op&futexCommand == futexWaitFor)
}

// IsFutexWait reports whether an operation on a futex is FUTEX_WAIT, whose limit is a duration.
func IsFutexWait(op uint32) bool { return op&futexCommand == futexWait }

// IsOurs reports whether Holdfast answers a call itself.
func (c Call) IsOurs() bool {
	return !c.Foreign && (isAnswered(c.Name) || c.IsShared() || c.IsCoreLimit())
}

// IsCoreLimit reports whether a call reads or sets its own limit of core files. That
// limit is 1: with 0 Linux still hands the memory of a program that dies to the
// host's handler of such files, where there is one, and it is kept there. A
// program that could set 0 would reach it.
func (c Call) IsCoreLimit() bool {
	who, what := uint32(c.args[0]), uint32(c.args[1])
	return c.Name == "prlimit64" && what == unix.RLIMIT_CORE && (who == 0 || who == WorkloadPID)
}
