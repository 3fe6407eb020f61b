package seccomp

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// The profile of a workspace (D16, D17): whole programs that start others, with
// sockets in a network that is their own and empty. What may be executed the
// mounts and Landlock say; calls are judged by numbers alone, never by what a
// pointer leads to.

// wider is what programs in a workspace call beyond a language's.
var wider = []struct{ why, calls string }{
	{"starting programs, and their processes", "fork vfork execve execveat wait4 waitid setpgid setsid pidfd_open pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo kill tkill tgkill"},
	{"sockets of the network that is theirs alone", "connect bind listen accept accept4 sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown getsockname getpeername setsockopt getsockopt"},
	{"System V and POSIX queues and memory of an IPC namespace of their own", "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr"},
	{"files: their owners, attributes and locks, as far as the tree's own rights go", "chown fchown lchown fchownat setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr flock sync_file_range"},
	{"being told of changes in the tree", "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"},
	{"locks between processes, and memory they wait on", "futex futex_wake futex_requeue futex_wait futex_waitv get_robust_list"},
	{"their share, within the control group's", "setpriority sched_setaffinity sched_getscheduler sched_setscheduler sched_getparam sched_setparam sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval ioprio_get ioprio_set mlock mlock2 mlockall munlock munlockall"},
	{"signals and timers as descriptors", "signalfd signalfd4 timer_create timer_settime timer_gettime timer_delete timer_getoverrun"},
	{"reads and writes of newer names", "preadv2 pwritev2"},
	{"asking for rights and for other identities: there are none, and the kernel says so", "capget capset setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups"},
	{"ending; forcing out what was written to the tree", "exit_group exit fsync fdatasync"},
	{"memory of a node; there is one kernel", "mbind set_mempolicy get_mempolicy mseal pkey_alloc pkey_free pkey_mprotect"},
}

// workspaceLimited are calls that pass under conditions, in place of those of a
// language.
var workspaceLimited = []allowed{
	{name: "clone", why: "processes and threads, in no new namespace", when: []condition{{arg: 0, mask: newNamespaces}}},
	// Local sockets, and those of the empty network. Netlink is asked about.
	{name: "socket", why: "local sockets, TCP and UDP", when: append(oneOf(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6), oneOf(2, 0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6)...)},
	{name: "socketpair", why: "local sockets", when: oneOf(0, unix.AF_UNIX)},
	{name: "ioctl", why: "terminals, which are the sandbox's own, sockets and files", when: oneOf(1, controls...)},
	{name: "prctl", why: "a process's own affairs", when: oneOf(0,
		unix.PR_SET_PDEATHSIG, unix.PR_GET_PDEATHSIG, unix.PR_GET_DUMPABLE, unix.PR_SET_DUMPABLE, unix.PR_GET_KEEPCAPS, unix.PR_SET_KEEPCAPS, unix.PR_SET_NAME, unix.PR_GET_NAME,
		unix.PR_GET_SECCOMP, unix.PR_SET_SECCOMP, unix.PR_CAPBSET_READ, unix.PR_GET_SECUREBITS, unix.PR_SET_TIMERSLACK, unix.PR_GET_TIMERSLACK, unix.PR_SET_CHILD_SUBREAPER, unix.PR_GET_CHILD_SUBREAPER,
		unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS, unix.PR_SET_THP_DISABLE, unix.PR_GET_THP_DISABLE, unix.PR_CAP_AMBIENT, unix.PR_GET_SPECULATION_CTRL, unix.PR_SET_SPECULATION_CTRL,
		unix.PR_SET_MDWE, unix.PR_GET_MDWE, unix.PR_SET_PTRACER, setVMA)},
	// A filter of its own can only take more away; but not with a listener,
	// whose answers would stand beside Holdfast's.
	{name: "seccomp", why: "programs that hold themselves to less", when: append(oneOf(0, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_GET_ACTION_AVAIL, unix.SECCOMP_GET_NOTIF_SIZES),
		condition{arg: 1, mask: unix.SECCOMP_FILTER_FLAG_NEW_LISTENER})},
	{name: "fcntl", why: "descriptors, locks, pipes and signals", when: oneOf(1, unix.F_DUPFD, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_DUPFD_CLOEXEC,
		unix.F_SETOWN, unix.F_GETOWN, unix.F_SETSIG, unix.F_GETSIG, unix.F_SETOWN_EX, unix.F_GETOWN_EX, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW,
		unix.F_SETPIPE_SZ, unix.F_GETPIPE_SZ, unix.F_ADD_SEALS, unix.F_GET_SEALS)},
	// All but the limit of core files, which stays at 1: see coreLimit.
	{name: "prlimit64", why: "what a process may take", when: oneOf(1, ownLimits()...)},
	{name: "setrlimit", why: "what a process may take", when: oneOf(0, ownLimits()...)},
	// All but throwing pages out of memory that the host's programs share.
	{name: "fadvise64", why: "how a file will be read", when: oneOf(3, unix.FADV_NORMAL, unix.FADV_RANDOM, unix.FADV_SEQUENTIAL, unix.FADV_WILLNEED, unix.FADV_NOREUSE)},
	// Files are made as the tree's owner's: one that set its user would run as him
	// for whoever starts it on the host. openat2, whose mode stands in memory, is
	// refused for that.
	{name: "chmod", why: "modes, but for those that set an identity", when: []condition{{arg: 1, mask: setsIdentity}}},
	{name: "fchmod", why: "modes, but for those that set an identity", when: []condition{{arg: 1, mask: setsIdentity}}},
	{name: "fchmodat", why: "modes, but for those that set an identity", when: []condition{{arg: 2, mask: setsIdentity}}},
	{name: "fchmodat2", why: "modes, but for those that set an identity", when: []condition{{arg: 2, mask: setsIdentity}}},
	{name: "creat", why: "modes, but for those that set an identity", when: []condition{{arg: 1, mask: setsIdentity}}},
	{name: "open", why: "modes, but for those that set an identity", when: []condition{{arg: 2, mask: setsIdentity}}},
	{name: "openat", why: "modes, but for those that set an identity", when: []condition{{arg: 3, mask: setsIdentity}}},
	{name: "mknod", why: "pipes and sockets by name; a device needs a right that nobody has", when: []condition{{arg: 1, mask: setsIdentity}}},
	{name: "mknodat", why: "pipes and sockets by name; a device needs a right that nobody has", when: []condition{{arg: 2, mask: setsIdentity}}},
	{name: "unshare", why: "descriptors and directories of a thread's own", when: []condition{{arg: 0, mask: ^uint32(unix.CLONE_FILES | unix.CLONE_FS | unix.CLONE_SYSVSEM)}}},
}

