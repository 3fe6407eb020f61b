package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/hostlimit"
)

// Usage is what a group has used. A figure that the kernel does not keep
// is 0.
type Usage struct {
	Peak         int64 // bytes; 0 on version 2 before Linux 5.19
	User, System time.Duration
	OOMKills     int64
	MajorFaults  int64
	Throttled    time.Duration
}

// The controllers that are used. cpuacct stands for the measuring of processor
// time, which version 2 keeps with cpu.
const (
	ctlMemory = "memory"
	ctlCPU    = "cpu"
	ctlAcct   = "cpuacct"
	ctlPids   = "pids"
)

// wallOf is the wall a controller holds up; cpuacct only measures.
func wallOf(ctl string) (posture.Wall, bool) {
	switch ctl {
	case ctlMemory:
		return posture.WallMemory, true
	case ctlCPU:
		return posture.WallCPU, true
	case ctlPids:
		return posture.WallPids, true
	}
	return "", false
}

// Groups are the places below which this process may make control groups: one
// branch for each hierarchy. On a hybrid system each controller is used in the
// version in which it is there. Once they are found branches and down stay as
// they are, so that anybody may read them at any time.
type Groups struct {
	branches []*branch
	down     map[posture.Wall]Lack
	launcher int // the user of launchers if Holdfast is root
	seq      atomic.Uint64
	closed   atomic.Bool
}

// branch is one hierarchy.
type branch struct {
	v2          bool
	controllers []string
	base        string // the directory of this process's own group
	name        string // of the directory made below base: holdfast-<pid>-<start>
	launcher    int    // see Groups

	mu sync.Mutex
	fd int // of base/name; reopened where somebody removed it
}

// Group is where one run is held to its share.
type Group struct {
	id    string
	at    []groupDir // one for each branch
	dir   int        // of the version 2 directory, or -1
	doors []int      // of the version 1 tasks files
}

type groupDir struct {
	b *branch
	d ctlDir
}

// Mode returns how groups are kept: v2, v1 (also where only some controllers are
// in version 1), or none.
func (c *Groups) Mode() string {
	mode := "none"
	for _, b := range c.branches {
		if !b.v2 {
			return "v1"
		}
		mode = "v2"
	}
	return mode
}

// Walls returns which of memory, cpu and pids were shown to hold, and for the others
// why not and what to do about it.
func (c *Groups) Walls() (up []posture.Wall, down map[posture.Wall]Lack) {
	down = map[posture.Wall]Lack{}
	for _, ctl := range []string{ctlMemory, ctlCPU, ctlPids} {
		w, _ := wallOf(ctl)
		if l, lost := c.down[w]; lost {
			down[w] = l
		} else if slices.ContainsFunc(c.branches, func(b *branch) bool { return slices.Contains(b.controllers, ctl) }) {
			up = append(up, w)
		} else {
			down[w] = Lack{Why: "it was not looked for"}
		}
	}
	return up, down
}

// Homes returns the directories in which the groups lie.
func (c *Groups) Homes() (list []string) {
	for _, b := range c.branches {
		list = append(list, b.base+"/"+b.name)
	}
	return list
}

// maxGroupID bounds the part of a directory's name that the caller chooses.
const maxGroupID = 128

// Create makes the group of one run, with every limit whose wall is up. The
// error is a CgroupError that names the file (003 2.1 and 2.2, failure
// predicates), and then nothing is left behind.
func (c *Groups) Create(id string, s sandbox.Share) (*Group, error) {
	if len(c.branches) == 0 {
		return nil, cgroupError(nil, "control groups are not available, so nothing would hold the run to its share")
	}
	if c.closed.Load() {
		return nil, cgroupError(nil, "the control groups are closed")
	}
	if id == "" || len(id) > maxGroupID || strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return nil, cgroupError(nil, "%.80q cannot name a control group", id)
	}
	if s.Memory <= 0 || s.Pids <= 0 || s.Quota <= 0 || s.Period <= 0 {
		return nil, cgroupError(nil, "a share without limits is no share: %d bytes, %v in %v, %d processes", s.Memory, s.Quota, s.Period, s.Pids)
	}
	g := &Group{id: id, dir: -1}
	seq := c.seq.Add(1)
	for _, b := range c.branches {
		if err := g.grow(b, seq); err != nil {
			return nil, errors.Join(cgroupError(err, "the control group could not be made: %v", err), g.Remove())
		}
		if err := g.limit(g.at[len(g.at)-1], s); err != nil {
			return nil, errors.Join(err, g.Remove())
		}
	}
	if err := g.letLauncherIn(); err != nil {
		return nil, errors.Join(cgroupError(err, "the launcher could not be let into the control group: %v", err), g.Remove())
	}
	return g, nil
}

