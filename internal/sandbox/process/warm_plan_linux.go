package process

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Slots and marks of a workload that waits, beside those of every run.
const (
	slotGo   = 23 // the init's end of the FIFO
	slotWait = 24 // the workload's, where it waits before its execve
	slotExec = 25 // where it then goes on
	markPark = 8
)

// park is the part of a tape by which a workload comes to wait behind all its
// walls. Its init says so (frameParked) and waits for the request.
func (o *order) park(base int, w parking) (plan, error) {
	r := &recorder{base: base}
	r.stage = stageMount
	r.mark(slotMarks + markPark)
	mount(r, "/code", sandbox.MaxCode+1<<16, 8, o.codeFlags())
	r.stage = stageFiles
	r.call(unix.SYS_MKNODAT, unix.AT_FDCWD, r.cstring(w.fifo), unix.S_IFIFO|0o600, 0)
	o.scratch(r)
	for _, name := range sorted(w.files) {
		o.write(r, name, w.files[name])
	}
	child := w.clone(o, r)
	o.presents(r)
	r.call(unix.SYS_CLOSE, slot(slotSync))
	r.keep(slotGo, unix.SYS_OPENAT, unix.AT_FDCWD, r.cstring(w.fifo), unix.O_WRONLY|unix.O_CLOEXEC)
	o.tell(r, frameParked)
	r.call(unix.SYS_READ, slot(slotControl), r.bytes(make([]byte, 8)), 8)
	r.jump(slot(slotNext))
	r.childHere(child)
	o.walls(r)
	switch {
	case w.forks:
		o.forked(r)
	case w.early:
		r.keep(slotWait, unix.SYS_OPENAT, unix.AT_FDCWD, r.cstring(w.fifo), unix.O_RDONLY|unix.O_CLOEXEC)
		r.call(unix.SYS_READ, slot(slotWait), r.bytes(make([]byte, 8)), 8)
		r.jump(slot(slotExec))
	default:
		o.start(r)
	}
	return finish(r)
}

// clone starts the workload that will wait.
func (w parking) clone(o *order, r *recorder) int {
	if w.forks {
		return o.forkClone(r)
	}
	return o.workloadClone(r)
}

// release is the part that brings a request to a workload that waits: its name,
// its code, its files, its time; and how its end is told. exec is the operation
// at which one that waits before its execve goes on.
func (o *order) release(base int, w parking) (p plan, exec int, err error) {
	r := &recorder{base: base}
	o.named(r)
	r.stage = stageFiles
	r.call(unix.SYS_UNLINKAT, unix.AT_FDCWD, r.cstring(w.fifo), 0)
	for _, name := range sorted(w.files) {
		r.call(unix.SYS_UNLINKAT, unix.AT_FDCWD, r.cstring("/tmp/"+name), 0)
	}
	o.codeFile(r)
	r.stage = stageMount
	// Of a file system that has an open file without a name, such as the FIFO,
	// Linux makes only the mount read-only; there is no other of it.
	r.call(unix.SYS_MOUNT, 0, r.cstring("/code"), 0, unix.MS_REMOUNT|scratchFlags|o.codeFlags(), r.cstring(fmt.Sprintf("size=%d", o.codeRoom())))
	r.call(unix.SYS_MOUNT, 0, r.cstring("/code"), 0, unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|scratchFlags|o.codeFlags(), 0)
	o.bring(r)
	r.stage = stageLimits
	for _, l := range o.limits {
		if l.resource != unix.RLIMIT_DATA && l.resource != unix.RLIMIT_CPU {
			continue // all others are the same for every request
		}
		r.call(unix.SYS_PRLIMIT64, slot(slotPID), l.resource, r.words(l.value, l.value), 0)
	}
	r.mark(slotMarks + 4)
	r.stage = stageReport
	if w.words != nil {
		if b := w.words(o); len(b) > 0 {
			r.call(unix.SYS_WRITE, slot(slotGo), r.bytes(b), len(b))
		}
	}
	r.call(unix.SYS_CLOSE, slot(slotGo))
	status, usage := r.bytes(make([]byte, 8)), r.bytes(make([]byte, 144))
	o.follows(r, status, usage)
	exec = base + len(r.ops)/opWords
	if w.early {
		o.start(r)
	}
	b, dataAt, err := r.assemble()
	at := opAt(base) + dataAt
	return plan{base: base, bytes: b, stages: r.stageList(), status: at + int(status), usage: at + int(usage)}, exec, err
}

// after is the first operation behind a plan.
func (p plan) after() int { return nextOp(opAt(p.base) + len(p.bytes) - opsOffset) }
