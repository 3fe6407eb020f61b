package process

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A profile is what one language may ask of the kernel.
type profile struct {
	allow []allowed
}

// allowed is a system call that passes, always or under conditions.
type allowed struct {
	name string
	when []condition // sorted by argument; of one argument one must hold
	why  string      // empty: it stands in the specification's list (003 2.2)
}

// condition: (low 32 bits of argument arg, masked where mask is not 0) equals value.
type condition struct {
	arg         int
	mask, value uint32
}

// document is the allowlist of spec 003 2.2, with the conditions that its
// "limited" stands for.
var documentCalls = words(`brk arch_prctl exit exit_group
	mmap mprotect madvise mremap munmap msync
	open openat read write pread64 pwrite64 readv writev preadv pwritev fstat fstatfs faccessat fcntl dup dup2 dup3 close
	getdents64 getcwd
	clock_gettime clock_nanosleep nanosleep gettimeofday
	rt_sigaction rt_sigprocmask rt_sigpending
	sched_getaffinity sched_yield
	sigaltstack getrandom`)

// widened is what every interpreter here needs beside it, by reason (D18).
var widened = []struct{ why, calls string }{
	{"the newer names of calls that the list has", "newfstatat statx stat lstat faccessat2 access openat2 preadv2 pwritev2 clock_getres time getdents"},
	{"moving in a file, sizes, and forcing it out", "lseek ftruncate truncate fallocate fsync fdatasync fadvise64 readahead copy_file_range sendfile statfs"},
	{"names in the scratch", "unlink unlinkat mkdir mkdirat rmdir rename renameat renameat2 link linkat symlink symlinkat readlink readlinkat chmod fchmod fchmodat utimensat utime utimes futimesat umask chdir fchdir"},
	{"what the C library does when it starts", "set_tid_address set_robust_list rseq gettid getpid getppid getuid geteuid getgid getegid getgroups getresuid getresgid uname sysinfo getrlimit getrusage times getpgrp getpgid getsid getcpu"},
	{"locks inside one process", "futex futex_waitv futex_wake futex_wait membarrier"},
	{"waiting on descriptors", "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 pipe pipe2 timerfd_create timerfd_settime timerfd_gettime flock close_range"},
	{"signals to itself, and coming back from one", "rt_sigreturn rt_sigsuspend rt_sigtimedwait restart_syscall tgkill alarm setitimer getitimer pause"},
	{"memory that a runtime tunes", "mincore mlock munlock"},
	{"ending a child that it cannot have", "wait4 waitid"},
}

// limited calls pass under conditions on their arguments only.
var limited = []allowed{
	{name: "ioctl", when: oneOf(1, unix.TCGETS, unix.TIOCGWINSZ, 0x541b /* FIONREAD */, 0x5421 /* FIONBIO */, 0x5451 /* FIOCLEX */, 0x5450 /* FIONCLEX */)},
	{name: "prctl", when: oneOf(0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_GET_DUMPABLE, unix.PR_GET_NO_NEW_PRIVS, unix.PR_CAPBSET_READ, unix.PR_SET_VMA)},
	{name: "prlimit64", when: []condition{{arg: 0, value: 0}}},
}

// threads lets a language start threads of its own process: no new namespace,
// no new process.
var threads = allowed{name: "clone", why: "threads", when: []condition{{arg: 0, mask: unix.CLONE_THREAD | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME, value: unix.CLONE_THREAD}}}

func oneOf(arg int, values ...uint32) []condition {
	list := make([]condition, len(values))
	for i, v := range values {
		list[i] = condition{arg: arg, value: v}
	}
	return list
}

// newProfile is the specification's list and what interpreters need, and more.
func newProfile(more ...allowed) *profile {
	p := &profile{}
	for _, n := range documentCalls {
		p.allow = append(p.allow, allowed{name: n})
	}
	for _, w := range widened {
		for _, n := range words(w.calls) {
			p.allow = append(p.allow, allowed{name: n, why: w.why})
		}
	}
	p.allow = append(p.allow, limited...)
	p.allow = append(p.allow, more...)
	return p
}

// The two lists of D16 beside the allowlist; a call in none of the three is a
// violation.
var (
	refusedNetwork = words("socket socketpair connect bind listen accept accept4 sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown getsockname getpeername setsockopt getsockopt")
	refusedProcess = words("fork vfork clone kill tkill")
	refusedProbe   = words("clone3 sched_setaffinity sched_setscheduler sched_getscheduler sched_getparam sched_setparam sched_get_priority_max sched_get_priority_min setpriority getpriority mbind set_mempolicy get_mempolicy rseq_slice landlock_create_ruleset memfd_secret cachestat pkey_alloc pkey_free pkey_mprotect capget capset setrlimit inotify_init inotify_init1 signalfd signalfd4 mknod mknodat chown fchown lchown fchownat setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr mlockall munlockall mlock2 ioprio_get ioprio_set syslog prctl prlimit64")
	escapes        = words(`ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_open pidfd_getfd pidfd_send_signal kcmp
	unshare setns mount umount2 umount pivot_root chroot fsopen fsconfig fsmount fspick move_mount open_tree open_tree_attr mount_setattr statmount listmount
	bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key
	init_module finit_module delete_module create_module kexec_load kexec_file_load reboot swapon swapoff acct
	open_by_handle_at name_to_handle_at memfd_create execve execveat seccomp splice vmsplice tee
	iopl ioperm modify_ldt personality quotactl quotactl_fd sethostname setdomainname settimeofday clock_settime clock_adjtime adjtimex
	setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups fanotify_init fanotify_mark lookup_dcookie nfsservctl vhangup uselib`)
)

func words(s string) []string { return strings.Fields(s) }

// judge says what a call that the filter asked about is.
func judge(c call) judgement {
	switch {
	case c.foreign:
		return judgement{kind: kindEscape}
	case c.name == "ioctl":
		if slices.Contains(terminalTricks, uint32(c.args[1])) {
			return judgement{kind: kindEscape}
		}
		return judgement{kind: kindRefused, errno: unix.ENOTTY}
	case c.name == "clone" && c.args[0]&newNamespaces != 0:
		return judgement{kind: kindEscape}
	case slices.Contains(refusedNetwork, c.name):
		if c.name == "socket" && slices.Contains(hostileFamilies, uint32(c.args[0])) {
			return judgement{kind: kindEscape}
		}
		return judgement{kind: kindRefused, errno: unix.EACCES}
	case c.name == "clone3":
		return judgement{kind: kindRefused, errno: unix.ENOSYS}
	case slices.Contains(refusedProcess, c.name):
		return judgement{kind: kindRefused, errno: unix.EPERM}
	case slices.Contains(refusedProbe, c.name):
		return judgement{kind: kindRefused, errno: unix.ENOSYS}
	case slices.Contains(escapes, c.name):
		return judgement{kind: kindEscape}
	}
	return judgement{kind: kindViolation}
}

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Requests that put words into a terminal or take it over.
var terminalTricks = []uint32{0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */, 0x5423 /* TIOCSETD */, 0x540e /* TIOCSCTTY */, 0x541d /* TIOCCONS */}

// Socket families that have been a way out.
var hostileFamilies = []uint32{unix.AF_ALG, unix.AF_VSOCK, unix.AF_PACKET, unix.AF_NETLINK, unix.AF_KEY, unix.AF_XDP}

// kind is what a call outside the allowlist is (D16); the zero value is the
// gravest.
type kind uint8

const (
	kindEscape kind = iota
	kindViolation
	kindRefused
)

type judgement struct {
	kind  kind
	errno unix.Errno
}
