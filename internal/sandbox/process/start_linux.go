package process

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
)

// hostUser is the user that workloads are on the host where Holdfast runs as
// root: a number that no system gives to anybody (it is in the range that
// systemd leaves unused).
const hostUser = 2_013_265_920

// launcherConn is a running launcher, or the zygote that one became, and the socket to
// it.
type launcherConn struct {
	mu     sync.Mutex
	conn   *net.UnixConn
	cmd    *exec.Cmd
	stderr bytes.Buffer
	done   chan struct{}

	root    language.Root // held until the launcher ends
	seats   chan *seat
	filling atomic.Bool
	pool    *pool

	// whole: it is an interpreter, which takes the flags of a clone as they are.
	whole  bool
	within time.Duration // see clone; cloneWithin if zero
	late   atomic.Bool   // a zygote that did not answer in time: it is asked for no more
}

// startLauncher starts one launcher whose root is the directory root, and
// whose workloads wait in p.
func startLauncher(root string, p *pool) (*launcherConn, error) {
	z, err := launch([]string{root}, nil)
	if err != nil {
		return nil, err
	}
	z.seats, z.pool = make(chan *seat, seatsReady), p
	return z, nil
}

// startZygote starts a launcher that becomes the interpreter of argv.
func startZygote(root string, argv, env []string) (*launcherConn, error) {
	z, err := launch(append([]string{root}, argv...), env)
	if err != nil {
		return nil, err
	}
	z.whole = true
	return z, nil
}

// launch starts a launcher with arguments and an environment.
func launch(args, env []string) (*launcherConn, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	z := &launcherConn{conn: ours, done: make(chan struct{})}
	exe, err := os.Executable()
	if err != nil {
		ours.Close()
		return nil, err
	}
	z.cmd = exec.Command(exe)
	z.cmd.Args = append([]string{LauncherName}, args...)
	z.cmd.Env = append([]string{"GOMAXPROCS=1"}, env...)
	// A pipe each, which is what a run's own output is.
	z.cmd.Stdout, z.cmd.Stderr = io.Discard, &z.stderr
	z.cmd.ExtraFiles = []*os.File{theirs}
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET}
	if os.Geteuid() == 0 {
		asRoot(attr)
	} else {
		asUser(attr)
	}
	z.cmd.SysProcAttr = attr
	if err := trySpaces(attr.Cloneflags); err != nil {
		ours.Close()
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread's end would be the launcher's
		started <- z.cmd.Start()
		z.cmd.Wait()
		close(z.done)
	}()
	if err := <-started; err != nil {
		ours.Close()
		return nil, err
	}
	return z, nil
}

// asRoot keeps root's rights until the walls of the launcher stand (the
// runtime's root lies in a directory of root's), and gives it the identity that
// it then takes.
func asRoot(attr *syscall.SysProcAttr) {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: workloadID, HostID: hostUser, Size: 1}}
	attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = ids, ids, true
}

// asUser maps the only identity there is. It is not root in the namespace
// either, because Linux maps no root further down without CAP_SETFCAP; so the
// right to mount has to be ambient to outlive the exec.
func asUser(attr *syscall.SysProcAttr) {
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: workloadID, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: workloadID, HostID: os.Getegid(), Size: 1}}
	attr.GidMappingsEnableSetgroups = false
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
}

// alive says whether the launcher still runs.
func (z *launcherConn) alive() bool {
	select {
	case <-z.done:
		return false
	default:
		return true
	}
}

// empty frees the seats that wait, and the root, once the launcher has ended.
func (z *launcherConn) empty() {
	z.pool.nursery.close()
	z.pool.empty()
	for {
		select {
		case s := <-z.seats:
			s.free()
		default:
			if z.root.Copy != nil {
				z.root.Release()
			}
			return
		}
	}
}

func (z *launcherConn) close() {
	if z.pool != nil {
		z.pool.nursery.close()
	}
	z.conn.Close()
	select {
	case <-z.done:
	case <-time.After(graceful):
		z.cmd.Process.Kill()
		<-z.done
	}
}

