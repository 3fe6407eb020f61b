package cgroup

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

	"github.com/holdfast-dev/holdfast/internal/sandbox"
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
func setV2(d ctlDir, ctl string, s sandbox.Share) error {
	switch ctl {
	case ctlMemory:
		if err := d.write("memory.max", strconv.FormatInt(s.Memory, 10)); err != nil {
			return err
		}
		// Neither is there without swap, or before Linux 4.19.
		return errors.Join(unlessMissing(d.write("memory.swap.max", "0")), unlessMissing(d.write("memory.oom.group", "1")))
	case ctlCPU:
		return d.write("cpu.max", fmt.Sprintf("%d %d", s.Quota.Microseconds(), s.Period.Microseconds()))
	case ctlPids:
		return d.write("pids.max", strconv.Itoa(s.Pids))
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
func readV2(d ctlDir, ctl string, u *Usage) error {
	switch ctl {
	case ctlMemory:
		return readMemoryV2(d, u)
	case ctlCPU:
		text, err := d.read("cpu.stat")
		if err != nil {
			return err
		}
		for key, to := range map[string]*time.Duration{"user_usec": &u.User, "system_usec": &u.System, "throttled_usec": &u.Throttled} {
			n, _ := valueOf(text, key)
			*to = time.Duration(n) * time.Microsecond
		}
	}
	return nil
}

func readMemoryV2(d ctlDir, u *Usage) error {
	peak, err := d.number("memory.peak")
	if unlessMissing(err) != nil {
		return err
	}
	u.Peak = peak
	text, err := d.read("memory.events")
	if err != nil {
		return err
	}
	u.OOMKills, _ = valueOf(text, "oom_kill")
	if text, err = d.read("memory.stat"); err == nil {
		u.MajorFaults, _ = valueOf(text, "pgmajfault")
	}
	return err
}

// handDown gives the controllers of base to a directory of ours, and that one's
// to the groups in it. It moves this process into a leaf if base holds nobody but
// it and its kin, and says which controllers it could not get.
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
		b.moveBack(base) // so that nothing has changed
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

// aboveLeaf returns the group that a process was in before it moved itself into
// a leaf.
func aboveLeaf(dir, name string) string {
	if filepath.Base(dir) == selfLeaf && filepath.Base(filepath.Dir(dir)) == name {
		return filepath.Dir(filepath.Dir(dir))
	}
	return dir
}

// Admit moves a launcher into a leaf of its own, from where it may clone
// processes into groups: that takes the right to write to the group that both
// lie in. It is slow (see Entrances), and done once for each launcher.
func (c *Groups) Admit(pid int) error {
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
		if err := b.letLauncherIn(b.fd, path); err != nil {
			return cgroupError(err, "the launcher could not be let into control groups: %v", err)
		}
	}
	return nil
}

// letLauncherIn lets the launcher, which as root's is another user, start
// processes in the group. No workload sees the file that this opens.
func (b *branch) letLauncherIn(dir int, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := unix.Fchownat(dir, "cgroup.procs", b.launcher, -1, 0); err != nil {
		return &fs.PathError{Op: "chown", Path: path + "/cgroup.procs", Err: err}
	}
	return nil
}

// letLauncherIn lets the launcher start processes in the group's version 2
// directory, where there is one.
func (g *Group) letLauncherIn() error {
	for _, at := range g.at {
		if at.b.v2 {
			return at.b.letLauncherIn(g.dir, at.d.path)
		}
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