// controls are the requests of ioctl: of terminals, sockets and files. Those that
// put words into a terminal or take it over are not among them.
var controls = []uint32{
	// TCGETS to TIOCSWINSZ but TIOCSTI, and on.
	0x5401, 0x5402, 0x5403, 0x5404, 0x5405, 0x5406, 0x5407, 0x5408, 0x5409, 0x540a, 0x540b, 0x540c, 0x540d, 0x540e, 0x540f, 0x5410, 0x5411, 0x5413, 0x5414,
	fionread, 0x5420, fionbio, 0x5422, 0x5424, 0x5425, 0x5429, tcgets2, 0x402c542b, 0x402c542c, 0x402c542d,
	// Pseudo-terminals: number, lock, peer, packet mode.
	0x80045430, 0x40045431, 0x40045436, 0x80045438, 0x80045439, 0x80045440, 0x5441,
	fionclex, fioclex, 0x5452, 0x5460,
	// What a network has: names, addresses, flags.
	0x8905, 0x8906, 0x8907, 0x8910, 0x8912, 0x8913, 0x8915, 0x8917, 0x8919, 0x891b, 0x8921, 0x8927, 0x8933, 0x8942,
	// Files: clones, flags, extents.
	0x40049409, 0x4020940d, 0x80086601, 0x40086602, 0x801c581f, 0x80087601, 0xc020660b, 0x2,
}

// workspaceRefused is what is refused in another way than in a language's run;
// the rest is refused as there, and what stands nowhere with EPERM or, if the
// kernel is newer than these lists, ENOSYS.
var workspaceRefused = []struct {
	errno      unix.Errno
	why, calls string
}{
	{unix.EACCES, "a network of another kind", "socketpair"},
	{unix.EPERM, "debuggers and sanitizers try it on their own children", "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd"},
	{unix.ENOSYS, "event loops try it and do without", "io_uring_setup io_uring_enter io_uring_register"},
	{unix.EPERM, "programs for tuning and tracing try it", "perf_event_open userfaultfd fanotify_init fanotify_mark quotactl quotactl_fd lookup_dcookie syslog vhangup personality name_to_handle_at"},
	{unix.ENOSYS, "libraries try it and do without", "add_key request_key keyctl vmsplice tee remap_file_pages uselib sysfs ustat modify_ldt statmount listmount"},
	{unix.EPERM, "the time and name of the machine", "settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname"},
	{unix.EPERM, "another root", "chroot"},
	{unix.EINVAL, "the limit of core files; who forbids them for itself goes on after this error", "prlimit64 setrlimit"},
	{unix.EPERM, "a mode that sets an identity", "chmod fchmod fchmodat fchmodat2 creat open openat mknod mknodat"},
	{unix.ENOSYS, "its mode stands in memory; callers then use openat", "openat2"},
}

