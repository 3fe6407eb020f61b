package process

import (
	"fmt"
	"path"
	"sort"

	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
	"golang.org/x/sys/unix"
)

// Slots of a run's tape.
const (
	slotProc     = 0 // the launcher's descriptor of /proc
	slotFD       = 1 // the descriptors of the request, in their order
	slotTape     = 1
	slotControl  = 2
	slotStdin    = 3
	slotStdout   = 4
	slotStderr   = 5
	slotDoors    = 6 // and on: entrances of control groups
	slotScratch  = 16
	slotSync     = 17
	slotListener = 18
	slotPID      = 19
	slotFile     = 20
	slotRules    = 21
	slotNext     = 22 // the operation at which a request begins
	slotTID      = 26 // of a fork: where its C library keeps its number
	slotRobust   = 27 // and its list of robust mutexes
	slotMarks    = 32 // and on: when each stage was done
)

const workloadID = 65534

// What the kernel calls these; x/sys has no names for them.
const (
	securebitsLocked = 0x2f // NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each with its lock, but KEEP_CAPS off
	capLast          = 63   // one above what any kernel has; EINVAL ends the dropping
)

// order is one run as the tier understands it: checked, with every default in
// its place.
type order struct {
	id          string
	argv        []string
	env         []string
	given       bool // some of env came with the request
	code        []byte
	codeName    string
	files       map[string][]byte
	filter      []unix.SockFilter
	limits      []rlimit
	gauged      bool
	landlockABI int
	static      bool
	fork        bool // the workload is a fork of an interpreter, and keeps its signals
}

type rlimit struct {
	resource int
	value    uint64
}

// plan is a part of a tape, and where its answers will stand.
type plan struct {
	base          int // its first operation
	bytes         []byte
	stages        []stage
	status, usage int // offsets in the tape
}

func finish(r *recorder) (plan, error) {
	b, _, err := r.assemble()
	return plan{base: r.base, bytes: b, stages: r.stageList()}, err
}

// seatPlan is what every run of a launcher begins with: an init in namespaces of
// its own, with a scratch, that waits for a request.
//
// The init enters its control groups by itself, as the first thing: where a
// second process moves it, Linux waits for a grace period.
func seatPlan(scratch, inodes int64, doors int) (plan, error) {
	r := &recorder{}
	r.stage = stageLimits
	for i := range doors {
		r.call(unix.SYS_WRITE, slot(slotDoors+i), r.bytes([]byte("0")), 1)
		r.call(unix.SYS_CLOSE, slot(slotDoors+i))
	}
	identity(r)
	r.stage = stageMount
	mount(r, "/tmp", scratch, inodes, unix.MS_NOEXEC)
	r.mark(slotMarks + 2)
	r.stage = stageReport
	r.call(unix.SYS_READ, slot(slotControl), r.bytes(make([]byte, 8)), 8)
	r.jump(slot(slotNext))
	return finish(r)
}

// plan is the rest, for one request. It stands from operation base on.
func (o *order) plan(base int) (plan, error) {
	r := &recorder{base: base}
	o.named(r)
	o.program(r)
	o.scratch(r)
	o.bring(r)
	r.mark(slotMarks + 4)
	status, usage := r.bytes(make([]byte, 8)), r.bytes(make([]byte, 144))
	child := o.workloadClone(r)
	o.initRest(r, status, usage)
	r.childHere(child)
	o.workload(r)
	b, dataAt, err := r.assemble()
	at := opAt(base) + dataAt
	return plan{base: base, bytes: b, stages: r.stageList(), status: at + int(status), usage: at + int(usage)}, err
}

// identity: who the init is in its own namespaces.
func identity(r *recorder) {
	r.stage = stageNamespace
	r.mark(slotMarks)
	r.call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(unix.SIGKILL))
	r.call(unix.SYS_CLOSE, launcherSocket)
	r.call(unix.SYS_RT_SIGACTION, int(unix.SIGCHLD), r.words(0, 0, 0, 0), 0, 8)
	r.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)
	id := fmt.Sprintf("%d %d 1", workloadID, workloadID)
	for _, f := range [][2]string{{"self/setgroups", "deny"}, {"self/uid_map", id}, {"self/gid_map", id}} {
		r.keep(slotFile, unix.SYS_OPENAT, slot(slotProc), r.cstring(f[0]), unix.O_WRONLY|unix.O_CLOEXEC)
		r.call(unix.SYS_WRITE, slot(slotFile), r.bytes([]byte(f[1])), len(f[1]))
		r.call(unix.SYS_CLOSE, slot(slotFile))
	}
	r.call(unix.SYS_CLOSE, slot(slotProc))
	r.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
	r.mark(slotMarks + 1)
}