// clone asks for a new init, and returns its pidfd.
//
// into is the number among fds of a control group to be born in, or 0.
func (z *launcherConn) clone(flags uint64, into int, fds []int) (int, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.late.Load() { // what it still says would be taken for the answer
		return -1, errLate
	}
	if z.whole {
		if flags |= unix.CLONE_PIDFD; into > 0 {
			flags |= unix.CLONE_INTO_CGROUP
		}
	}
	var req [16]byte
	binary.LittleEndian.PutUint64(req[:], flags)
	binary.LittleEndian.PutUint64(req[8:], uint64(into))
	// A launcher that does not answer is one that will not.
	z.conn.SetDeadline(time.Now().Add(cmp.Or(z.within, cloneWithin)))
	if _, _, err := z.conn.WriteMsgUnix(req[:], unix.UnixRights(fds...), nil); err != nil {
		return -1, z.gone(err)
	}
	f, got, err := receive(z.conn)
	if z.whole && errors.Is(err, os.ErrDeadlineExceeded) {
		// It may be slow, as everything is on a machine that has much to do: with
		// it the runs would die that are its children, and serve requests.
		z.late.Store(true)
		return -1, errLate
	}
	if err != nil {
		return -1, z.gone(err)
	}
	if f.kind == frameRefused {
		return -1, fmt.Errorf("clone: %w", syscall.Errno(max(int32(f.a), -int32(f.a))))
	}
	if f.kind != frameCloned || len(got) != 1 {
		closeAll(got)
		return -1, errors.New("the launcher answered what it should not")
	}
	return got[0], nil
}

// errLate: see launcherConn.late. An init that it still makes finds its seat's
// socket closed, and ends.
var errLate = errors.New("the zygote did not answer in time")

// cloneWithin is how long a launcher may take for one init.
const cloneWithin = 10 * time.Second

// gone ends a launcher that failed, and says why it did.
func (z *launcherConn) gone(err error) error {
	z.cmd.Process.Kill()
	select {
	case <-z.done:
		if errors.Is(err, os.ErrDeadlineExceeded) && z.stderr.String() == "" {
			return died{fmt.Errorf("the %s did not answer within %v", z.word(), cmp.Or(z.within, cloneWithin))}
		}
		err := ending(z.word(), z.stderr.String())
		if z.cmd.ProcessState.ExitCode() == exitMount {
			return failed(holdfast.KindMount, "mount its root", err)
		}
		return died{err}
	case <-time.After(time.Second):
		return died{err}
	}
}

// word is what a message calls it.
func (z *launcherConn) word() string {
	if z.whole {
		return "zygote"
	}
	return "launcher"
}

// ending is what one said when it ended: its first words, since the rest of a
// crash is about the program and not the machine.
func ending(who, said string) error {
	err := fmt.Errorf("the %s ended without a word", who)
	if words := strings.TrimSpace(said); words != "" {
		err = fmt.Errorf("the %s ended: %s", who, excerpt.Of(words, 256))
	}
	if strings.Contains(said, "failed to create new OS thread") {
		return fmt.Errorf("%w: %w", err, unix.EAGAIN)
	}
	return err
}

type frame struct{ kind, a, b uint32 }

// receive reads one frame and its descriptors.
func receive(c *net.UnixConn) (frame, []int, error) {
	var b [12]byte
	oob := make([]byte, unix.CmsgSpace(4*maxFDs))
	n, oobn, _, _, err := c.ReadMsgUnix(b[:], oob)
	if err != nil {
		return frame{}, nil, err
	}
	if n == 0 {
		return frame{}, nil, net.ErrClosed
	}
	f := frame{binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
	if oobn == 0 {
		return f, nil, nil
	}
	fds, err := received(oob[:oobn])
	return f, fds, err
}

// socketPair returns a pair of which one end stays here.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours := os.NewFile(uintptr(fds[0]), "control")
	defer ours.Close()
	theirs := os.NewFile(uintptr(fds[1]), "control")
	c, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return c.(*net.UnixConn), theirs, nil
}
