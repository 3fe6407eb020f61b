package cgroup

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// setV1 sets one controller's limit. base is the group that this process is in,
// the limits of which hold too.
func setV1(d ctlDir, ctl string, s sandbox.Share, base string) error {
	switch ctl {
	case ctlMemory:
		return setMemoryV1(d, s.Memory)
	case ctlCPU:
		return setCPUV1(d, s, base)
	case ctlPids:
		return d.write("pids.max", strconv.Itoa(s.Pids))
	}
	return nil
}

// setMemoryV1 bounds memory, and memory with swap by the same number. A kernel
// that does not account swap is told not to swap the group out.
func setMemoryV1(d ctlDir, limit int64) error {
	bytes := strconv.FormatInt(limit, 10)
	err := d.write("memory.limit_in_bytes", bytes)
	if errors.Is(err, unix.EINVAL) && d.write("memory.memsw.limit_in_bytes", bytes) == nil {
		err = d.write("memory.limit_in_bytes", bytes) // it grew above the other
	}
	if err != nil {
		return err
	}
	err = d.write("memory.memsw.limit_in_bytes", bytes)
	if errors.Is(err, fs.ErrNotExist) {
		return d.write("memory.swappiness", "0")
	}
	return err
}

func setCPUV1(d ctlDir, s sandbox.Share, base string) error {
	if err := d.write("cpu.cfs_period_us", strconv.FormatInt(s.Period.Microseconds(), 10)); err != nil {
		return err
	}
	err := d.write("cpu.cfs_quota_us", strconv.FormatInt(s.Quota.Microseconds(), 10))
	// Version 1 refuses a quota above an ancestor's; then the ancestor's, which
	// holds without ours, is the tighter wall.
	if errors.Is(err, unix.EINVAL) && tighterAbove(base, s) {
		return nil
	}
	return err
}

// tighterAbove says whether the group at dir or one above it has a smaller
// quota than s.
func tighterAbove(dir string, s sandbox.Share) bool {
	for ; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		d := ctlDir{fd: unix.AT_FDCWD, sub: dir + "/", path: dir}
		quota, err := d.number("cpu.cfs_quota_us")
		if err != nil {
			return false
		}
		period, err := d.number("cpu.cfs_period_us")
		if err == nil && quota > 0 && period > 0 && quota*s.Period.Microseconds() < s.Quota.Microseconds()*period {
			return true
		}
	}
	return false
}

// readV1 adds what one controller knows to u.
func readV1(d ctlDir, ctl string, u *Usage) (err error) {
	switch ctl {
	case ctlMemory:
		return readMemoryV1(d, u)
	case ctlCPU:
		var text string
		if text, err = d.read("cpu.stat"); err == nil {
			n, _ := valueOf(text, "throttled_time")
			u.Throttled = time.Duration(n)
		}
	case ctlAcct:
		return readTimeV1(d, u)
	}
	return err
}

func readMemoryV1(d ctlDir, u *Usage) (err error) {
	if u.Peak, err = d.number("memory.max_usage_in_bytes"); err != nil {
		return err
	}
	text, err := d.read("memory.oom_control")
	if err != nil {
		return err
	}
	var ok bool
	if u.OOMKills, ok = valueOf(text, "oom_kill"); !ok { // before Linux 4.13
		return &fs.PathError{Op: "read", Path: d.path + "/memory.oom_control", Err: errors.New("it does not count kills")}
	}
	if text, err = d.read("memory.stat"); err == nil {
		u.MajorFaults, _ = valueOf(text, "pgmajfault")
	}
	return err
}

// readTimeV1 reads the exact times, or where the kernel has only ticks (before
// Linux 4.8) the exact sum, all of it as the user's.
func readTimeV1(d ctlDir, u *Usage) error {
	user, err := d.number("cpuacct.usage_user")
	if errors.Is(err, fs.ErrNotExist) {
		user, err = d.number("cpuacct.usage")
		u.User = time.Duration(user)
		return err
	}
	if err != nil {
		return err
	}
	system, err := d.number("cpuacct.usage_sys")
	u.User, u.System = time.Duration(user), time.Duration(system)
	return err
}

// v1Advice says what to do where version 1 groups may not be made.
func v1Advice(err error) string {
	switch {
	case errors.Is(err, unix.EROFS):
		return "in a container, mount /sys/fs/cgroup for writing"
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return "version 1 control groups are root's: run Holdfast as root, or boot with systemd.unified_cgroup_hierarchy=1 and start it by " + scopeCommand
	}
	return adviceUnknown
}