// grow makes the group's directory in one branch.
func (g *Group) grow(b *branch, seq uint64) error {
	fd, name, err := b.mkdir(g.id, seq)
	if err != nil {
		return err
	}
	d := ctlDir{fd: fd, sub: name + "/", path: b.base + "/" + b.name + "/" + name}
	g.at = append(g.at, groupDir{b, d})
	if !b.v2 {
		door, err := unix.Openat(fd, d.sub+"tasks", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: d.path + "/tasks", Err: err}
		}
		g.doors = append(g.doors, door)
		return nil
	}
	if g.dir, err = unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	return nil
}

// Change sets every limit again, for a group in which nothing untrusted runs yet.
func (g *Group) Change(s sandbox.Share) error {
	for _, at := range g.at {
		if err := g.limit(at, s); err != nil {
			return err
		}
	}
	return nil
}

// limit sets what the branch's controllers hold.
func (g *Group) limit(at groupDir, s sandbox.Share) error {
	for _, ctl := range at.b.controllers {
		if err := at.set(ctl, s); err != nil {
			return cgroupError(err, "the %s limit could not be set: %v", ctl, err)
		}
	}
	return nil
}

func (at groupDir) set(ctl string, s sandbox.Share) error {
	if at.b.v2 {
		return setV2(at.d, ctl, s)
	}
	return setV1(at.d, ctl, s, at.b.base)
}

// mkdir makes a directory for one group and returns the branch's descriptor
// and the name. A number keeps two runs of one name apart.
func (b *branch) mkdir(id string, seq uint64) (int, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	reopened := false
	for {
		name := "r" + strconv.FormatUint(seq, 10) + "-" + id
		err := unix.Mkdirat(b.fd, name, 0o755)
		switch {
		case err == nil:
			return b.fd, name, nil
		case err == unix.EEXIST:
			seq += 1 << 32
		case (err == unix.ENOENT || err == unix.ENODEV) && !reopened:
			reopened = true
			if err := b.open(); err != nil {
				return -1, "", err
			}
		default:
			return -1, "", &fs.PathError{Op: "mkdir", Path: b.base + "/" + b.name + "/" + name, Err: err}
		}
	}
}

// Dir is the directory to give clone3 with CLONE_INTO_CGROUP, so that a
// process is born inside; false where no controller is in version 2, or Linux
// is older than 5.7. The descriptor is the group's.
func (g *Group) Dir() (int, bool) { return g.dir, g.dir >= 0 }

// Entrances are the version 1 "tasks" files, open for writing: a process of one
// thread that writes "0" to each moves itself into the group. Where a second
// process does that for it the kernel stops all forks and waits for
// an RCU grace period: 10 ms where runs are seldom, against 0.1. The
// descriptors are the group's.
func (g *Group) Entrances() []int { return g.doors }

