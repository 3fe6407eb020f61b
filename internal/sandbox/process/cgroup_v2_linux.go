package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Leaves below the directory of one supervisor: a version 2 group that shares
// its controllers out holds no process of its own.
const (
	selfLeaf     = "supervisor"
	launcherLeaf = "launcher"
)

const adviceUnknown = "the kernel's answer above is all that is known"

const scopeCommand = "`systemd-run --user --scope -p Delegate=yes holdfast ...` (as root without --user)"

// setV2 sets one controller's limit.
func setV2(d ctlDir, ctl string, s share) error {
	switch ctl {
	case ctlMemory:
		if err := d.write("memory.max", strconv.FormatInt(s.memory, 10)); err != nil {
			return err
		}
		// Neither is there without swap, or before Linux 4.19.
		return errors.Join(unlessMissing(d.write("memory.swap.max", "0")), unlessMissing(d.write("memory.oom.group", "1")))
	case ctlCPU:
		return d.write("cpu.max", fmt.Sprintf("%d %d", s.quota.Microseconds(), s.period.Microseconds()))
	case ctlPids:
		return d.write("pids.max", strconv.Itoa(s.pids))
	}
	return nil
}

func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readV2 adds what one controller knows to u.
func readV2(d ctlDir, ctl string, u *groupUsage) error {
	switch ctl {
	case ctlMemory:
		return readMemoryV2(d, u)
	case ctlCPU:
		text, err := d.read("cpu.stat")
		if err != nil {
			return err
		}
		for key, to := range map[string]*time.Duration{"user_usec": &u.user, "system_usec": &u.system, "throttled_usec": &u.throttled} {
			n, _ := valueOf(text, key)
			*to = time.Duration(n) * time.Microsecond
		}
	}
	return nil
}

func readMemoryV2(d ctlDir, u *groupUsage) error {
	peak, err := d.number("memory.peak")
	if unlessMissing(err) != nil {
		return err
	}
	u.peak = peak
	text, err := d.read("memory.events")
	if err != nil {
		return err
	}
	u.oomKills, _ = valueOf(text, "oom_kill")
	if text, err = d.read("memory.stat"); err == nil {
		u.majorFaults, _ = valueOf(text, "pgmajfault")
	}
	return err
}

// handDown gives the controllers of base to a directory of ours, and that one's
// to the groups in it. It moves this process into a leaf if that is the only
// process in base, and says which controllers it could not get.
func (b *branch) handDown() map[string]error {
	base := ctlDir{fd: unix.AT_FDCWD, sub: b.base + "/", path: b.base}
	failed := map[string]error{}
	if err := b.makeRoom(base); err != nil {
		for _, ctl := range b.controllers {
			failed[ctl] = err
		}
		return failed
	}
	own := ctlDir{fd: b.fd, path: b.base + "/" + b.name}
	for _, ctl := range b.controllers {
		if err := enable(base, ctl); err != nil {
			failed[ctl] = err
		} else if err := enable(own, ctl); err != nil {
			failed[ctl] = err
		}
	}
	if len(failed) == len(b.controllers) {
		base.write("cgroup.procs", strconv.Itoa(os.Getpid())) // back, so that nothing has changed
		unix.Unlinkat(b.fd, selfLeaf, unix.AT_REMOVEDIR)
	}
	return failed
}

// enable hands a controller to the groups below d.
func enable(d ctlDir, ctl string) error {
	text, err := d.read("cgroup.subtree_control")
	if err != nil || slices.Contains(strings.Fields(text), ctl) {
		return err
	}
	return d.write("cgroup.subtree_control", "+"+ctl)
}

// errShared: the group is not this process's alone.
var errShared = errors.New("other processes live in the same control group")

// makeRoom takes this process out of base where it is in the way: only a group
// without processes shares its controllers out, the root excepted.
func (b *branch) makeRoom(base ctlDir) error {
	text, err := base.read("cgroup.subtree_control")
	if err != nil {
		return err
	}
	have := strings.Fields(text)
	if !slices.ContainsFunc(b.controllers, func(ctl string) bool { return !slices.Contains(have, ctl) }) {
		return nil
	}
	if _, err := base.read("cgroup.events"); errors.Is(err, fs.ErrNotExist) {
		return nil // the root of the hierarchy
	}
	if text, err = base.read("cgroup.procs"); err != nil {
		return err
	}
	self := strconv.Itoa(os.Getpid())
	if procs := strings.Fields(text); len(procs) == 0 {
		return nil
	} else if len(procs) > 1 || procs[0] != self {
		return errShared
	}
	if err := unix.Mkdirat(b.fd, selfLeaf, 0o755); err != nil && err != unix.EEXIST {
		return &fs.PathError{Op: "mkdir", Path: b.base + "/" + b.name + "/" + selfLeaf, Err: err}
	}
	leaf := ctlDir{fd: b.fd, sub: selfLeaf + "/", path: b.base + "/" + b.name + "/" + selfLeaf}
	return leaf.write("cgroup.procs", self)
}

// aboveLeaf returns the group that a process was in before it moved itself into
// a leaf.
func aboveLeaf(dir, name string) string {
	if filepath.Base(dir) == selfLeaf && filepath.Base(filepath.Dir(dir)) == name {
		return filepath.Dir(filepath.Dir(dir))
	}
	return dir
}

// admit moves a launcher into a leaf of its own, from where it may clone
// processes into groups: that takes the right to write to the group that both
// lie in. It is slow (see entrances), and done once for each launcher.
func (c *cgroups) admit(pid int) error {
	for _, b := range c.branches {
		if !b.v2 {
			continue
		}
		path := b.base + "/" + b.name
		if err := unix.Mkdirat(b.fd, launcherLeaf, 0o755); err != nil && err != unix.EEXIST {
			return cgroupError(err, "the launcher's control group could not be made in %s: %v", path, err)
		}
		leaf := ctlDir{fd: b.fd, sub: launcherLeaf + "/", path: path + "/" + launcherLeaf}
		if err := leaf.write("cgroup.procs", strconv.Itoa(pid)); err != nil {
			return cgroupError(err, "the launcher could not be put into its control group: %v", err)
		}
		if err := letLauncherIn(b.fd, path); err != nil {
			return cgroupError(err, "the launcher could not be let into control groups: %v", err)
		}
	}
	return nil
}

// letLauncherIn lets the launcher, which as root's is another user, start
// processes in the group. No workload sees the file that this opens.
func letLauncherIn(dir int, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := unix.Fchownat(dir, "cgroup.procs", hostUser, -1, 0); err != nil {
		return &fs.PathError{Op: "chown", Path: path + "/cgroup.procs", Err: err}
	}
	return nil
}

// v2Advice says what to do where version 2 groups may not be made.
func v2Advice(err error) string {
	switch {
	case errors.Is(err, errShared):
		return "start Holdfast in a control group of its own: " + scopeCommand
	case errors.Is(err, unix.EROFS):
		return "in a container, mount /sys/fs/cgroup for writing, with a private cgroup namespace"
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return "start Holdfast where control groups are delegated to it: " + scopeCommand
	case errors.Is(err, unix.EBUSY):
		return "the group holds processes; start Holdfast in one of its own: " + scopeCommand
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV):
		return "the controller is not handed down to this group; start Holdfast by " + scopeCommand
	}
	return adviceUnknown
}