const scratchFlags = unix.MS_NOSUID | unix.MS_NODEV

func mount(r *recorder, dir string, size, inodes int64, flags int) {
	data := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700", size, inodes)
	fs := r.cstring("tmpfs")
	r.call(unix.SYS_MOUNT, fs, r.cstring(dir), fs, scratchFlags|flags, r.cstring(data))
}

// named: the request's name is its host's.
func (o *order) named(r *recorder) {
	r.stage = stageNamespace
	r.mark(slotMarks + 3)
	host := "sandbox_" + o.id
	r.call(unix.SYS_SETHOSTNAME, r.bytes([]byte(host)), min(len(host), 64))
}

// scratch is where the workload begins, and what is brought out of it.
func (o *order) scratch(r *recorder) {
	r.stage = stageFiles
	r.call(unix.SYS_CHDIR, r.cstring("/tmp"))
	r.keep(slotScratch, unix.SYS_OPENAT, unix.AT_FDCWD, r.cstring("."), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
}

// bring: the files that came with the code.
func (o *order) bring(r *recorder) {
	r.stage = stageFiles
	made := map[string]bool{".": true}
	for _, name := range sorted(o.files) {
		o.folders(r, made, path.Dir(name))
		o.write(r, name, o.files[name])
	}
}

// program puts the code where it can be read, and run only where it is itself
// the program.
func (o *order) program(r *recorder) {
	r.stage = stageMount
	mount(r, "/code", o.codeRoom(), 8, o.codeFlags())
	r.stage = stageFiles
	o.codeFile(r)
	r.stage = stageMount
	r.call(unix.SYS_MOUNT, 0, r.cstring("/code"), 0, unix.MS_REMOUNT|unix.MS_RDONLY|scratchFlags|o.codeFlags(), 0)
}

func (o *order) codeRoom() int64 { return int64(len(o.code)) + 1<<16 }

func (o *order) codeFlags() int {
	if o.static {
		return 0
	}
	return unix.MS_NOEXEC
}

func (o *order) codeFile(r *recorder) {
	o.write(r, "/code/"+o.codeName, o.code)
	if o.static {
		r.call(unix.SYS_FCHMODAT, unix.AT_FDCWD, r.cstring("/code/"+o.codeName), 0o500)
	}
}

func (o *order) folders(r *recorder, made map[string]bool, dir string) {
	if made[dir] {
		return
	}
	o.folders(r, made, path.Dir(dir))
	made[dir] = true
	r.call(unix.SYS_MKDIRAT, unix.AT_FDCWD, r.cstring(dir), 0o700)
}

func (o *order) write(r *recorder, name string, b []byte) {
	r.keep(slotFile, unix.SYS_OPENAT, unix.AT_FDCWD, r.cstring(name), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if len(b) > 0 {
		r.call(unix.SYS_WRITE, slot(slotFile), r.bytes(b), len(b))
	}
	r.call(unix.SYS_CLOSE, slot(slotFile))
}

// workloadClone starts the workload. It shares the init's descriptors until it
// executes the interpreter, so that the init can pass the listener on.
func (o *order) workloadClone(r *recorder) int {
	r.stage = stageNamespace
	r.keep(slotSync, unix.SYS_EVENTFD2, 0, unix.EFD_CLOEXEC)
	args := r.words(unix.CLONE_FILES, 0, 0, 0, int(unix.SIGCHLD), 0, 0, 0, 0, 0, 0)
	return r.clone(slotPID, unix.SYS_CLONE3, args, cloneArgsSize)
}

// initRest: hand the listener over, wait for the end, and go.
func (o *order) initRest(r *recorder, status, usage ref) {
	o.presents(r)
	o.follows(r, status, usage)
}

// presents: hand the listener over when the walls stand.
func (o *order) presents(r *recorder) {
	r.stage = stageReport
	r.call(unix.SYS_READ, slot(slotSync), r.bytes(make([]byte, 8)), 8)
	o.tell(r, frameReady, slotListener, slotScratch)
	for _, fd := range []slot{slotListener, slotScratch, slotStdin, slotStdout, slotStderr, slotTape} {
		r.call(unix.SYS_CLOSE, fd)
	}
}

// follows: wait for the end, and go.
func (o *order) follows(r *recorder, status, usage ref) {
	r.stage = stageReport
	r.reap(slotPID, status, usage)
	r.mark(slotMarks + 7)
	o.tell(r, frameEnded)
	r.end()
}

// tell sends a frame, with descriptors, on the control socket.
func (o *order) tell(r *recorder, frame uint32, fds ...slot) {
	var control any = 0
	size := 0
	if len(fds) > 0 {
		size = unix.CmsgSpace(4 * len(fds))
		msg := r.bytes(make([]byte, size))
		r.fill(msg, uint64(unix.CmsgLen(4*len(fds))), unix.SOL_SOCKET|unix.SCM_RIGHTS<<32)
		for i, fd := range fds {
			r.store(fd, msg+ref(16+4*i))
		}
		control = msg
	}
	vec := r.words(r.words(uint64(frame)), 8)
	r.call(unix.SYS_SENDMSG, slot(slotControl), r.words(0, 0, vec, 1, control, size, 0), unix.MSG_NOSIGNAL)
}

// workload: everything that must stand before the first instruction of the
// interpreter.
func (o *order) workload(r *recorder) {
	o.walls(r)
	o.start(r)
}

// heedSignals sets every signal to what Linux does with it by itself, the two
// that the C library keeps for its own among them: what whoever started Holdfast
// ignores, as nohup does, nothing behind the walls is to ignore.
func heedSignals(r *recorder) {
	act := r.words(0, 0, 0, 0)
	for sig := 1; sig <= 64; sig++ {
		if sig != int(unix.SIGKILL) && sig != int(unix.SIGSTOP) {
			r.call(unix.SYS_RT_SIGACTION, sig, act, 0, 8)
		}
	}
}

func (o *order) walls(r *recorder) {
	r.stage = stagePrivileges
	r.call(unix.SYS_SETSID)
	r.call(unix.SYS_UMASK, 0o077)
	// Its input is the root's own /dev/null: the supervisor's lies on a mount of
	// the host, where its times could be set.
	r.keep(slotFile, unix.SYS_OPENAT, unix.AT_FDCWD, r.cstring("/dev/null"), unix.O_RDONLY|unix.O_CLOEXEC)
	for i, fd := range []slot{slotFile, slotStdout, slotStderr} {
		r.call(unix.SYS_DUP3, fd, i, 0)
	}
	r.call(unix.SYS_CLOSE_RANGE, 3, int64(1<<31-1), unix.CLOSE_RANGE_CLOEXEC)
	o.rlimits(r)
	r.call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	if o.landlockABI > 0 {
		o.lock(r)
	}
	o.drop(r)
	r.mark(slotMarks + 5)
	r.stage = stageSeccomp
	if !o.fork {
		heedSignals(r)
	}
	r.call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, r.words(0), 0, 8)
	if o.fork {
		r.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1) // as one is after an execve
	}
	prog := r.words(len(o.filter), r.bytes(seccomp.RawFilter(o.filter)))
	r.mark(slotMarks + 6)
	r.keep(slotListener, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, prog)
	r.call(unix.SYS_WRITE, slot(slotSync), r.words(1), 8)
}

// start is the one execve.
func (o *order) start(r *recorder) {
	r.stage = stageExec
	env, argv := r.vector(o.env), r.vector(o.argv)
	r.call(unix.SYS_EXECVE, r.cstring(o.argv[0]), argv, env)
}

func (o *order) rlimits(r *recorder) {
	for _, l := range o.limits {
		r.call(unix.SYS_PRLIMIT64, 0, l.resource, r.words(l.value, l.value), 0)
	}
}

// drop takes every capability away for good.
func (o *order) drop(r *recorder) {
	for c := range capLast {
		r.lenient(int(unix.EINVAL), unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c)
	}
	r.call(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, securebitsLocked)
	r.call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL)
	r.call(unix.SYS_CAPSET, r.words(uint64(unix.LINUX_CAPABILITY_VERSION_3)), r.bytes(make([]byte, 24)))
}

func sorted(files map[string][]byte) []string {
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
