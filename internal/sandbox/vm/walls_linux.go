package vm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox/heir"
)

// launcherName is the name under which this program is started to become a
// QEMU behind walls.
const launcherName = "holdfast-vm"

// nobodyID is who a machine is on the host where Holdfast is root: a number
// that nobody has.
const nobodyID = 2013265921

// machineID is that identity inside.
const machineID = 1

// wallsAttr are the namespaces that a machine is born in: no process, network
// or name of the host's is in them, and its identity owns nothing.
//
// group is whose right it is to use a device of the host's, or 0: the machine is
// of it where Holdfast is root; else it has the groups that Holdfast has.
func wallsAttr(group int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP,
		Pdeathsig:  unix.SIGKILL, Setsid: true,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if os.Geteuid() == 0 {
		other := syscall.SysProcIDMap{ContainerID: machineID, HostID: nobodyID, Size: 1}
		attr.UidMappings = append(attr.UidMappings, other)
		if group > 0 {
			other.HostID = group
		}
		attr.GidMappings, attr.GidMappingsEnableSetgroups = append(attr.GidMappings, other), true
	}
	return attr
}

// kvmGroup is the group that may use hardware virtualisation, or 0.
func kvmGroup() int {
	var st unix.Stat_t
	if unix.Stat("/dev/kvm", &st) != nil {
		return 0
	}
	return int(st.Gid)
}

// identity is the launcher's word for who the machine is to become: somebody
// else where Holdfast is root, who cannot be told from inside.
func identity() string {
	if os.Geteuid() == 0 {
		return "other"
	}
	return "same"
}

// Launcher turns this process into a QEMU behind walls, and does not return, if
// it was started as one. A program that opens the tier calls it first thing in
// main.
func Launcher() {
	heir.Become(heirName, settle)
	if len(os.Args) < 3 || os.Args[0] != launcherName {
		return
	}
	runtime.LockOSThread()
	err := enter(os.Getenv(doorsEnv))
	if err == nil {
		err = launch(os.Args[1] == "other", os.Args[2], os.Args[3:])
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func launch(other bool, qemu string, args []string) error {
	// Where the host's memory is short, a machine goes before Holdfast and before
	// what is none of either's.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("be the first to go where memory is short: %w", err)
	}
	if err := wallFiles(qemu); err != nil {
		return fmt.Errorf("its root: %w", err)
	}
	if err := wallRights(other); err != nil {
		return fmt.Errorf("its rights: %w", err)
	}
	if err := wallCalls(); err != nil {
		return fmt.Errorf("its filter: %w", err)
	}
	return &os.PathError{Op: "execute", Path: qemu, Err: unix.Exec(qemu, append([]string{qemu}, args...), []string{})}
}

// seen is what a machine finds of the host's files, read-only: programs and
// libraries, and the devices that QEMU asks for.
func seen(qemu string) (trees, devices []string) {
	trees = []string{"/usr", "/lib", "/lib64", "/lib32", "/libx32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives"}
	if !strings.HasPrefix(qemu, "/usr/") {
		trees = append(trees, filepath.Dir(qemu))
	}
	return trees, []string{"/dev/null", "/dev/zero", "/dev/urandom", "/dev/kvm"}
}

// wallFiles makes a root of these and nothing else, and enters it.
func wallFiles(qemu string) error {
	const root = "/sys" // where nothing is that a machine sees
	if err := errors.Join(mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"),
		os.Mkdir(root+"/proc", 0o755), mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")); err != nil {
		return err
	}
	trees, devices := seen(qemu)
	for _, t := range trees {
		if err := show(root, t, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
			return err
		}
	}
	for _, d := range devices {
		if err := show(root, d, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	if err := errors.Join(mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""), unix.Chdir(root)); err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("pivot_root", unix.PivotRoot(".", ".")), unix.Unmount(".", unix.MNT_DETACH), unix.Chdir("/"))
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return &os.PathError{Op: "mount", Path: target, Err: err}
	}
	return nil
}

// show lets a path of the host be seen below root, with attributes; one that is
// not there is left out.
func show(root, path string, attr uint64) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	at := root + path
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(to, at)
	case info.IsDir():
		err = os.MkdirAll(at, 0o755)
	default:
		err = os.WriteFile(at, nil, 0o600)
	}
	if err != nil {
		return err
	}
	if err := mount(path, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return os.NewSyscallError("mount_setattr", unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}))
}

// wallRights takes every right away, and those that starting a program gives.
func wallRights(other bool) error {
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL {
			return os.NewSyscallError("prctl", err)
		}
	}
	if other {
		if err := errors.Join(unix.Setgroups(nil), unix.Setresgid(machineID, machineID, machineID), unix.Setresuid(machineID, machineID, machineID)); err != nil {
			return fmt.Errorf("another identity: %w", err)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := [2]unix.CapUserData{}
	return errors.Join(
		os.NewSyscallError("capset", unix.Capset(&head, &none[0])),
		os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)),
		os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})),
		os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: 256})),
		os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)))
}

// forbidden are the calls that QEMU never makes and that one who has taken it
// over would: each kills it. What else may be done, QEMU's own filter narrows
// (-sandbox), after it has started.
func forbidden() []uint32 {
	return []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
		unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_BPF, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN,
		unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_SYSLOG,
		unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_SETGROUPS, unix.SYS_CAPSET,
	}
}

// wallCalls puts the filter of forbidden in place, for this thread and the
// program that it becomes.
func wallCalls() error {
	const (
		load, equal, atLeast, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		kill, allow               = 0x80000000, 0x7fff0000 // SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW
		x32                       = 0x40000000
		absent                    = 0x00050000 | uint32(unix.ENOSYS) // SECCOMP_RET_ERRNO
	)
	prog := []unix.SockFilter{{Code: load, K: 4}, {Code: equal, Jt: 1, K: unix.AUDIT_ARCH_X86_64}, {Code: ret, K: kill}, {Code: load, K: 0}}
	prog = append(prog, unix.SockFilter{Code: atLeast, Jf: 1, K: x32}, unix.SockFilter{Code: ret, K: kill})
	// QEMU asks for io_uring when it starts, and does without.
	prog = append(prog, unix.SockFilter{Code: equal, Jf: 1, K: unix.SYS_IO_URING_SETUP}, unix.SockFilter{Code: ret, K: absent})
	for _, nr := range forbidden() {
		prog = append(prog, unix.SockFilter{Code: equal, Jf: 1, K: nr}, unix.SockFilter{Code: ret, K: kill})
	}
	prog = append(prog, unix.SockFilter{Code: ret, K: allow})
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
