package process

import (
	"math"

	"golang.org/x/sys/unix"
)

// A zygote has a tape of its own beside the one of the request that it serves.
const (
	zygoteBase = tapeBase + tapeSize
	zygoteSize = 64 << 10

	// zygoteProc is its descriptor of the host's /proc, for its children's
	// identity maps; what stands behind it belongs to one request.
	zygoteProc = 4
	zygoteTape = 5 // until it is mapped
)

// Slots of a zygote's tape.
const (
	zygoteInto   = 0 // which descriptor of the request is a control group
	zygoteFD     = 1 // and on: the request's descriptors
	zygoteGot    = 20
	zygotePID    = 21
	zygotePidfd  = 22
	zygoteGroup  = 23
	zygoteTID    = 24 // where the C library keeps a thread's number
	zygoteRobust = 25 // and its list of robust mutexes
	zygoteLen    = 26
)

func zygoteSlot(n int) uint64 { return zygoteBase + 8*uint64(n) }
func runSlot(n int) uint64    { return tapeBase + 8*uint64(n) }

// zygotePlan is what a zygote does from when its interpreter is ready: for each
// request that it reads from its socket it clones an init, which goes on with
// the request's own tape, and answers with a pidfd. It ends when Holdfast hangs
// up.
//
// Request and answer are those of a launcher (launcher.run), but that the flags
// are whole and an errno is negative.
func zygotePlan() ([]byte, error) {
	r := &recorder{home: zygoteBase}
	z := newZygoteMemory(r)
	r.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
	r.call(unix.SYS_PRCTL, unix.PR_GET_TID_ADDRESS, zygoteSlot(zygoteTID))
	r.call(unix.SYS_GET_ROBUST_LIST, 0, zygoteSlot(zygoteRobust), zygoteSlot(zygoteLen))
	r.call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, r.words(uint64(math.MaxUint64)), 0, 8)
	// Linux reaps inits; an interpreter that had started so would tell of it.
	r.call(unix.SYS_RT_SIGACTION, int(unix.SIGCHLD), r.words(1, 0, 0, 0), 0, 8)
	again := r.here()
	r.put(cmsgRoom, z.request+40) // which Linux has set to what came
	r.keep(zygoteGot, unix.SYS_RECVMSG, launcherSocket, z.request, unix.MSG_CMSG_CLOEXEC)
	hungUp := r.branch(slot(zygoteGot))
	z.describe(r)
	child := r.cloneAny(zygotePID, unix.SYS_CLONE3, z.args, cloneArgsSize)
	refused := r.branch(slot(zygotePID))
	r.load(zygotePidfd, z.pidfd, 0)
	r.store(slot(zygotePidfd), z.rights+16)
	r.call(unix.SYS_SENDMSG, launcherSocket, z.cloned, unix.MSG_NOSIGNAL)
	answered := r.here()
	r.jump(0)
	r.aim(refused)
	r.store(slot(zygotePID), z.errno)
	r.call(unix.SYS_SENDMSG, launcherSocket, z.refused, unix.MSG_NOSIGNAL)
	r.aim(answered)
	r.call(unix.SYS_MUNMAP, uint64(tapeBase), tapeSize)
	r.call(unix.SYS_CLOSE_RANGE, zygoteTape, int64(math.MaxUint32), 0)
	r.jump(again)
	r.childHere(child)
	r.turn(tapeBase, slot(zygoteFD+1))
	r.aim(hungUp)
	r.end()
	b, _, err := r.assemble()
	return append(make([]byte, opsOffset), b...), err
}

var cmsgRoom = unix.CmsgSpace(4 * maxFDs)

// zygoteMemory is where a zygote keeps what it reads and writes.
type zygoteMemory struct {
	args, pidfd    ref // struct clone_args, and where it puts the pidfd
	request, fds   ref // struct msghdr, and the descriptors that come by it
	cloned, rights ref // the answer with a pidfd, and the message that holds it
	refused, errno ref // the other one
}

func newZygoteMemory(r *recorder) (z zygoteMemory) {
	z.pidfd = r.words(0)
	z.args = r.words(0, z.pidfd, 0, 0, int(unix.SIGCHLD), 0, 0, 0, 0, 0, 0)
	room := r.bytes(make([]byte, cmsgRoom))
	z.fds = room + unix.SizeofCmsghdr
	// The flags come to stand where clone3 reads them.
	z.request = r.words(0, 0, r.words(z.args, 8, zygoteSlot(zygoteInto), 8), 2, room, cmsgRoom, 0)
	z.rights = r.bytes(make([]byte, unix.CmsgSpace(4)))
	r.fill(z.rights, uint64(unix.CmsgLen(4)), unix.SOL_SOCKET|unix.SCM_RIGHTS<<32)
	z.cloned = r.words(0, 0, r.words(r.words(uint64(frameCloned)), 8), 1, z.rights, unix.CmsgSpace(4), 0)
	words := r.words(uint64(frameRefused))
	z.errno = words + 4
	z.refused = r.words(0, 0, r.words(words, 8), 1, 0, 0, 0)
	return z
}

// describe maps the request's tape and writes into it what its processes are to
// know: the numbers of its descriptors, and what the C library of the zygote
// keeps for each thread.
func (z zygoteMemory) describe(r *recorder) {
	for i := range maxFDs {
		r.load(zygoteFD+i, z.fds, i)
	}
	r.call(unix.SYS_MMAP, uint64(tapeBase), tapeSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED_NOREPLACE, slot(zygoteFD), 0)
	for i := range maxFDs {
		r.put(slot(zygoteFD+i), runSlot(slotFD+i))
	}
	r.put(zygoteProc, runSlot(slotProc))
	r.put(slot(zygoteTID), runSlot(slotTID))
	r.put(slot(zygoteRobust), runSlot(slotRobust))
	r.load(zygoteGroup, z.fds, slot(zygoteInto))
	r.put(slot(zygoteGroup), z.args+80)
}

// forked: everything by which a fork becomes a process like any other, and is
// given back to its interpreter. Its one execve is asked for and not made, so
// that Holdfast knows who it is.
func (o *order) forked(r *recorder) {
	r.stage = stageExec
	r.call(unix.SYS_SET_ROBUST_LIST, slot(slotRobust), 24)
	r.call(unix.SYS_EXECVE, 0, 0, 0)
	r.call(unix.SYS_CLOSE_RANGE, 3, int64(math.MaxUint32), unix.CLOSE_RANGE_UNSHARE)
	r.giveBack()
}

// forkClone starts a workload that is a fork of the zygote's interpreter. The
// kernel writes its number where the C library looks for it.
func (o *order) forkClone(r *recorder) int {
	r.stage = stageNamespace
	r.keep(slotSync, unix.SYS_EVENTFD2, 0, unix.EFD_CLOEXEC)
	args := r.words(unix.CLONE_FILES|unix.CLONE_CHILD_SETTID|unix.CLONE_CHILD_CLEARTID, 0, 0, 0, int(unix.SIGCHLD), 0, 0, 0, 0, 0, 0)
	r.put(slot(slotTID), args+16)
	return r.clone(slotPID, unix.SYS_CLONE3, args, cloneArgsSize)
}
