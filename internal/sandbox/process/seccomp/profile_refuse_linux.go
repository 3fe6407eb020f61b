package seccomp

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// The lists of D16 beside the allowlist. A call in none of them is a violation:
// it kills, is named and recorded, and is no escape attempt.
//
// An escape attempt costs an agent its trust and pauses it, so what an ordinary
// program or library also calls for its own ends does not stand among them,
// however useful it is to an attacker: it is refused, or kills as a violation.

// refused calls are answered with an errno that their callers know how to live
// with, and the program runs on.
var refused = []struct {
	errno      unix.Errno
	why, calls string
}{
	{unix.EACCES, "the network", "socket socketpair connect bind listen accept accept4 sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown getsockname getpeername setsockopt getsockopt"},
	{unix.EPERM, "other processes", "fork vfork clone kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo prlimit64 setsid setpgid"},
	{unix.ENOSYS, "C libraries then use clone, whose flags the filter can see", "clone3"},
	{unix.EINVAL, "commands outside the few that are allowed", "fcntl madvise prctl"},
	{unix.ENOTTY, "no terminal and no device", "ioctl"},
	{unix.EINVAL, "puts the page cache's own pages into a pipe; callers then read and write", "sendfile splice"},
	{unix.EPERM, "its share of the machine is the sandbox's to say", "setpriority sched_setaffinity sched_setscheduler sched_setparam sched_setattr ioprio_set setrlimit mlock mlock2 mlockall munlock munlockall sync syncfs"},
	{unix.EPERM, "devices, FIFOs and owners of files", "mknod mknodat chown fchown lchown fchownat"},
	{unix.ENOTSUP, "attributes of files", "setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr setxattrat getxattrat listxattrat removexattrat file_getattr file_setattr"},
	{unix.ENOLCK, "a lock that another sandbox could see on the runtime's files", "flock"},
	{unix.ENOSYS, "shows or steers what the page cache holds of files that sandboxes share", "mincore cachestat readahead fadvise64 sync_file_range"},
	{unix.EINVAL, "wakes or moves who waits on a page that sandboxes share", "futex futex_wake futex_wait futex_requeue"},
	{unix.ENOSYS, "waits on several words, the private and the shared, as memory says that the filter cannot see", "futex_waitv"},
	{unix.ENOPKG, "pipes that the kernel writes its events into", "pipe2"},
	{unix.ENOMEM, "huge pages, of which the machine has few and that no share counts", "mmap"},
	{unix.EINVAL, "interrupts processors on which others run", "membarrier"},
	{unix.ENOTSUP, "shows what the page cache holds of files that sandboxes share", "preadv2 pwritev2"},
	{unix.ENOSYS, "tells about files that sandboxes share", "inotify_init inotify_init1"},
	{unix.ENOSYS, "libraries try it and do without", `sched_getscheduler sched_getparam sched_get_priority_max sched_get_priority_min sched_getattr sched_rr_get_interval ioprio_get
		mbind set_mempolicy get_mempolicy set_mempolicy_home_node rseq_slice_yield landlock_create_ruleset landlock_add_rule landlock_restrict_self
		memfd_secret memfd_create pkey_alloc pkey_free pkey_mprotect capget capset signalfd signalfd4 timer_create process_madvise pidfd_open pidfd_send_signal
		mseal map_shadow_stack`},
}

// escapes are the calls whose only purpose, in code that runs here, is to get
// out, to look out, or to break the kernel open.
const escapes = `ptrace process_vm_readv process_vm_writev pidfd_getfd
	unshare setns chroot pivot_root mount umount2 umount fsopen fsconfig fsmount fspick move_mount open_tree open_tree_attr mount_setattr
	execve execveat open_by_handle_at
	bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key
	init_module finit_module delete_module create_module kexec_load kexec_file_load reboot swapon swapoff acct
	iopl ioperm modify_ldt`

// becoming are the calls that take another identity; asking for root's is an
// escape attempt, any other a violation.
const becoming = "setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid"

// refusals is refused by name.
var refusals = sync.OnceValue(func() map[string]unix.Errno {
	m := map[string]unix.Errno{}
	for _, r := range refused {
		for _, n := range words(r.calls) {
			m[n] = r.errno
		}
	}
	return m
})

var escapeNames = sync.OnceValue(func() []string { return words(escapes) })

// kind is what a call outside the allowlist is (D16); the zero value is the
// gravest.
type kind uint8

const (
	kindEscape kind = iota
	kindViolation
	kindRefused
)

func (k kind) String() string {
	return [...]string{"escape", "violation", "refused"}[k]
}

// judgement is what Holdfast does about a call; errno only where it is refused.
type judgement struct {
	kind  kind
	Errno unix.Errno
}

func (j judgement) IsEscape() bool  { return j.kind == kindEscape }
func (j judgement) IsRefused() bool { return j.kind == kindRefused }

// Evaluate returns what a call that the filter asked about is. It looks at registers
// only, never at memory, which the program could change meanwhile.
func (c Call) Evaluate() judgement {
	if c.Foreign || slices.Contains(escapeNames(), c.Name) || hostile(c) {
		return judgement{kind: kindEscape}
	}
	errno, ok := refusals()[c.Name]
	if !ok || c.Name == "prctl" && uint32(c.args[0]) == unix.PR_SET_SECCOMP {
		return judgement{kind: kindViolation}
	}
	return judgement{kind: kindRefused, Errno: errno}
}

// hostile tells by their arguments the escape attempts among calls that are
// otherwise harmless.
func hostile(c Call) bool {
	switch c.Name {
	case "ioctl":
		return slices.Contains(terminalTricks, uint32(c.args[1]))
	case "clone":
		return c.args[0]&newNamespaces != 0
	case "socket", "socketpair":
		return slices.Contains(hostileFamilies, uint32(c.args[0]))
	}
	return slices.Contains(words(becoming), c.Name) && slices.Contains(identities(c), 0)
}

// identities are the users or groups that a call of becoming asks for.
func identities(c Call) []uint32 {
	n := 1
	switch c.Name {
	case "setreuid", "setregid":
		n = 2
	case "setresuid", "setresgid":
		n = 3
	}
	var ids []uint32
	for _, a := range c.args[:n] {
		ids = append(ids, uint32(a))
	}
	return ids
}

// newNamespaces: clone has no room for CLONE_NEWTIME, whose bit is part of the
// signal there.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Requests that put words into a terminal or take it over.
var terminalTricks = []uint32{0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */, 0x5423 /* TIOCSETD */, 0x540e /* TIOCSCTTY */, 0x541d /* TIOCCONS */}

// Socket families that have been a way out, or lead to the host of this machine.
// Netlink and packet sockets are not among them: getaddrinfo, getifaddrs and
// network tools open them for their own ends.
var hostileFamilies = []uint32{unix.AF_ALG, unix.AF_VSOCK, unix.AF_KEY, unix.AF_XDP}
