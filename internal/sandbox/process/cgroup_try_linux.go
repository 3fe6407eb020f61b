package process

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tried is the share that findGroups tries the limits with.
func tried() share {
	return share{memory: 64 << 20, period: 100 * time.Millisecond, quota: 50 * time.Millisecond, pids: 4}
}

// try makes a group in each branch, sets each limit, moves a process in and
// takes it all away. What fails is dropped.
func (c *cgroups) try(proc string) {
	for _, b := range c.branches {
		if len(b.controllers) > 0 {
			c.drop(b, b.try(proc))
		}
	}
	holds := func(b *branch) bool {
		return slices.ContainsFunc(b.controllers, func(ctl string) bool { return ctl != ctlAcct })
	}
	some := slices.ContainsFunc(c.branches, holds) // without a wall nothing is worth measuring
	c.branches = slices.DeleteFunc(c.branches, func(b *branch) bool {
		keep := some && len(b.controllers) > 0
		if !keep {
			b.close()
		}
		return !keep
	})
}

// try returns what went wrong with each controller of one branch. A
// process gets into the group as runs do: there is no other way for them.
func (b *branch) try(proc string) map[string]error {
	failed := map[string]error{}
	all := func(err error) map[string]error {
		for _, ctl := range b.controllers {
			failed[ctl] = err
		}
		return failed
	}
	g := &group{id: "probe", dir: -1}
	defer g.remove()
	if err := g.grow(b, 0); err != nil {
		return all(err)
	}
	at := g.at[0]
	for _, ctl := range b.controllers {
		if err := at.set(ctl, tried()); err != nil {
			failed[ctl] = err
		}
	}
	if err := g.letLauncherIn(); err != nil {
		return all(err)
	}
	p, err := startBystander(g.dir, g.doors)
	if err != nil {
		return all(err)
	}
	defer p.end()
	if !isIn(proc, p.pid, b, at.d) {
		return all(fmt.Errorf("a process that was put into %s is not in it", at.d.path))
	}
	for _, ctl := range b.controllers {
		var u groupUsage
		read := readV1
		if b.v2 {
			read = readV2
		}
		if err := read(at.d, ctl, &u); err != nil && failed[ctl] == nil {
			failed[ctl] = err
		}
	}
	return failed
}

// isIn says whether the process is in the group d, by what the kernel says of
// the process.
func isIn(proc string, pid int, b *branch, d ctlDir) bool {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return false
	}
	ctl := ""
	if !b.v2 {
		ctl = b.controllers[0]
	}
	m, ok := memberOf(parseMemberships(string(text)), ctl)
	return ok && strings.HasSuffix(m.path, "/"+b.name+"/"+strings.TrimSuffix(d.sub, "/"))
}

// bystander is a process that only waits for its end, for groups to be tried
// on.
type bystander struct {
	pid, hold int
}

// end lets the process end, and reaps it.
func (p *bystander) end() {
	unix.Close(p.hold)
	ignoringEINTR(func() (int, error) { return unix.Wait4(p.pid, nil, 0, nil) })
}

// startBystander starts one, inside the version 2 group whose directory is
// group if that is not -1, and returns when it has entered the version 1 groups
// by doors, at most maxDoors.
func startBystander(group int, doors []int) (*bystander, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	args := intoArgs{exitSignal: uint64(unix.SIGCHLD), ours: uintptr(ends[0]), theirs: uintptr(ends[1])}
	if group >= 0 {
		args.flags, args.cgroup = unix.CLONE_INTO_CGROUP, uint64(group)
	}
	for i := range copy(args.doors[:], doors) {
		args.doors[i]++ // so that the zero value is none
	}
	pid, e := forkBystander(&args)
	unix.Close(ends[1])
	if e != 0 {
		unix.Close(ends[0])
		return nil, fmt.Errorf("a process to try control groups with could not be started: %w", e)
	}
	p := &bystander{pid: pid, hold: ends[0]}
	var failed [1]byte
	n, err := ignoringEINTR(func() (int, error) { return unix.Read(p.hold, failed[:]) })
	switch {
	case err == nil && n == 1 && failed[0] == 0:
		return p, nil
	case err == nil && n == 1:
		err = syscall.Errno(failed[0])
	case err == nil:
		err = io.ErrUnexpectedEOF
	}
	p.end()
	return nil, fmt.Errorf("a process could not enter a control group: %w", err)
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

// forkBystander clones a process that enters its groups, closes whatever it got
// but for its own end, says so, reads until the other end is closed, and ends.
// Of two that are started at once each would else hold the other's end open, and
// neither ever ends. It touches nothing of Go's after the
// clone. Where it is to be born in no group clone does, which every kernel has.
//
//go:nosplit
//go:norace
func forkBystander(args *intoArgs) (int, syscall.Errno) {
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
