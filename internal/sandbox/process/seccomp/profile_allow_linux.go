package seccomp

import "golang.org/x/sys/unix"

// documentCalls is the allowlist of spec 003 2.2. Of its calls mmap, ioctl,
// prctl, prlimit64, fcntl and madvise stand in limited.
const documentCalls = `brk arch_prctl exit exit_group
	mprotect mremap munmap msync
	open openat read write pread64 pwrite64 readv writev preadv pwritev fstat fstatfs faccessat dup dup2 dup3 close
	getdents64 getcwd
	clock_gettime clock_nanosleep nanosleep gettimeofday
	rt_sigaction rt_sigprocmask rt_sigpending
	sched_getaffinity sched_yield
	sigaltstack getrandom`

// widened is what every program here needs beside it, by reason (D18). Each
// reaches only the process itself, its scratch, or what it may read anyway.
var widened = []struct{ why, calls string }{
	{"older and newer names of calls that the list has", "creat newfstatat fstatat statx stat lstat statfs faccessat2 access openat2 clock_getres time getdents"},
	{"moving in a file and its size; copying between files of the scratch", "lseek ftruncate truncate fallocate copy_file_range"},
	{"names in the scratch", "unlink unlinkat mkdir mkdirat rmdir rename renameat renameat2 link linkat symlink symlinkat readlink readlinkat chmod fchmod fchmodat fchmodat2 utimensat utime utimes futimesat umask chdir fchdir"},
	{"what the C library asks when a program or a thread starts", "set_tid_address set_robust_list rseq gettid getpid getppid getuid geteuid getgid getegid getgroups getresuid getresgid uname sysinfo getrlimit getrusage times getpgrp getpgid getsid getcpu getpriority"},
	{"waiting on descriptors, and descriptors to wait on", "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 pipe timerfd_create timerfd_settime timerfd_gettime close_range"},
	{"waiting for a signal, timers that send one, and coming back from it", "rt_sigreturn rt_sigsuspend rt_sigtimedwait restart_syscall alarm setitimer getitimer pause"},
	{"waiting for children: there are none, and that is the answer", "wait4 waitid"},
}

// Commands that x/sys has no names for.
const (
	tcgets2   = 0x802c542a
	fionread  = 0x541b
	fionbio   = 0x5421
	fioclex   = 0x5451
	fionclex  = 0x5450
	setVMA    = 0x53564d41
	madvGuard = 102 // and 103: guard pages without a mapping of their own, Linux 6.13
)

// Flags of calls that x/sys has no names for.
const (
	futexPrivate = 0x80
	futexCommand = 0x7f
	futexWait    = 0
	futexWaitFor = 9    // FUTEX_WAIT_BITSET
	readQuiet    = 0x17 // RWF_HIPRI, DSYNC, SYNC and APPEND
)

