package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// LauncherName is what the launcher is called as (its argument 0), by which a
// program that may be one knows that it is: see Launcher.
const LauncherName = "holdfast-launcher"

// The launcher's descriptors, beside its standard ones: the socket to Holdfast.
const launcherSocket = 3

// Frames on the control socket of a run and on the launcher's: 32-bit words,
// the first of which is one of these.
const (
	frameFailed  = 0xfa11ed00 + iota // operation, errno
	frameReady                       // with the descriptors of listener, workload and scratch
	frameEnded                       // the workload has been reaped; status and usage stand in the tape
	frameCloned                      // from the launcher, with the init's pidfd
	frameRefused                     // from the launcher: errno
	frameParked                      // the workload waits for its request
	frameNetwork                     // from the launcher, with the sockets of its network: how far it reaches
)

// Launcher turns this process into a launcher and does not return, if it was
// started as one. A program that uses this package calls it first thing in
// main (and TestMain), before anything else is read or started.
func Launcher() {
	if len(os.Args) == 1 && os.Args[0] == workspaceLauncher {
		serveWorkspace()
	}
	if len(os.Args) < 2 || os.Args[0] != LauncherName {
		return
	}
	runtime.LockOSThread() // the death signal and the namespaces are the thread's
	l := &launcher{root: os.Args[1], zygote: os.Args[2:]}
	err := l.wall()
	if err == nil {
		err = l.serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	leave(exitOf(err))
}

// leave ends this process at once: nothing is deferred in a launcher, and what Go
// adds to an end is a second's sleep where the race detector looks on, for which
// whoever closes the tier waits.
func leave(code int) { syscall.Exit(code) }

// unmounted is a mount of the launcher's root that failed.
type unmounted struct{ err error }

func (u *unmounted) Error() string { return u.err.Error() }
func (u *unmounted) Unwrap() error { return u.err }

// The exit codes of a launcher that could not go on: launcherConn.gone reads them. Go's
// own end of a program that crashes is 2.
const (
	exitOther = 1
	exitMount = 71 // its root could not be mounted
)

func exitOf(err error) int {
	if err == nil {
		return 0
	}
	if u := (*unmounted)(nil); errors.As(err, &u) {
		return exitMount
	}
	return exitOther
}

type launcher struct {
	root string
	// zygote is the command line of the interpreter that it becomes, if any.
	zygote []string
	proc   int // the host's /proc, for the child's own identity maps; never in a workload

	// What serve needs for each run is allocated once: a process that forks by
	// hand stays small and does not collect.
	frame [64]byte
	oob   []byte
	args  cloneArgs
}

// wall puts the launcher behind its own walls: a root that holds the runtime
// alone, read-only, and no rights.
func (l *launcher) wall() error {
	steps := []struct {
		what string
		do   func() error
	}{
		{"follow Holdfast's death", func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) }},
		{"open /proc", func() (err error) {
			l.proc, err = unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			return err
		}},
		{"be the first to go where memory is short", func() error { return os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }},
		{"make mounts private", mounting(func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") })},
		{"bind the runtime's root", mounting(func() error { return unix.Mount(l.root, l.root, "", unix.MS_BIND, "") })},
		{"bind /dev", mounting(l.devices)},
		{"make the root read-only", mounting(l.readOnly)},
		{"mount what a zygote reads", mounting(l.zygoteScratch)},
		{"enter the root", mounting(l.enter)},
		{"give up rights", giveUp},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("the sandbox's launcher could not %s: %w", s.what, err)
		}
	}
	return nil
}

// mounting is a step whose failure is a mount's.
func mounting(do func() error) func() error {
	return func() error {
		if err := do(); err != nil {
			return &unmounted{err}
		}
		return nil
	}
}

// devices are the two that the specification lets a workload have (003 2.2).
func (l *launcher) devices() error {
	for _, d := range []string{"null", "urandom"} {
		at := filepath.Join(l.root, "dev", d)
		if err := unix.Mount("/dev/"+d, at, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		// A device is written to all the same; but its times, which every
		// sandbox and the host see, stay as they are.
		if err := unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NOEXEC, ""); err != nil {
			return err
		}
	}
	return nil
}

