package process

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trySpaces makes the namespaces of flags once, for a process that ends at once,
// and returns why the kernel made none. Go's syscall package (1.26) keeps two
// descriptors open of each process that it could not clone into a user
// namespace, so that it is asked only for what can be had.
func trySpaces(flags uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := newSpaceTry(flags)
	if e := fork(&s.args, unsafe.Pointer(&s.tape[0]), ^uintptr(0)); e != 0 {
		return fmt.Errorf("clone: %w", e)
	}
	fd := int(s.args.fd)
	defer unix.Close(fd)
	for {
		if err := unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WALL, nil); err != unix.EINTR {
			return err
		}
	}
}

// spaceTry is the clone and the tape of a process that only ends.
type spaceTry struct {
	args cloneArgs
	tape [opsOffset/8 + opWords]uint64
}

// newSpaceTry is not inlined, so that what the kernel writes to does not lie on a
// stack that moves.
//
//go:noinline
func newSpaceTry(flags uintptr) *spaceTry {
	s := &spaceTry{}
	s.tape[opsOffset/8] = opEnd
	s.args = cloneArgs{flags: uint64(flags) | unix.CLONE_PIDFD | unix.CLONE_CLEAR_SIGHAND, pidfd: uint64(uintptr(unsafe.Pointer(&s.args.fd)))}
	return s
}
