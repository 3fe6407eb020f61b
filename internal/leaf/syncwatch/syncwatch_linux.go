// Package syncwatch tells tests which files their process brought to disk.
package syncwatch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processEnv is set in the process that a test runs again in.
const processEnv = "HOLDFAST_TEST_SYNCS"

// All is the path of a sync of every file system.
const All = "all"

// Watch records the files that this process and its children synced.
type Watch struct {
	listener int

	mu     sync.Mutex // guards synced
	synced []string
}

// StartAlone runs the test again in its own process, whose syncs it records, and
// returns nil in the first one, where nothing is left to do: a filter of system
// calls stays until a process ends.
func StartAlone(t *testing.T) *Watch {
	t.Helper()
	if os.Getenv(processEnv) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), processEnv+"=yes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("in its own process: %v\n%s", err, out)
		}
		return nil
	}
	w := &Watch{}
	if err := w.installFilter(); err != nil {
		t.Fatal(err)
	}
	go w.recordCalls()
	return w
}

// TakeSynced returns the paths of what was synced since the last call, in order.
func (w *Watch) TakeSynced() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := w.synced
	w.synced = nil
	return paths
}

// Want fails the test unless paths that match the patterns were synced in this
// order since the last call.
func (w *Watch) Want(t *testing.T, what string, patterns ...string) {
	t.Helper()
	got := w.TakeSynced()
	rest := got
	for _, p := range patterns {
		i := slices.IndexFunc(rest, regexp.MustCompile("^(?:"+p+")$").MatchString)
		if i < 0 {
			t.Errorf("%s: %s was not synced in its turn, only %q", what, p, got)
			return
		}
		rest = rest[i+1:]
	}
}

// The calls that bring something to disk; the first two name a descriptor.
var syncCalls = []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNCFS, unix.SYS_SYNC}

// installFilter makes the kernel report those calls of every thread to the listener.
func (w *Watch) installFilter() error {
	const userNotify, allow = 0x7fc00000, 0x7fff0000
	var prog []unix.SockFilter
	prog = append(prog, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS})
	for i, nr := range syncCalls {
		left := uint8(len(syncCalls) - i)
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: left, K: nr})
	}
	prog = append(prog, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: allow},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: userNotify})
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot give up new privileges: %w", err)
	}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC |
		unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if e != 0 {
		return fmt.Errorf("cannot watch syncs: %w", e)
	}
	w.listener = int(fd)
	return nil
}

// notice is struct seccomp_notif of Linux 5.0.
type notice struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// recordCalls records each call and lets it continue, until the process ends.
func (w *Watch) recordCalls() {
	const receive, send, letContinue = 0xc0502100, 0xc0182101, 1
	for {
		var n notice
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), receive, uintptr(unsafe.Pointer(&n)))
		if errors.Is(e, unix.EINTR) || errors.Is(e, unix.ENOENT) { // the caller was killed meanwhile
			continue
		}
		if e != 0 {
			panic(fmt.Sprintf("syncwatch: cannot read: %v", e))
		}
		path := All
		if uint32(n.nr) != unix.SYS_SYNC {
			path, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0])))
		}
		w.mu.Lock()
		w.synced = append(w.synced, path)
		w.mu.Unlock()
		a := answer{id: n.id, flags: letContinue}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), send, uintptr(unsafe.Pointer(&a)))
	}
}
