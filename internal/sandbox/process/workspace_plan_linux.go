package process

import (
	"encoding/binary"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/sandbox/process/relay"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
	"golang.org/x/sys/unix"
)

// Slots of a workspace's tape, beside those of a run.
const (
	slotWorkload = 23 // the workload's pidfd
	slotMaster   = 24 // the two ends of the sandbox's terminal
	slotSlave    = 25
)

// workspaceOrder is one workspace as its tape is made of it.
type workspaceOrder struct {
	order
	identity int    // who the workload is inside
	outside  int    // and in the launcher's namespace
	host     string // the host name
	dir      string
	program  string
	umask    int
	doors    int
	write    []string      // where Landlock lets it write
	execute  []string      // and execute
	screen   *relay.Screen // the terminal, if there is one
	terminal [3]bool       // which of the standard descriptors are it
	shared   bool          // it is in the launcher's network, which is ready
}

// spaces are the namespaces that its init is born in, beside those of the
// launcher.
func (o *workspaceOrder) spaces() uint64 {
	if o.shared {
		return namespaces &^ unix.CLONE_NEWNET
	}
	return namespaces
}

// plan is the whole tape: an init that waits for a word, then starts the
// workload and reaps whatever ends until that has.
func (o *workspaceOrder) plan() (plan, error) {
	r := &recorder{}
	o.init(r)
	status, usage := r.bytes(make([]byte, 8)), r.bytes(make([]byte, 144))
	r.stage = stageNamespace
	args := r.words(unix.CLONE_PIDFD, uint64(tapeBase+8*slotWorkload), 0, 0, int(unix.SIGCHLD), 0, 0, 0, 0, 0, 0)
	child := r.clone(slotPID, unix.SYS_CLONE3, args, cloneArgsSize)
	r.stage = stageReport
	given := []slot{slotWorkload}
	if o.screen != nil {
		given = append(given, slotMaster)
	}
	o.tell(r, frameCloned, given...)
	for _, fd := range append(given, slotStdin, slotStdout, slotStderr, slotTape) {
		r.call(unix.SYS_CLOSE, fd)
	}
	if o.screen != nil {
		r.call(unix.SYS_CLOSE, slot(slotSlave))
	}
	r.reap(slotPID, status, usage)
	r.mark(slotMarks + 7)
	o.tell(r, frameEnded)
	r.end()
	r.childHere(child)
	o.workload(r)
	b, dataAt, err := r.assemble()
	at := opsOffset + dataAt
	return plan{bytes: b, stages: r.stageList(), status: at + int(status), usage: at + int(usage)}, err
}

// init: its share, who it is, a /proc of its own processes, a name, a network
// with itself.
func (o *workspaceOrder) init(r *recorder) {
	r.stage = stageLimits
	for i := range o.doors {
		r.call(unix.SYS_WRITE, slot(slotDoors+i), r.bytes([]byte("0")), 1)
		r.call(unix.SYS_CLOSE, slot(slotDoors+i))
	}
	become(r, o.identity, o.outside)
	r.stage = stageMount
	proc, at := r.cstring("proc"), r.cstring("/proc")
	r.call(unix.SYS_MOUNT, proc, at, proc, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, r.cstring("hidepid=2"))
	attr := r.words(unix.MOUNT_ATTR_RDONLY, 0, 0, 0)
	for _, p := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"} {
		// A kernel may be built without one of them.
		there := r.cstring(p)
		r.lenient(int(unix.ENOENT), unix.SYS_MOUNT, there, there, 0, unix.MS_BIND, 0)
		r.lenient(int(unix.ENOENT), unix.SYS_MOUNT_SETATTR, unix.AT_FDCWD, there, 0, attr, 32)
	}
	r.mark(slotMarks + 2)
	r.stage = stageNamespace
	r.call(unix.SYS_SETHOSTNAME, r.bytes([]byte(o.host)), min(len(o.host), 64))
	if !o.shared {
		loopbackUp(r)
	}
	o.terminalEnds(r)
}

