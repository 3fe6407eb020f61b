package process

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/leaf/procstat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
)

// leaves says, of a workload that was parked, that its only thread is leaving:
// it has asked for exit_group, which nobody answers, so that not one instruction
// of it runs any more. What it has written is written, its exit code is known, and
// its result need not wait until Linux has taken its memory apart.
func (r *run) leaves(n notice, c seccomp.Call) bool {
	if c.Name != "exit_group" {
		return false
	}
	r.mu.Lock()
	stands := r.released && r.reason == "" && !r.left
	r.mu.Unlock()
	if !stands {
		return false
	}
	used, ok := lastUsage(n.pid, r.group != nil && r.group.CountsTimesAndFaults())
	if !ok || used.threads != 1 || !r.asks.asks(n) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason != "" {
		return false
	}
	r.left = true
	// As its init would have written it, which does not come to it any more.
	binary.LittleEndian.PutUint32(r.tape[r.plan.status:], uint32(n.args[0])&0xff<<8)
	used.write(r.tape[r.plan.usage:])
	r.ctl.SetReadDeadline(time.Unix(1, 0))
	return true
}

// unserved says that a workload that was parked has not got its request: what
// failed comes before it is let go on.
func (r *run) unserved(f frame) bool {
	op := int(f.a) - r.plan.base
	if r.waiting.base == 0 || op < 0 || op >= len(r.plan.stages) {
		return false
	}
	s := r.plan.stages[op]
	return s != stageReport && s != stageExec || unix.Errno(f.b) == unix.EPIPE // nobody was there to read it
}

// hasLeft says whether the result is there before the end of the process.
func (r *run) hasLeft() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// processUsage is what /proc says of a process with one thread.
type processUsage struct {
	threads      int64
	user, system time.Duration
	peak         int64 // KB, as private
	private      int64 // at its peak, but for the pages of files that it has now
	majorFaults  uint64
}

// clockTick is the unit of /proc/PID/stat: USER_HZ is 100 on every architecture
// that Holdfast runs on.
const clockTick = 10 * time.Millisecond

// lastUsage reads what the process has used until now; false if it cannot be
// known. Its times and faults stay 0 where a control group counts them.
func lastUsage(pid uint32, counted bool) (u processUsage, ok bool) {
	id := strconv.FormatUint(uint64(pid), 10)
	if !counted && !u.times(id) {
		return u, false
	}
	status, err := os.ReadFile("/proc/" + id + "/status")
	if err != nil {
		return u, false
	}
	var files int64
	for name, to := range map[string]*int64{"Threads": &u.threads, "VmHWM": &u.peak, "RssFile": &files} {
		_, value, found := strings.Cut(string(status), "\n"+name+":")
		value, _, _ = strings.Cut(value, "\n")
		value = strings.TrimSpace(strings.TrimSuffix(value, "kB"))
		n, bad := strconv.ParseInt(value, 10, 64)
		if bad != nil || !found {
			return u, false
		}
		*to = n
	}
	u.private = u.peak - files
	return u, true
}

// times reads what /proc/PID/stat has.
func (u *processUsage) times(pid string) bool {
	f, err := procstat.ReadFields("/proc", pid)
	if err != nil || len(f) < 18 {
		return false
	}
	word := func(i int) uint64 {
		n, bad := strconv.ParseUint(f[i], 10, 64)
		if bad != nil {
			err = bad
		}
		return n
	}
	u.majorFaults = word(9)
	u.user, u.system = time.Duration(word(11))*clockTick, time.Duration(word(12))*clockTick
	return err == nil
}

// write puts it where an init puts struct rusage.
func (u processUsage) write(at []byte) {
	put := func(i int, v uint64) { binary.LittleEndian.PutUint64(at[8*i:], v) }
	put(0, uint64(u.user/time.Second))
	put(1, uint64(u.user%time.Second/time.Microsecond))
	put(2, uint64(u.system/time.Second))
	put(3, uint64(u.system%time.Second/time.Microsecond))
	put(4, uint64(u.peak))
	put(9, u.majorFaults)
}

// early is the result of a run that has left.
func (r *run) early() *posture.Result {
	r.stdout.quiet()
	r.stderr.quiet()
	r.copied.Wait()
	r.at.Ended = time.Now()
	res := &posture.Result{ID: r.spec.ID, State: posture.Completed}
	r.usage(res)
	r.verdict(res, true)
	r.brought(res)
	return res
}

// parkedStages are the stages of a run whose workload was parked: those by which
// it came to wait, and those of its request.
func (r *run) parkedStages() []posture.Stage {
	mark := func(i int) int64 { return int64(binary.LittleEndian.Uint64(r.tape[8*(slotMarks+i):])) }
	var list []posture.Stage
	for _, s := range []struct {
		name     string
		from, to int
	}{{"identity", 0, 1}, {"scratch", 1, 2}, {"rights", markPark, 5}, {"signals", 5, 6}, {"files", 3, 4}, {"program", 4, 7}} {
		if mark(s.from) != 0 && mark(s.to) > mark(s.from) {
			list = append(list, posture.Stage{Name: s.name, Took: time.Duration(mark(s.to) - mark(s.from))})
		}
	}
	return list
}