// ReadUsage reads what the group has used until now.
func (g *Group) ReadUsage() (Usage, error) {
	var u Usage
	var errs []error
	for _, at := range g.at {
		for _, ctl := range at.b.controllers {
			read := readV1
			if at.b.v2 {
				read = readV2
			}
			if err := read(at.d, ctl, &u); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return u, cgroupError(err, "what the run used could not be read: %v", err)
	}
	return u, nil
}

// CountsTimesAndFaults reports whether ReadUsage has the group's times and page faults.
func (g *Group) CountsTimesAndFaults() bool {
	return g.hasController(ctlCPU) && g.hasController(ctlMemory)
}

// hasController reports whether a controller is among those of the group.
func (g *Group) hasController(ctl string) bool {
	return slices.ContainsFunc(g.at, func(at groupDir) bool { return slices.Contains(at.b.controllers, ctl) })
}

// Kill kills every process in the group, those of a PID namespace within it
// too.
func (g *Group) Kill() error {
	for _, at := range g.at {
		if err := killAll(at.d); err != nil {
			return cgroupError(err, "the processes of a control group could not be killed: %v", err)
		}
	}
	return nil
}

// removeWithin is how long a group may stay busy after its last process died.
const removeWithin = 2 * time.Second

// closeWithin bounds the time for which one directory of groups may stay busy at Close.
const closeWithin = 200 * time.Millisecond

// Remove takes the group away. What is still in it is not killed, and makes
// this fail; then it may be called again.
func (g *Group) Remove() error {
	for _, fd := range append(g.doors, g.dir) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	g.doors, g.dir = nil, -1
	var errs []error
	deadline := time.Now().Add(removeWithin)
	g.at = slices.DeleteFunc(g.at, func(at groupDir) bool {
		err := at.d.remove(deadline)
		errs = append(errs, err)
		return err == nil
	})
	if err := errors.Join(errs...); err != nil {
		return cgroupError(err, "a control group could not be removed: %v", err)
	}
	return nil
}

// Close removes the directories that hold the groups, and leaves those that
// still hold some. No group of c may be used after it.
func (c *Groups) Close() {
	if c.closed.Swap(true) {
		return
	}
	for _, b := range c.branches {
		b.close()
	}
}

func (b *branch) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.v2 {
		b.handBack()
	}
	unix.Close(b.fd)
	b.fd = -1
	// The kernel may still count a group that has just been removed; one that is left is swept by the next process.
	for deadline := time.Now().Add(closeWithin); unix.Rmdir(b.base+"/"+b.name) == unix.EBUSY; {
		if time.Now().After(deadline) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// ctlDir is a group's directory: sub, with a slash at its end, below the open
// directory fd. path is for messages.
type ctlDir struct {
	fd        int
	sub, path string
}

func (d ctlDir) write(name, value string) error {
	fd, err := unix.Openat(d.fd, d.sub+name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = ignoringEINTR(func() (int, error) { return unix.Write(fd, []byte(value)) })
		unix.Close(fd)
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: d.path + "/" + name, Err: err}
	}
	return nil
}

// maxControlFile bounds what is read of one control file.
const maxControlFile = 64 << 10

func (d ctlDir) read(name string) (string, error) {
	fd, err := unix.Openat(d.fd, d.sub+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: "read", Path: d.path + "/" + name, Err: err}
	}
	defer unix.Close(fd)
	var all []byte
	buf := make([]byte, 8<<10)
	for len(all) < maxControlFile {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, buf) })
		if err != nil {
			return "", &fs.PathError{Op: "read", Path: d.path + "/" + name, Err: err}
		}
		if n == 0 {
			break
		}
		all = append(all, buf[:n]...)
	}
	return string(all), nil
}

// number reads a file that holds one.
func (d ctlDir) number(name string) (int64, error) {
	text, err := d.read(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, &fs.PathError{Op: "read", Path: d.path + "/" + name, Err: fmt.Errorf("%.40q is no number", text)}
	}
	return n, nil
}

// remove removes the directory, and tries again while it is busy: the last
// process leaves a group a moment after it was reaped.
func (d ctlDir) remove(deadline time.Time) error {
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		err := unix.Unlinkat(d.fd, strings.TrimSuffix(d.sub, "/"), unix.AT_REMOVEDIR)
		switch {
		case err == nil || err == unix.ENOENT || err == unix.ENODEV:
			return nil
		case err == unix.EINTR:
		case err != unix.EBUSY || time.Now().After(deadline):
			return &fs.PathError{Op: "rmdir", Path: d.path, Err: err}
		default:
			time.Sleep(wait)
		}
	}
}

// killAll kills what is in a group, until nothing is: by cgroup.kill where that
// is there (version 2, Linux 5.14), else one by one.
func killAll(d ctlDir) error {
	if d.write("cgroup.kill", "1") == nil {
		return nil
	}
	for range 200 {
		text, err := d.read("cgroup.procs")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		if err != nil {
			return err
		}
		pids := strings.Fields(text)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			killMember(d, pid)
		}
		time.Sleep(time.Millisecond)
	}
	return &fs.PathError{Op: "empty", Path: d.path, Err: unix.EBUSY}
}

// killMember kills a process that is in the group both before and after it was
// taken hold of, so that a number used again hits nobody else.
func killMember(d ctlDir, pid string) {
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 || n == os.Getpid() {
		return
	}
	fd, err := unix.PidfdOpen(n, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if text, err := d.read("cgroup.procs"); err == nil && slices.Contains(strings.Fields(text), pid) {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// valueOf returns the number after key in a file of "key number" lines.
func valueOf(text, key string) (int64, bool) {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, " "); ok && name == key {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}

func cgroupError(cause error, why string, args ...any) error {
	hint := ""
	if !errors.Is(cause, unix.EAGAIN) { // which here is about groups, not processes
		hint = hostlimit.FindShortage(cause)
	}
	if hint == "" {
		hint = "run `holdfast doctor`: it tries each limit and says what to do where one does not hold"
		cause = hostlimit.SeeDoctor{Cause: cause}
	}
	return &holdfast.Error{
		Kind: holdfast.KindCgroup, Why: fmt.Sprintf(why, args...), Err: cause,
		Hint: hint,
	}
}
