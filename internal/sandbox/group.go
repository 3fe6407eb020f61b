package sandbox

import "time"

// Share is what a control group's processes may have together; all of it is more
// than zero.
type Share struct {
	Memory        int64         // bytes, with swap and the pages of files that only they have
	Period, Quota time.Duration // processor time: Quota in each Period, 1 ms to 1 s
	Pids          int           // processes and threads together
}

// Group is a control group for one process that is about to be started, and for
// what it starts. Its descriptors are its own, and good until Remove.
type Group interface {
	// Dir is the directory of version 2 into which the process is cloned
	// (CLONE_INTO_CGROUP); false where no controller is in version 2.
	Dir() (fd int, ok bool)
	// Entrances are files of version 1: a process of one thread that writes "0"
	// to each moves itself into the group.
	Entrances() []int
	// Remove takes the group away, which nobody is in any more.
	Remove() error
}
