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
)

// errShared: the group is not this process's and its kin's alone.
var errShared = errors.New("other processes live in the same control group")

// makeRoom takes this process and its kin out of base where they are in the
// way: only a group without processes shares its controllers out, the root
// excepted. Where anybody else is in base nobody is moved.
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
	for range 20 { // who is moved may have a child meanwhile
		if text, err = base.read("cgroup.procs"); err != nil {
			return err
		}
		procs := strings.Fields(text)
		if len(procs) == 0 {
			return nil
		}
		if i := slices.IndexFunc(procs, func(pid string) bool { return !isKin(pid) }); i >= 0 {
			return fmt.Errorf("%w (process %s)", errShared, procs[i])
		}
		if err := b.moveToLeaf(procs); err != nil {
			return err
		}
	}
	return errShared
}

// moveToLeaf moves processes of base into the leaf.
func (b *branch) moveToLeaf(procs []string) error {
	if err := unix.Mkdirat(b.fd, selfLeaf, 0o755); err != nil && err != unix.EEXIST {
		return &fs.PathError{Op: "mkdir", Path: b.leaf().path, Err: err}
	}
	for _, pid := range procs {
		if err := b.leaf().write("cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// moveBack empties the leaf into base, and removes it.
func (b *branch) moveBack(base ctlDir) {
	for range 20 {
		text, err := b.leaf().read("cgroup.procs")
		procs := strings.Fields(text)
		if err != nil || len(procs) == 0 {
			break
		}
		for _, pid := range procs {
			base.write("cgroup.procs", pid)
		}
	}
	unix.Unlinkat(b.fd, selfLeaf, unix.AT_REMOVEDIR)
}

func (b *branch) leaf() ctlDir {
	return ctlDir{fd: b.fd, sub: selfLeaf + "/", path: b.base + "/" + b.name + "/" + selfLeaf}
}

// maxAncestors bounds how far isKin looks up.
const maxAncestors = 64

// isKin says whether a process is this one, another of Holdfast's (a command
// that started the daemon and waits for it), or was started by one of either,
// such as a tool server.
func isKin(pid string) bool {
	n, err := strconv.Atoi(pid)
	self, err2 := os.Stat("/proc/self/exe")
	if err != nil || err2 != nil {
		return false
	}
	for range maxAncestors {
		if n == os.Getpid() {
			return true
		}
		if n <= 1 {
			return false
		}
		exe, err := os.Stat(filepath.Join("/proc", strconv.Itoa(n), "exe"))
		if err == nil && os.SameFile(self, exe) {
			return true
		}
		n = procstat.FindParent(n)
	}
	return false
}

// handBack undoes handDown: what was moved goes back to base, which is as it was
// found. Nothing is undone while something else of this process, or anybody
// else, keeps groups in base.
func (b *branch) handBack() {
	if unix.Flock(b.fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	launcher := ctlDir{fd: b.fd, sub: launcherLeaf + "/", path: b.base + "/" + b.name + "/" + launcherLeaf}
	launcher.remove(time.Now().Add(removeWithin))
	text, err := b.leaf().read("cgroup.procs")
	if err != nil || !slices.Contains(strings.Fields(text), strconv.Itoa(os.Getpid())) {
		return // it was not moved
	}
	if !onlyChild(b.base, b.name) || !onlyChild(b.base+"/"+b.name, selfLeaf) {
		return
	}
	base := ctlDir{fd: unix.AT_FDCWD, sub: b.base + "/", path: b.base}
	for _, d := range []ctlDir{{fd: b.fd, path: b.base + "/" + b.name}, base} {
		if disable(d) != nil {
			return
		}
	}
	b.moveBack(base)
}

// onlyChild says whether dir has one group in it, of that name.
func onlyChild(dir, name string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && e.Name() != name })
}

// disable takes every controller back from the groups below d.
func disable(d ctlDir) error {
	text, err := d.read("cgroup.subtree_control")
	if err != nil {
		return err
	}
	var off []string
	for _, ctl := range strings.Fields(text) {
		off = append(off, "-"+ctl)
	}
	if len(off) == 0 {
		return nil
	}
	return d.write("cgroup.subtree_control", strings.Join(off, " "))
}
