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

	"github.com/holdfast-dev/holdfast/internal/leaf/procstat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Find looks for control groups below this process's own, and tries each
// limit on a group with a process in it. What does not work is down, with the
// reason; the function itself never fails. proc is the directory of procfs, and launcher
// the user of launchers if Holdfast is root.
func Find(proc string, launcher int) *Groups {
	c := &Groups{down: map[posture.Wall]Lack{}, launcher: launcher}
	c.seq.Store(uint64(time.Now().UnixNano())) // so that two of one process do not meet
	name, err := supervisorName(proc)
	if err != nil {
		c.lose([]string{ctlMemory, ctlCPU, ctlPids}, Lack{err.Error(), "Holdfast needs /proc to find its control group"})
		return c
	}
	for _, b := range c.locate(proc, name) {
		if err := b.open(); err != nil {
			c.lose(b.controllers, b.lackFor(err))
			continue
		}
		if b.v2 {
			c.drop(b, b.handDown())
		}
		c.branches = append(c.branches, b)
	}
	c.try(proc)
	return c
}

// NewUntried returns groups below the version 2 directory base with one controller, whose
// limit is not tried. It is for tests: in a plain directory no limit can be set.
func NewUntried(base, controller string) (*Groups, error) {
	name, err := supervisorName("/proc")
	if err != nil {
		return nil, err
	}
	b := &branch{v2: true, base: base, name: name, controllers: []string{controller}, fd: -1}
	if err := b.open(); err != nil {
		return nil, err
	}
	return &Groups{branches: []*branch{b}}, nil
}

// lose marks the walls of controllers as down.
func (c *Groups) lose(controllers []string, l Lack) {
	for _, ctl := range controllers {
		w, ok := wallOf(ctl)
		if _, lost := c.down[w]; ok && !lost {
			c.down[w] = l
		}
	}
}

// Lack is why a wall is down here, and what to do about it, which may be empty.
type Lack struct{ Why, Advice string }

// Error returns both.
func (l Lack) Error() string {
	if l.Advice == "" {
		return l.Why
	}
	return l.Why + "; " + l.Advice
}

// drop takes the failed controllers out of a branch.
func (c *Groups) drop(b *branch, failed map[string]error) {
	for ctl, err := range failed {
		c.lose([]string{ctl}, b.lackFor(err))
		b.controllers = slices.DeleteFunc(b.controllers, func(have string) bool { return have == ctl })
	}
}

// lackFor returns why a branch's limit does not hold.
func (b *branch) lackFor(err error) Lack {
	if b.v2 {
		return Lack{err.Error(), v2Advice(err)}
	}
	return Lack{err.Error(), v1Advice(err)}
}

const namePrefix = "holdfast-"

// supervisorName is the name of this process's directory. Number and start time
// together are no other process's.
func supervisorName(proc string) (string, error) {
	start, err := startTime(proc, "self")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%d-%s", namePrefix, os.Getpid(), start), nil
}

// startTime is when a process started, in the kernel's ticks since it booted.
func startTime(proc, pid string) (string, error) {
	fields, err := procstat.ReadFields(proc, pid)
	if err != nil {
		return "", err
	}
	if len(fields) < 20 {
		return "", fmt.Errorf("%s has no start time", filepath.Join(proc, pid, "stat"))
	}
	return fields[19], nil // field 22 of proc_pid_stat(5)
}

// membership is one line of /proc/PID/cgroup.
type membership struct {
	controllers []string // empty for version 2
	path        string
}

func parseMemberships(text string) []membership {
	var all []membership
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		m := membership{path: strings.TrimSuffix(parts[2], " (deleted)")}
		if parts[1] != "" {
			m.controllers = strings.Split(parts[1], ",")
		} else if parts[0] != "0" {
			continue
		}
		all = append(all, m)
	}
	return all
}

// memberOf finds the hierarchy of a controller; "" asks for version 2.
func memberOf(all []membership, ctl string) (membership, bool) {
	i := slices.IndexFunc(all, func(m membership) bool {
		return ctl == "" && len(m.controllers) == 0 || ctl != "" && slices.Contains(m.controllers, ctl)
	})
	if i < 0 {
		return membership{}, false
	}
	return all[i], true
}

// groupMount is one mount of a hierarchy.
type groupMount struct {
	root, point string
	v2          bool
	options     []string
}

// parseGroupMounts reads mountinfo: ID parent device root point options fields
// - type source superoptions.
func parseGroupMounts(text string) []groupMount {
	var all []groupMount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 6 || len(tail) < 3 || tail[0] != "cgroup" && tail[0] != "cgroup2" {
			continue
		}
		all = append(all, groupMount{
			root: sandbox.UnescapeMount(head[3]), point: sandbox.UnescapeMount(head[4]),
			v2: tail[0] == "cgroup2", options: strings.Split(tail[2], ","),
		})
	}
	return all
}

// under returns where the group path is in the mount. The paths of both begin
// at the root of the cgroup namespace; what lies outside of it begins with
// "/..", and cannot be found.
func (m groupMount) under(path string) (string, bool) {
	if m.root == "/.." || path == "/.." || strings.HasPrefix(m.root, "/../") || strings.HasPrefix(path, "/../") {
		return "", false
	}
	if m.root == "/" {
		return filepath.Join(m.point, path), true
	}
	rest, ok := strings.CutPrefix(path, m.root)
	return filepath.Join(m.point, rest), ok && (rest == "" || rest[0] == '/')
}