// loopbackUp brings the loopback of a network up that has nothing else.
func loopbackUp(r *recorder) {
	r.keep(slotFile, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	lo := make([]byte, 40) // struct ifreq
	copy(lo, "lo")
	binary.LittleEndian.PutUint16(lo[16:], unix.IFF_UP|unix.IFF_RUNNING)
	r.call(unix.SYS_IOCTL, slot(slotFile), unix.SIOCSIFFLAGS, r.bytes(lo))
	r.call(unix.SYS_CLOSE, slot(slotFile))
}

// terminalEnds makes the sandbox's own terminal, of the size and in the modes
// that the caller's has.
func (o *workspaceOrder) terminalEnds(r *recorder) {
	if o.screen == nil {
		return
	}
	r.stage = stageMount
	r.keep(slotMaster, unix.SYS_OPENAT, unix.AT_FDCWD, r.cstring("/dev/pts/ptmx"), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	r.call(unix.SYS_IOCTL, slot(slotMaster), unix.TIOCSPTLCK, r.words(0))
	r.keep(slotSlave, unix.SYS_IOCTL, slot(slotMaster), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	size := o.screen.Size
	r.call(unix.SYS_IOCTL, slot(slotMaster), unix.TIOCSWINSZ, r.words(uint64(size.Row)|uint64(size.Col)<<16|uint64(size.Xpixel)<<32|uint64(size.Ypixel)<<48))
	if m := o.screen.Modes; m != nil {
		var b []byte
		for _, f := range []uint32{m.Iflag, m.Oflag, m.Cflag, m.Lflag} {
			b = binary.LittleEndian.AppendUint32(b, f)
		}
		b = append(append(b, m.Line), m.Cc[:]...)
		r.call(unix.SYS_IOCTL, slot(slotSlave), unix.TCSETS, r.bytes(b))
	}
}

// become: who the init is in its own namespaces.
func become(r *recorder, id, outside int) {
	r.stage = stageNamespace
	r.mark(slotMarks)
	r.call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(unix.SIGKILL))
	r.call(unix.SYS_CLOSE, launcherSocket)
	r.call(unix.SYS_RT_SIGACTION, int(unix.SIGCHLD), r.words(0, 0, 0, 0), 0, 8)
	r.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)
	line := fmt.Sprintf("%d %d 1", id, outside)
	for _, f := range [][2]string{{"self/setgroups", "deny"}, {"self/uid_map", line}, {"self/gid_map", line}} {
		r.keep(slotFile, unix.SYS_OPENAT, slot(slotProc), r.cstring(f[0]), unix.O_WRONLY|unix.O_CLOEXEC)
		r.call(unix.SYS_WRITE, slot(slotFile), r.bytes([]byte(f[1])), len(f[1]))
		r.call(unix.SYS_CLOSE, slot(slotFile))
	}
	r.call(unix.SYS_CLOSE, slot(slotProc))
	r.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
	r.mark(slotMarks + 1)
}

// workload: everything that must stand before the first instruction of the
// program.
func (o *workspaceOrder) workload(r *recorder) {
	r.stage = stagePrivileges
	r.call(unix.SYS_SETSID)
	if o.screen != nil {
		r.call(unix.SYS_IOCTL, slot(slotSlave), unix.TIOCSCTTY, 0)
	}
	r.call(unix.SYS_UMASK, o.umask)
	for i, fd := range []slot{slotStdin, slotStdout, slotStderr} {
		if o.terminal[i] {
			fd = slotSlave
		}
		r.call(unix.SYS_DUP3, fd, i, 0)
	}
	r.call(unix.SYS_CLOSE_RANGE, 3, int64(1<<31-1), unix.CLOSE_RANGE_CLOEXEC)
	o.rlimits(r)
	r.call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	r.stage = stageFiles
	r.call(unix.SYS_CHDIR, r.cstring(o.dir))
	r.stage = stagePrivileges
	if o.landlockABI > 0 {
		o.lock(r)
	}
	o.drop(r)
	r.mark(slotMarks + 5)
	r.stage = stageSeccomp
	heedSignals(r)
	r.call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, r.words(0), 0, 8)
	prog := r.words(len(o.filter), r.bytes(seccomp.RawFilter(o.filter)))
	env, argv := r.vector(o.env), r.vector(o.argv)
	r.mark(slotMarks + 6)
	r.keep(slotListener, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, prog)
	o.tell(r, frameReady, slotListener)
	r.stage = stageExec
	r.call(unix.SYS_EXECVE, r.cstring(o.program), argv, env)
}

// lock is the second wall around files: what may be written is the tree and the
// scratches, what may be executed the toolbox. The network is left to its
// namespace: servers of the workspace's own listen there.
func (o *workspaceOrder) lock(r *recorder) {
	r.stage = stageLandlock
	rights, scope := landlockRights(o.landlockABI), uint64(0)
	size := 8
	if o.landlockABI >= 6 {
		scope, size = landlockScope, 24
	}
	r.keep(slotRules, unix.SYS_LANDLOCK_CREATE_RULESET, r.words(rights, 0, scope), size, 0)
	write := rights &^ uint64(unix.LANDLOCK_ACCESS_FS_EXECUTE|unix.LANDLOCK_ACCESS_FS_MAKE_CHAR|unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK)
	o.rule(r, "/", unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_READ_DIR)
	for _, p := range o.write {
		o.rule(r, p, write)
	}
	for _, p := range o.execute {
		o.rule(r, p, unix.LANDLOCK_ACCESS_FS_EXECUTE)
	}
	r.call(unix.SYS_LANDLOCK_RESTRICT_SELF, slot(slotRules), 0)
	r.call(unix.SYS_CLOSE, slot(slotRules))
	r.stage = stagePrivileges
}
