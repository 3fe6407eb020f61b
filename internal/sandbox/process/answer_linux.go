package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
	"golang.org/x/sys/unix"
)

// answers says whether a call that the filter asked about is Holdfast's to
// answer; it is not where the request took it out of the profile.
func (r *run) answers(c seccomp.Call) bool {
	return c.IsOurs() && !slices.Contains(r.request().Narrow, c.Name)
}

// answer is called by answerAll alone.
func (r *run) answer(n notice, c seccomp.Call) {
	r.tally()
	mem := r.reach(n)
	if c.IsShared() {
		r.watch.Add(1)
		go func() {
			defer r.watch.Done()
			r.asks.refuse(n, r.wait(n, mem)) // where the asker is gone nobody hears it
		}()
		return
	}
	if c.IsCoreLimit() {
		r.asks.refuse(n, noCore(n, mem))
		return
	}
	if mem == nil {
		r.asks.refuse(n, unix.ENOSYS)
		return
	}
	b, at := idle(), n.args[0]
	if c.Name != "sysinfo" {
		b, at = r.room(), n.args[1]
	}
	r.asks.refuse(n, store(mem, at, b))
}

// noCore tells a program that there are no core files, and lets it ask for none.
func noCore(n notice, mem *os.File) unix.Errno {
	if mem == nil {
		return unix.EPERM
	}
	none := make([]byte, 16)
	if n.args[2] != 0 {
		asked, ok := load(mem, n.args[2], len(none))
		if !ok {
			return unix.EFAULT
		}
		if !bytes.Equal(asked, none) {
			return unix.EPERM
		}
	}
	if n.args[3] == 0 {
		return 0
	}
	return store(mem, n.args[3], none)
}

// machineMemory is what every program is told that the machine has: enough that
// no runtime makes itself smaller than its limit because of it.
const machineMemory = 4 << 30

// idle is struct sysinfo of a machine that is idle and has nobody else.
func idle() []byte {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return nil
	}
	s := unix.Sysinfo_t{Uptime: now.Sec, Totalram: machineMemory, Freeram: machineMemory, Procs: 2, Unit: 1}
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&s)), unsafe.Sizeof(s)))
}

// room is struct statfs of the scratch, whatever file is asked about: it is the
// only place where a program can write.
func (r *run) room() []byte {
	var s unix.Statfs_t
	if unix.Fstatfs(r.fs, &s) != nil {
		return nil
	}
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&s)), unsafe.Sizeof(s)))
}

// reach is the memory of the program that asks n, or nil where it cannot be had.
// It is opened once: the program starts no other, so that it keeps its memory.
//
// The file belongs to that memory for good, and not to a number that another
// process could have by now: the number was the workload's, and as long as
// somebody there still asks nobody else has got it.
func (r *run) reach(n notice) *os.File {
	if r.memory != nil || r.pid == 0 {
		return r.memory
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", r.pid), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if !r.asks.asks(n) {
		f.Close()
		return nil
	}
	r.memory = f
	return f
}

// numberOf is by what number /proc knows the process of a pidfd; 0 is by none.
func numberOf(pidfd int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(b, []byte("\nPid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if err != nil || !ok {
		return 0
	}
	return max(pid, 0) // -1: it has gone
}

// How Holdfast looks at a word for who waits on it: soon, then ever more seldom,
// and not for ever, because a signal is only heard between two waits.
const (
	lookFirst = 50 * time.Microsecond
	lookLast  = 5 * time.Millisecond
	lookBlind = time.Millisecond // where memory cannot be read
	waitMost  = 2 * time.Second
)

// wait waits in place of the program until the word of a futex is no more what
// the program says that it is, its time is up, or it ends. The errno is futex's:
// 0 woken, EAGAIN the word was another from the start. A caller has to look at
// the word itself whatever it is told, as with any futex.
func (r *run) wait(n notice, mem *os.File) unix.Errno {
	if mem == nil {
		r.pause(lookBlind)
		return 0
	}
	end, errno := deadline(n, mem)
	if errno != 0 {
		return errno
	}
	var changed unix.Errno = unix.EAGAIN
	for pause, most := lookFirst, time.Now().Add(waitMost); ; pause = min(2*pause, lookLast) {
		word, ok := load(mem, n.args[0], 4)
		left := end.left()
		switch {
		case !ok:
			return unix.EFAULT
		case binary.NativeEndian.Uint32(word) != uint32(n.args[2]):
			return changed
		case left <= 0:
			return unix.ETIMEDOUT
		case time.Now().After(most):
			return 0
		}
		changed = 0
		if !r.pause(min(pause, left)) {
			return 0
		}
	}
}

// pause says whether the run goes on after d.
func (r *run) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.gone:
		return false
	}
}

// until is when a wait ends, by a clock; the zero value never does.
type until struct {
	clock int32
	at    time.Duration
	timed bool
}

func (u until) left() time.Duration {
	var now unix.Timespec
	if !u.timed || unix.ClockGettime(u.clock, &now) != nil {
		return time.Hour
	}
	return u.at - time.Duration(now.Nano())
}

// deadline reads until when n waits: FUTEX_WAIT for a time, FUTEX_WAIT_BITSET to
// a time of one of two clocks.
func deadline(n notice, mem *os.File) (until, unix.Errno) {
	if n.args[3] == 0 {
		return until{}, 0
	}
	b, ok := load(mem, n.args[3], 16)
	if !ok {
		return until{}, unix.EFAULT
	}
	sec, nsec := int64(binary.NativeEndian.Uint64(b)), int64(binary.NativeEndian.Uint64(b[8:]))
	if sec < 0 || nsec < 0 || nsec >= 1e9 {
		return until{}, unix.EINVAL
	}
	u := until{clock: unix.CLOCK_MONOTONIC, at: time.Duration(min(sec, 1<<33))*time.Second + time.Duration(nsec), timed: true}
	const realtime = 0x100 // FUTEX_CLOCK_REALTIME
	switch op := uint32(n.args[1]); {
	case seccomp.IsFutexWait(op):
		var now unix.Timespec
		if err := unix.ClockGettime(u.clock, &now); err != nil {
			return until{}, unix.EINVAL
		}
		u.at = min(u.at, 24*time.Hour) + time.Duration(now.Nano())
	case op&realtime != 0:
		u.clock = unix.CLOCK_REALTIME
	}
	return u, 0
}

// store writes b where the program wants it.
func store(mem *os.File, at uint64, b []byte) unix.Errno {
	if b == nil || int64(at) < 0 {
		return unix.EFAULT
	}
	if _, err := mem.WriteAt(b, int64(at)); err != nil {
		return unix.EFAULT
	}
	return 0
}

func load(mem *os.File, at uint64, size int) ([]byte, bool) {
	b := make([]byte, size)
	if int64(at) < 0 {
		return nil, false
	}
	_, err := mem.ReadAt(b, int64(at))
	return b, err == nil
}