// locate finds each controller's hierarchy and makes a branch of each; a
// controller that has none is lost.
func (c *Groups) locate(proc, name string) []*branch {
	members, err1 := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	mounts, err2 := os.ReadFile(filepath.Join(proc, "self/mountinfo"))
	if err := errors.Join(err1, err2); err != nil {
		c.lose([]string{ctlMemory, ctlCPU, ctlPids}, Lack{err.Error(), "Holdfast needs /proc to find its control group"})
		return nil
	}
	all, at := parseMemberships(string(members)), parseGroupMounts(string(mounts))
	var branches []*branch
	for _, ctl := range []string{ctlMemory, ctlCPU, ctlAcct, ctlPids} {
		v2, dir, err := placeOf(all, at, ctl, name)
		if err != nil {
			l, ok := errors.AsType[Lack](err)
			if !ok {
				l = Lack{Why: err.Error()}
			}
			c.lose([]string{ctl}, l)
			continue
		}
		if v2 && ctl == ctlAcct {
			continue // it is part of cpu
		}
		i := slices.IndexFunc(branches, func(b *branch) bool { return b.base == dir })
		if i < 0 {
			branches = append(branches, &branch{v2: v2, base: dir, name: name, launcher: c.launcher, fd: -1})
			i = len(branches) - 1
		}
		branches[i].controllers = append(branches[i].controllers, ctl)
	}
	return branches
}

// placeOf finds the directory of this process's group for one controller.
func placeOf(all []membership, mounts []groupMount, ctl, name string) (v2 bool, dir string, err error) {
	m, v1 := memberOf(all, ctl)
	if !v1 {
		if m, v2 = memberOf(all, ""); !v2 {
			return false, "", Lack{"this kernel has no control group for " + ctl, "boot a kernel that has, without cgroup_disable"}
		}
	}
	for _, mount := range mounts {
		if mount.v2 == v1 || v1 && !slices.Contains(mount.options, ctl) {
			continue
		}
		dir, ok := mount.under(m.path)
		if !ok {
			continue
		}
		if v1 {
			return false, dir, nil
		}
		dir = aboveLeaf(dir, name)
		return true, dir, offers(dir, ctl)
	}
	return false, "", Lack{fmt.Sprintf("the control group for %s (%s) is not in any mount here", ctl, m.path),
		"mount /sys/fs/cgroup, in a container with a private cgroup namespace"}
}

// offers says whether the version 2 group dir has a controller to hand down.
func offers(dir, ctl string) error {
	have, err := ctlDir{fd: unix.AT_FDCWD, sub: dir + "/", path: dir}.read("cgroup.controllers")
	if err != nil {
		return err
	}
	if ctl != ctlAcct && !slices.Contains(strings.Fields(have), ctl) {
		return Lack{fmt.Sprintf("%s/cgroup.controllers does not name %s: it is not handed down to this group", dir, ctl),
			"start Holdfast by " + scopeCommand}
	}
	return nil
}

// open makes the branch's directory and keeps it open and locked, so that
// another supervisor does not take it for a dead one's: sweep locks what it
// takes away. The lock is shared by all of one process.
func (b *branch) open() error {
	path := b.base + "/" + b.name
	for range 100 {
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "open", Path: path, Err: err}
		}
		if unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != unix.EWOULDBLOCK && sameDir(fd, path) {
			b.fd = fd
			return nil
		}
		unix.Close(fd)
	}
	return &fs.PathError{Op: "lock", Path: path, Err: unix.EWOULDBLOCK}
}

func sameDir(fd int, path string) bool {
	var a, b unix.Stat_t
	return unix.Fstat(fd, &a) == nil && unix.Stat(path, &b) == nil && a.Ino == b.Ino && a.Dev == b.Dev
}

// Sweep removes the groups of supervisors that died, with what still runs in
// them, and returns how many groups those were.
func (c *Groups) Sweep() (removed int) {
	gone := map[string]bool{}
	for _, b := range c.branches {
		entries, err := os.ReadDir(b.base)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != b.name && strings.HasPrefix(e.Name(), namePrefix) && !alive(e.Name()) {
				sweepOne(b.base+"/"+e.Name(), gone)
			}
		}
	}
	return len(gone)
}

// alive says whether the supervisor that made a directory is a process here. A
// name that is none of ours is left alone.
func alive(name string) bool {
	pid, start, ok := strings.Cut(strings.TrimPrefix(name, namePrefix), "-")
	if _, err := strconv.ParseUint(pid, 10, 31); !ok || err != nil {
		return true
	}
	if _, err := strconv.ParseUint(start, 10, 64); err != nil {
		return true
	}
	now, err := startTime("/proc", pid)
	return err == nil && now == start || err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH)
}

// sweepOne takes away one dead supervisor's directory, unless somebody holds it
// (a supervisor in another PID namespace looks dead from here).
func sweepOne(path string, gone map[string]bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK {
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return
	}
	for _, e := range entries {
		d := ctlDir{fd: fd, sub: e.Name() + "/", path: path + "/" + e.Name()}
		ran := e.Name() != selfLeaf // in which whoever lives was Holdfast itself, or its kin
		within := time.Duration(0)
		if ran {
			within = removeWithin
		}
		if !e.IsDir() || ran && killAll(d) != nil || d.remove(time.Now().Add(within)) != nil {
			continue
		}
		if ran && e.Name() != launcherLeaf {
			gone[filepath.Base(path)+"/"+e.Name()] = true
		}
	}
	unix.Rmdir(path)
}
