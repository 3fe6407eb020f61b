package bystander

import (
	"fmt"
	"io"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Process is a process that only waits for its end.
type Process struct {
	PID  int
	hold int
}

// End lets the process end, and reaps it.
func (p *Process) End() {
	unix.Close(p.hold)
	for {
		if _, err := unix.Wait4(p.PID, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}

// Start starts one, inside the version 2 control group whose directory is
// group if that is not -1, and returns when it has entered the version 1 groups
// by doors, at most maxDoors.
func Start(group int, doors []int) (*Process, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var args intoArgs
	if group >= 0 {
		args.flags, args.cgroup = unix.CLONE_INTO_CGROUP, uint64(group)
	}
	for i := range copy(args.doors[:], doors) {
		args.doors[i]++ // so that the zero value is none
	}
	p, err := startProcess(&args, ends)
	if err != nil {
		return nil, fmt.Errorf("a process to try control groups with could not be started: %w", err)
	}
	var failed [1]byte
	n, err := unix.Read(p.hold, failed[:])
	for err == unix.EINTR {
		n, err = unix.Read(p.hold, failed[:])
	}
	switch {
	case err == nil && n == 1 && failed[0] == 0:
		return p, nil
	case err == nil && n == 1:
		err = syscall.Errno(failed[0])
	case err == nil:
		err = io.ErrUnexpectedEOF
	}
	p.End()
	return nil, fmt.Errorf("a process could not enter a control group: %w", err)
}

// StartInUserNamespace starts one in a user namespace that has no IDs yet.
func StartInUserNamespace() (*Process, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return startProcess(&intoArgs{flags: unix.CLONE_NEWUSER}, ends)
}

// startProcess forks a process that holds the second of ends, which is closed here.
func startProcess(args *intoArgs, ends [2]int) (*Process, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	args.exitSignal, args.ours, args.theirs = uint64(unix.SIGCHLD), uintptr(ends[0]), uintptr(ends[1])
	pid, e := forkProcess(args)
	unix.Close(ends[1])
	if e != 0 {
		unix.Close(ends[0])
		return nil, e
	}
	return &Process{PID: pid, hold: ends[0]}, nil
}

const maxDoors = 8

// intoArgs is struct clone_args up to cgroup (88 bytes, Linux 5.7), and what the
// process does.
type intoArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64

	setTID, setTIDSize, cgroup uint64

	ours, theirs uintptr
	doors        [maxDoors]int // each one above the descriptor
}

const intoArgsSize = 88

// forkProcess clones a process that enters its groups, closes whatever it got
// except its own end, says so, reads until the other end is closed, and ends.
// Of two that are started concurrently each would otherwise hold the other's end open, and
// neither would ever end. It touches nothing of Go's after the clone. Where it is to be born
// in no group clone does, which every kernel has.
//
//go:nosplit
//go:norace
func forkProcess(args *intoArgs) (int, syscall.Errno) {
	all, old := ^uint64(0), uint64(0)
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	var pid uintptr
	var e syscall.Errno
	if args.flags != 0 {
		pid, _, e = syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), intoArgsSize, 0)
	} else {
		pid, _, e = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
	if e == 0 && pid == 0 {
		standBy(args)
	}
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0)
	return int(pid), e
}

//go:nosplit
//go:norace
func standBy(args *intoArgs) {
	var b [1]byte
	self := [1]byte{'0'}
	syscall.RawSyscall(unix.SYS_CLOSE, args.ours, 0, 0)
	for i := 0; i < maxDoors && args.doors[i] != 0 && b[0] == 0; i++ {
		_, _, e := syscall.RawSyscall(unix.SYS_WRITE, uintptr(args.doors[i]-1), uintptr(unsafe.Pointer(&self)), 1)
		b[0] = byte(e)
	}
	if args.theirs > 0 {
		syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 0, args.theirs-1, 0)
	}
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, args.theirs+1, 1<<31-1, 0)
	syscall.RawSyscall(unix.SYS_WRITE, args.theirs, uintptr(unsafe.Pointer(&b)), 1)
	syscall.RawSyscall(unix.SYS_READ, args.theirs, uintptr(unsafe.Pointer(&b)), 1)
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
