package process

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// TestListenerAmongSignals: whoever asks is answered once each time, however
// often a signal comes to who answers, and the end is seen when nobody asks any
// more, and not before.
func TestListenerAmongSignals(t *testing.T) {
	const forks = 3
	each := testrepeat.Times(2000, 100)
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "ours"), os.NewFile(uintptr(ends[1]), "theirs")
	defer ours.Close()
	var said bytes.Buffer
	cmd := exec.Command("python3", "-c", fmt.Sprintf(`import ctypes, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
code = b"".join(struct.pack("HBBI", *i) for i in ((0x20, 0, 0, 0), (0x15, 0, 1, %d), (6, 0, 0, 0x7fc00000), (6, 0, 0, 0x7fff0000)))
held = ctypes.create_string_buffer(code)
asks = struct.pack("HxxxxxxP", 4, ctypes.addressof(held))
assert libc.prctl(38, 1, 0, 0, 0) == 0
fd = libc.syscall(%d, 1, 8, ctypes.c_char_p(asks))
assert fd >= 0, ctypes.get_errno()
door = socket.socket(fileno=3)
socket.send_fds(door, [b"x"], [fd])
door.recv(1)
libc.close(fd)
for _ in range(%d): os.fork()
for _ in range(%d):
    if libc.syscall(%d) != -1 or ctypes.get_errno() != 77: print("another answer", ctypes.get_errno(), flush=True)
`, unix.SYS_GETPPID, unix.SYS_SECCOMP, forks, each, unix.SYS_GETPPID))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{theirs}, &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	late := time.AfterFunc(2*time.Minute, func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) })
	defer late.Stop()
	l := brought(t, ours)
	_, _ = ours.Write([]byte("x"))

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	over, tid := make(chan struct{}), unix.Gettid()
	go func() {
		for {
			select {
			case <-over:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG)
			}
		}
	}()
	answered := 0
	for {
		n, err := l.next()
		if err != nil {
			if !errors.Is(err, errNoCaller) {
				t.Error(err)
			}
			break
		}
		if !l.asks(n) {
			t.Error("who asks is not there")
		}
		if err := l.refuse(n, 77); err != nil {
			t.Errorf("question %d has no answer: %v", answered, err)
		}
		answered++
	}
	close(over)
	l.close() // whoever still asks is told so, and says it
	if err := cmd.Wait(); err != nil || said.Len() > 0 || answered != each<<forks {
		t.Errorf("%d of %d were answered: %v %.300s", answered, each<<forks, err, said.Bytes())
	}
}

// brought is the listener that comes over a socket.
func brought(t *testing.T, from *os.File) *listener {
	t.Helper()
	c, err := net.FileConn(from)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	one, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.(*net.UnixConn).ReadMsgUnix(one, oob)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		t.Fatal("no listener came: ", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatal("no listener came: ", err)
	}
	l, err := newListener(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	return l
}