// workspaceEscapes are the calls whose only purpose, for a program of a work
// tree too, is to get out or to break the kernel open: less than in a run of
// code, where no debugger and no event loop has any business (D16 says "per
// use").
const workspaceEscapes = `setns unshare pivot_root mount umount2 umount fsopen fsconfig fsmount fspick move_mount open_tree open_tree_attr mount_setattr
	open_by_handle_at bpf init_module finit_module delete_module create_module kexec_load kexec_file_load reboot swapon swapoff acct iopl ioperm`

// memory without a name can be executed whatever the mounts say, so it goes with
// the permission to execute what the tree holds.
var unnamedMemory = allowed{name: "memfd_create", why: "memory with a descriptor, where programs of the tree may be executed anyway"}

// WorkspaceProfile is what passes without a question.
func WorkspaceProfile(exec bool) *Profile {
	var list []allowed
	seen := map[string]bool{}
	add := func(a allowed) {
		if !seen[a.name] {
			seen[a.name] = true
			list = append(list, a)
		}
	}
	for _, a := range workspaceLimited {
		add(a)
	}
	for _, w := range wider {
		for _, n := range words(w.calls) {
			add(allowed{name: n, why: w.why})
		}
	}
	if exec {
		add(unnamedMemory)
	}
	for _, a := range newProfile().allow {
		if a.name != "openat2" {
			add(a)
		}
	}
	return &Profile{allow: list, many: true}
}

var workspaceErrnos = sync.OnceValue(func() map[string]unix.Errno {
	m := map[string]unix.Errno{}
	for name, errno := range refusals() {
		m[name] = errno
	}
	for _, r := range workspaceRefused {
		for _, n := range words(r.calls) {
			m[n] = r.errno
		}
	}
	return m
})

var workspaceEscapeNames = sync.OnceValue(func() []string { return words(workspaceEscapes) })

// EvaluateInWorkspace returns what a call outside a workspace's profile is. Nothing is a
// violation here: a program of many parts is not ended because one of them tries
// what it could do without.
func (c Call) EvaluateInWorkspace() judgement {
	switch {
	case c.Foreign, slices.Contains(workspaceEscapeNames(), c.Name), workspaceHostile(c):
		if c.Name == "unshare" && !c.Foreign && uint32(c.args[0])&spaces == 0 {
			return judgement{kind: kindRefused, Errno: unix.EPERM}
		}
		return judgement{kind: kindEscape}
	case c.Name == "socket" && slices.Contains([]uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}, uint32(c.args[0])):
		return judgement{kind: kindRefused, Errno: unix.EPROTONOSUPPORT}
	}
	if errno, ok := workspaceErrnos()[c.Name]; ok {
		return judgement{kind: kindRefused, Errno: errno}
	}
	if _, ok := callNumber(c.Name); !ok {
		return judgement{kind: kindRefused, Errno: unix.ENOSYS}
	}
	return judgement{kind: kindRefused, Errno: unix.EPERM}
}

// spaces are the namespaces that unshare can make; it has room for that of time.
const spaces = newNamespaces | unix.CLONE_NEWTIME

func workspaceHostile(c Call) bool {
	switch c.Name {
	case "ioctl":
		return uint32(c.args[1]) != 0x540e && slices.Contains(terminalTricks, uint32(c.args[1]))
	case "clone":
		return c.args[0]&newNamespaces != 0
	case "socket", "socketpair":
		return slices.Contains(hostileFamilies, uint32(c.args[0]))
	}
	return false
}

// setsIdentity are the bits of a mode by which a program runs as its file's user
// or group.
const setsIdentity = unix.S_ISUID | unix.S_ISGID

// PassesByNumbers reports whether a call that the filter asked about passes in a
// workspace: its numbers decide, and nothing that they point to can change.
func (c Call) PassesByNumbers() bool { return c.isRoutes() || c.isOpen() || c.isLookup() }

// isOpen reports whether a call opens a file and makes none, so that what stands
// where its mode would be means nothing.
func (c Call) isOpen() bool {
	const makes = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	switch {
	case c.Foreign:
		return false
	case c.Name == "open":
		return c.args[1]&makes == 0
	}
	return c.Name == "openat" && c.args[2]&makes == 0
}

// isLookup reports whether a call only reads a limit.
func (c Call) isLookup() bool { return !c.Foreign && c.Name == "prlimit64" && c.args[2] == 0 }

// isRoutes reports whether a call asks for a socket that tells what is in the
// caller's own network: names and addresses of its interfaces. Numbers alone
// decide, which nobody can change.
func (c Call) isRoutes() bool {
	return !c.Foreign && c.Name == "socket" && uint32(c.args[0]) == unix.AF_NETLINK && uint32(c.args[2]) == unix.NETLINK_ROUTE
}
