// Package heir takes away what a killed Holdfast left running. An heir is this
// program once more, in a session of its own, that waits until Holdfast's end of
// a socket is closed, which no death of a process leaves out; then it does what
// it was told to, and ends. Where Holdfast ends in order, it ends its heir.
//
// What Holdfast starts asks the kernel to be killed with the thread that started
// it. That is not all: a container's processes are no children of Holdfast's, and
// the kernel forgets the wish where a process changes who it is.
package heir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Heir is one that waits.
type Heir struct {
	cmd   *exec.Cmd
	sock  int
	ended chan struct{}
}

// inherited is the descriptor of an heir's end of the socket.
const inherited = 3

// Start starts an heir that knows will, which is made JSON. name is the one that
// the program gives Become. Of Holdfast's rights it keeps those capabilities that
// keep names, and none can come back to it by starting a program.
func Start(name string, will any, keep ...uintptr) (*Heir, error) {
	text, err := json.Marshal(will)
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "heir")
	defer theirs.Close()
	// The descriptor of the program itself: its file may have been replaced.
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{name, string(text)}
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", environ(), []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	started := make(chan error, 1)
	go OnThread(func() {
		err := without(keep)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	})
	if err := <-started; err != nil {
		unix.Close(pair[0])
		return nil, fmt.Errorf("start the process that clears up after a killed Holdfast: %w", err)
	}
	spare(cmd.Process.Pid)
	h := &Heir{cmd: cmd, sock: pair[0], ended: make(chan struct{})}
	go func() {
		cmd.Wait()
		close(h.ended)
	}()
	return h, nil
}

// OnThread runs f on a thread that has nothing else to do and ends with it, and
// whose rights and namespaces f may change. It is never the first thread, which Go
// keeps. The goroutine that calls it is of no more use: `go heir.OnThread(f)`.
func OnThread(f func()) {
	runtime.LockOSThread() // and never unlocked, so that the thread ends here
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		OnThread(f)
	}()
	<-done
	runtime.UnlockOSThread()
}

// environ is what programs that an heir starts find in their environment.
func environ() []string {
	list := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GOMAXPROCS=1"}
	for _, name := range []string{"XDG_RUNTIME_DIR", "HOME"} {
		if v := os.Getenv(name); v != "" {
			list = append(list, name+"="+v)
		}
	}
	return list
}

// without takes from this thread, and from what it starts, the rights that keep
// does not name. An ordinary user has none.
func without(keep []uintptr) error {
	if os.Geteuid() == 0 {
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			kept := false
			for _, k := range keep {
				kept = kept || c == k
			}
			if kept {
				continue
			}
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL && err != unix.EPERM {
				return os.NewSyscallError("prctl", err)
			}
		}
	}
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// spare asks the kernel to take another process where memory is short, also
// where it takes all of a group. Only root may ask for that.
func spare(pid int) {
	os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("-1000"), 0)
}

// Hold has the heir kill a process, too, should Holdfast be killed before it. The
// descriptor is the process's (pidfd), and stays the caller's.
func (h *Heir) Hold(pidfd int) error {
	return os.NewSyscallError("sendmsg", unix.Sendmsg(h.sock, []byte{1}, unix.UnixRights(pidfd), nil, unix.MSG_NOSIGNAL))
}

// Ended says that the heir is no more.
func (h *Heir) Ended() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// Close ends an heir that has nothing left to do.
func (h *Heir) Close() {
	h.cmd.Process.Kill()
	<-h.ended
	unix.Close(h.sock)
}

// within is how long an heir tries, and within every of its pauses lie.
const (
	within     = time.Minute
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// Become turns this process into the heir of that name, and does not return, if
// it was started as one. When Holdfast is gone it calls settle with the will
// until that says that nothing is left, for a minute at most. A program that uses
// Start calls it first thing in main (and TestMain).
func Become(name string, settle func(will []byte) (done bool)) {
	if len(os.Args) != 2 || os.Args[0] != name {
		return
	}
	// Whoever ends all of a service, or of a terminal, means Holdfast too, and
	// then there is something to do.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP)
	shut()
	held := wait()
	until := time.Now().Add(within)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		for _, fd := range held {
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		if settle([]byte(os.Args[1])) {
			os.Exit(0)
		}
		if time.Now().After(until) {
			os.Exit(1)
		}
		time.Sleep(pause)
	}
}

// shut closes what this process was given beside its socket: a lock or a pipe
// that Holdfast has from whoever started it ends with Holdfast.
func shut() {
	list, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range list {
		fd, err := strconv.Atoi(filepath.Base(name))
		to, gone := os.Readlink(name)
		if err == nil && gone == nil && fd > inherited && !strings.HasPrefix(to, "anon_inode:") {
			unix.Close(fd)
		}
	}
}

// wait returns when Holdfast's end of the socket is closed, with the processes
// that were to be held and may still run.
func wait() (held []int) {
	one, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	for {
		n, m, _, _, err := unix.Recvmsg(inherited, one, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case n == 0 || err != nil:
			return held
		}
		messages, _ := unix.ParseSocketControlMessage(oob[:m])
		held = running(held)
		for _, c := range messages {
			if fds, err := unix.ParseUnixRights(&c); err == nil {
				held = append(held, fds...)
			}
		}
	}
}

// running returns those processes that have not ended, and closes the others'
// descriptors.
func running(pidfds []int) (still []int) {
	for _, fd := range pidfds {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(p, 0); n == 1 && err == nil {
			unix.Close(fd)
			continue
		}
		still = append(still, fd)
	}
	return still
}