// limited calls pass under conditions on their arguments only.
var limited = []allowed{
	// Not huge pages from the pool of the whole machine.
	{name: "mmap", when: []condition{{arg: 3, mask: unix.MAP_HUGETLB, value: 0}}},
	// Is it a terminal, how wide, how much is there to read, do not block, close
	// on exec. Anything that types into a terminal is an escape attempt.
	{name: "ioctl", when: oneOf(1, unix.TCGETS, tcgets2, unix.TIOCGWINSZ, fionread, fionbio, fioclex, fionclex)},
	// The thread's name, the names of its memory, and questions about itself.
	{name: "prctl", when: oneOf(0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_GET_DUMPABLE, unix.PR_GET_NO_NEW_PRIVS, unix.PR_CAPBSET_READ, setVMA)},
	// Its own limits: the hard ones can only be lowered. That of core files is
	// Holdfast's to answer: see coreLimit.
	{name: "prlimit64", when: append(oneOf(0, 0, WorkloadPID), oneOf(1, ownLimits()...)...)},
	// Copies and flags of descriptors, and POSIX locks, without which SQLite opens
	// no database. Those are a process's own against other processes, of which there
	// are none: to take one always succeeds, and to ask finds none. So the filter
	// says that it is taken and takes none, and nothing that sandboxes or the host
	// share (the runtime's files, /dev/null) is ever locked. Left out for the same
	// reason: leases, open-file locks and F_NOTIFY; and owners of signals, seals and
	// the size of pipes.
	{name: "fcntl", when: oneOf(1, unix.F_DUPFD, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_GETLK, unix.F_DUPFD_CLOEXEC), feign: oneOf(1, unix.F_SETLK, unix.F_SETLKW)},
	// Left out: merging equal pages with other processes (a channel between
	// them), pushing shared pages out of memory or together, and poisoning pages.
	{name: "madvise", when: oneOf(2, unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL, unix.MADV_WILLNEED, unix.MADV_DONTNEED, unix.MADV_FREE, unix.MADV_REMOVE, unix.MADV_DONTFORK, unix.MADV_DOFORK,
		unix.MADV_HUGEPAGE, unix.MADV_NOHUGEPAGE, unix.MADV_DONTDUMP, unix.MADV_DODUMP, unix.MADV_WIPEONFORK, unix.MADV_KEEPONFORK, unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE, madvGuard, madvGuard+1)},
	// Locks inside one process. A futex that is not private is found by the file
	// and the place in it, and sandboxes map the same libraries: whoever could wake
	// or move the waiters there would have a channel to another; and the kernel
	// itself wakes there when a thread ends (set_tid_address, robust lists). So
	// nobody waits there either: who joins a thread is answered by Holdfast (see
	// answered).
	{name: "futex", why: "locks inside one process", when: []condition{{arg: 1, mask: futexPrivate, value: futexPrivate}}},
	{name: "futex_wake", why: "locks inside one process", when: []condition{{arg: 3, mask: futexPrivate, value: futexPrivate}}},
	{name: "futex_wait", why: "locks inside one process", when: []condition{{arg: 3, mask: futexPrivate, value: futexPrivate}}},
	// Left out: the commands that interrupt processors on which others run.
	{name: "membarrier", why: "orders the memory of its own threads", when: oneOf(0, barriers()...)},
	// Left out: RWF_NOWAIT and RWF_DONTCACHE, which show and steer what the page
	// cache holds of files that sandboxes share.
	{name: "preadv2", why: "newer name of preadv", when: []condition{{arg: 5, mask: ^uint32(readQuiet)}}},
	{name: "pwritev2", why: "newer name of pwritev", when: []condition{{arg: 5, mask: ^uint32(readQuiet)}}},
	// Left out: O_NOTIFICATION_PIPE, by which the kernel tells of its own events.
	{name: "pipe2", why: "newer name of pipe", when: []condition{{arg: 1, mask: unix.O_EXCL, value: 0}}},
	// Signals to itself: abort, raise, the C library's and Go's own.
	// The one that ends it at once passes too, in its turn: see ends.
	{name: "kill", why: "a signal to itself", when: append(oneOf(0, WorkloadPID), oneOf(1, mildSignals()...)...)},
	{name: "tkill", why: "a signal to its main thread (musl's raise and abort)", when: append(oneOf(0, WorkloadPID), oneOf(1, mildSignals()...)...)},
	{name: "tgkill", why: "a signal to a thread of its own", when: append(oneOf(0, WorkloadPID), oneOf(2, mildSignals()...)...)},
}

// feigned calls succeed without happening. The scratch is memory, where forcing
// a file out does nothing anyway; on a file of the runtime it would make the disk
// of the host flush, for the ledger and all others, as often as a program likes.
var feigned = []allowed{
	{name: "fsync", feigned: true, why: "databases force out what they wrote"},
	{name: "fdatasync", feigned: true, why: "databases force out what they wrote"},
}

// barriers are the commands of membarrier that concern the caller's process
// alone, and the question which there are.
func barriers() []uint32 {
	const query, private, synchronising, restartable = 0, 1 << 3, 1 << 5, 1 << 7 // each registers with the bit above it
	return []uint32{query, private, private << 1, synchronising, synchronising << 1, restartable, restartable << 1}
}

// ownLimits are all but that of core files.
func ownLimits() []uint32 {
	const count = 16 // RLIM_NLIMITS
	var list []uint32
	for limit := range uint32(count) {
		if limit != unix.RLIMIT_CORE {
			list = append(list, limit)
		}
	}
	return list
}

// mildSignals are all but SIGKILL.
func mildSignals() []uint32 {
	var list []uint32
	for sig := range uint32(65) {
		if sig != uint32(unix.SIGKILL) {
			list = append(list, sig)
		}
	}
	return list
}

// ordered is a call that passes, but only after Holdfast was asked: it ends the
// process, and with it what another of its threads has asked before and nobody
// has answered yet. Asked in its turn, it cannot hide it.
func ordered(name string) bool { return name == "exit_group" }

// IsExit reports whether a call that the filter asked about may end its own process.
func (c Call) IsExit() bool {
	switch {
	case c.Foreign:
		return false
	case c.Name == "kill", c.Name == "tkill":
		return uint32(c.args[0]) == WorkloadPID && uint32(c.args[1]) == uint32(unix.SIGKILL)
	case c.Name == "tgkill":
		return uint32(c.args[0]) == WorkloadPID && uint32(c.args[2]) == uint32(unix.SIGKILL)
	}
	return ordered(c.Name)
}

// threads lets a language start threads of its own process and nothing else:
// every flag that makes it one is demanded, what else a thread library sets is
// left open (thread-local storage, where to write and clear its number, the
// System V undo list, musl's CLONE_DETACHED), and every other flag must be off.
var threads = allowed{name: "clone", why: "threads of its own process", when: []condition{{arg: 0, mask: ^uint32(threadMay), value: threadMust}}}

const (
	threadMust = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD
	threadMay  = unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID | unix.CLONE_CHILD_SETTID | unix.CLONE_SYSVSEM | unix.CLONE_DETACHED
)
