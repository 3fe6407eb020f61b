package process

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// play runs the tape from operation at, in a process that was cloned without
// its program: nothing here may allocate, take a lock, grow the stack or be
// preempted. An operation that fails writes its index and errno to descriptor
// control and ends the process.
//
//go:nosplit
//go:norace
//go:nocheckptr
func play(tape unsafe.Pointer, at uintptr, control uintptr) {
	for {
		op := (*[opWords]uint64)(unsafe.Add(tape, opsOffset+8*opWords*at))
		kind := op[0] & 0xff
		var got, errno uintptr
		switch kind {
		case opMark:
			var ts unix.Timespec
			_, _, e := syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0)
			got, errno = uintptr(ts.Sec*1e9+ts.Nsec), uintptr(e)
		case opReap:
			errno = reap(uint64(arg(op, tape, 0)), uintptr(op[5]), uintptr(op[6]))
		case opStore:
			*(*uint32)(unsafe.Add(unsafe.Pointer(nil), op[5])) = uint32(arg(op, tape, 0))
		case opJump:
			at = arg(op, tape, 0)
			continue
		case opEnd:
			for {
				syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		default:
			var e syscall.Errno
			got, _, e = syscall.RawSyscall6(uintptr(op[1]), arg(op, tape, 0), arg(op, tape, 1), arg(op, tape, 2), arg(op, tape, 3), arg(op, tape, 4), arg(op, tape, 5))
			errno = uintptr(e)
		}
		if errno != 0 && errno != uintptr(op[3]) {
			fail(control, at, errno)
		}
		if kind == opClone && got == 0 {
			at = uintptr(op[10])
			continue
		}
		if op[2] != 0 {
			*(*uint64)(unsafe.Add(tape, 8*(op[2]-1))) = uint64(got)
		}
		at++
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func arg(op *[opWords]uint64, tape unsafe.Pointer, i uint) uintptr {
	if op[11]>>i&1 != 0 {
		return uintptr(*(*uint64)(unsafe.Add(tape, 8*op[4+i])))
	}
	return uintptr(op[4+i])
}

// reap waits for the process pid and for every other child that ends before it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func reap(pid uint64, status, usage uintptr) uintptr {
	for {
		got, _, e := syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), status, unix.WALL, usage, 0, 0)
		if e == syscall.EINTR {
			continue
		}
		if e != 0 || uint64(got) == pid {
			return uintptr(e)
		}
	}
}

// fail writes which operation failed, as {index, errno} of 32 bits each behind
// the mark of a failure, and ends the process.
//
//go:nosplit
//go:norace
//go:nocheckptr
func fail(control, at, errno uintptr) {
	msg := [3]uint32{frameFailed, uint32(at), uint32(errno)}
	syscall.RawSyscall(unix.SYS_WRITE, control, uintptr(unsafe.Pointer(&msg)), unsafe.Sizeof(msg))
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
}