func (l *launcher) readOnly() error {
	return unix.Mount("", l.root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
}

func (l *launcher) enter() error {
	if err := unix.Chdir(l.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// giveUp leaves the launcher without rights, even in its own user namespace:
// as the unprivileged user where there is one (started by root), else with no
// capability.
func giveUp() error {
	if unix.Getuid() == 0 {
		if err := syscall.Setgroups(nil); err != nil {
			return err
		}
		if err := syscall.Setresgid(workloadID, workloadID, workloadID); err != nil {
			return err
		}
		if err := syscall.Setresuid(workloadID, workloadID, workloadID); err != nil {
			return err
		}
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return err
	}
	// A change of identity takes the death signal back.
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// serve starts one init for each request until Holdfast hangs up.
func (l *launcher) serve() error {
	if len(l.zygote) > 0 {
		return l.become(l.zygote)
	}
	signal.Ignore(unix.SIGCHLD) // the kernel reaps inits
	debug.FreeOSMemory()        // what is mapped here is copied for each run
	debug.SetGCPercent(-1)
	l.oob = make([]byte, unix.CmsgSpace(4*maxFDs))
	for {
		n, oobn, _, _, err := unix.Recvmsg(launcherSocket, l.frame[:], l.oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		if err := l.run(l.frame[:n], l.oob[:oobn]); err != nil {
			return err
		}
	}
}

const maxFDs = 16

// A request is the flags of the clone, and which of its descriptors is a control
// group to be born in, or 0; its descriptors are the tape, the run's control socket, and what the tape's slots from
// slotFD on are to name.
func (l *launcher) run(req, oob []byte) error {
	fds, err := received(oob)
	if err != nil || len(req) != 16 || len(fds) < 2 {
		return fmt.Errorf("the sandbox's launcher was sent a request it cannot read (%d bytes, %d descriptors)", len(req), len(fds))
	}
	defer closeAll(fds)
	flags, into := binary.LittleEndian.Uint64(req), binary.LittleEndian.Uint64(req[8:])
	if into >= uint64(len(fds)) {
		return l.answer(frameRefused, uint32(unix.EINVAL), nil)
	}
	pidfd, err := l.clone(flags, int(into), fds)
	if err != nil {
		return l.answer(frameRefused, errnoOf(err), nil)
	}
	defer unix.Close(pidfd)
	return l.answer(frameCloned, 0, unix.UnixRights(pidfd))
}

// clone maps the tape, writes the descriptors' numbers into it, and clones the
// process that plays it.
//
//go:nocheckptr
func (l *launcher) clone(flags uint64, into int, fds []int) (int, error) {
	tape, err := unix.MmapPtr(fds[0], 0, unsafe.Add(unsafe.Pointer(nil), tapeBase), tapeSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		return -1, err
	}
	defer unix.MunmapPtr(tape, tapeSize)
	slots := unsafe.Slice((*uint64)(tape), slotCount)
	slots[slotProc] = uint64(l.proc)
	for i, fd := range fds {
		slots[slotFD+i] = uint64(fd)
	}
	l.args = cloneArgs{flags: flags | unix.CLONE_PIDFD | unix.CLONE_CLEAR_SIGHAND, pidfd: uint64(uintptr(unsafe.Pointer(&l.args.fd))), exitSignal: uint64(unix.SIGCHLD)}
	if into > 0 {
		l.args.flags |= unix.CLONE_INTO_CGROUP
		l.args.cgroup = uint64(fds[into])
	}
	if e := fork(&l.args, tape, uintptr(fds[1])); e != 0 {
		return -1, e
	}
	return int(l.args.fd), nil
}

// cloneArgs is struct clone_args of clone3 (88 bytes, Linux 5.7), and the place
// for the pidfd.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64

	fd int32
}

const cloneArgsSize = 88

// fork clones a process that plays the tape. Signals are blocked meanwhile, so
// that none of the runtime's reaches the copy.
//
//go:nosplit
//go:norace
//go:nocheckptr
func fork(args *cloneArgs, tape unsafe.Pointer, control uintptr) syscall.Errno {
	all, old := ^uint64(0), uint64(0)
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	pid, _, e := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), cloneArgsSize, 0)
	if e == 0 && pid == 0 {
		play(tape, 0, control)
	}
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0)
	return e
}

func (l *launcher) answer(kind, value uint32, rights []byte) error {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], kind)
	binary.LittleEndian.PutUint32(b[4:], value)
	return unix.Sendmsg(launcherSocket, b[:], rights, nil, 0)
}

func received(oob []byte) ([]int, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) != 1 {
		return nil, errors.Join(err, unix.EINVAL)
	}
	return unix.ParseUnixRights(&msgs[0])
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func errnoOf(err error) uint32 {
	var e syscall.Errno
	if errors.As(err, &e) {
		return uint32(e)
	}
	return uint32(unix.EIO)
}
