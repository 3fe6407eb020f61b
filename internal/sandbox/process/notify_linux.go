package process

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notice and answer are struct seccomp_notif and seccomp_notif_resp (Linux 5.0;
// 80 and 24 bytes, which RECV's own number says).
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type answer struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// listener is where the kernel asks about calls outside the allowlist. One
// goroutine reads it. It belongs to whoever made it, who closes it.
type listener struct {
	file *os.File
	conn syscall.RawConn
}

func newListener(fd int) (*listener, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	l := &listener{file: os.NewFile(uintptr(fd), "seccomp listener")}
	var err error
	l.conn, err = l.file.SyscallConn()
	return l, err
}

func (l *listener) close() { l.file.Close() }

var errNoCaller = errors.New("nobody is left who could ask")

// next waits for a question. It asks whether one is there before it receives
// one: RECV would wait, and would not end with the process that it waits for.
// POLLERR is not the end: the kernel answers so where a signal came, such as
// those with which Go's scheduler interrupts, while another held its lock.
func (l *listener) next() (n notice, err error) {
	end := l.conn.Read(func(fd uintptr) bool {
		for {
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if _, err = unix.Poll(p, 0); err == unix.EINTR {
				continue
			}
			switch {
			case err != nil:
				return true
			case p[0].Revents&unix.POLLIN != 0:
			case p[0].Revents&unix.POLLHUP != 0:
				err = errNoCaller
				return true
			case p[0].Revents&unix.POLLERR != 0:
				continue
			default:
				return false
			}
			n = notice{}
			_, _, e := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
			if e == 0 {
				err = nil
				return true
			}
			if e != unix.EINTR && e != unix.ENOENT { // the asker has gone: look again
				err = e
				return true
			}
		}
	})
	if err == nil {
		err = end
	}
	return n, err
}

// refuse lets the call fail with errno.
func (l *listener) refuse(n notice, errno unix.Errno) error {
	return l.send(answer{id: n.id, errno: -int32(errno)})
}

// proceed lets the call happen. It is for the one execve before any untrusted
// instruction has run, when what the arguments point to cannot change.
func (l *listener) proceed(n notice) error {
	return l.send(answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

func (l *listener) send(a answer) error {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a))
}

// asks says whether the process of n still waits for an answer, so that its
// number names it and no other.
func (l *listener) asks(n notice) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) == nil
}

// ioctl does req also where signals come: a question that were left without its
// answer would keep the asker for ever.
func (l *listener) ioctl(req uint, p unsafe.Pointer) (err error) {
	end := l.conn.Control(func(fd uintptr) {
		e := unix.EINTR
		for e == unix.EINTR {
			_, _, e = unix.Syscall(unix.SYS_IOCTL, fd, uintptr(req), uintptr(p))
		}
		if e != 0 {
			err = e
		}
	})
	if end != nil {
		return end
	}
	return err
}
