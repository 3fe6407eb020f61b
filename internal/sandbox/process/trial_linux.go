package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
)

// trial is a call that a program inside makes, and what it has to get.
type trial struct {
	wall posture.Wall
	what string // as in "WHAT succeeded"
	ask  ask
	want func(got int64) bool
}

func exactly(want int64) func(int64) bool         { return func(got int64) bool { return got == want } }
func refusedBy(errno unix.Errno) func(int64) bool { return exactly(-int64(errno)) }

// trials are made in their order by one program, whose first free descriptor is
// 3.
func trials() []trial {
	const at = unix.AT_FDCWD
	list := []trial{
		{posture.WallPID, "the program sees its number on the host", asking(unix.SYS_GETPID), exactly(seccomp.WorkloadPID)},
		{posture.WallPID, "looking at the processes of the host", asking(unix.SYS_OPENAT, at, "/proc/self", unix.O_RDONLY, 0), refusedBy(unix.ENOENT)},
		{posture.WallNet, "making a socket", asking(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0), refusedBy(unix.EACCES)},
		{posture.WallMount, "opening /etc/passwd", asking(unix.SYS_OPENAT, at, "/etc/passwd", unix.O_RDONLY, 0), refusedBy(unix.ENOENT)},
		{posture.WallMount, "making a folder in the root", asking(unix.SYS_MKDIRAT, at, "/x", 0o700), refusedBy(unix.EROFS)},
		{posture.WallMount, "writing over its own code", asking(unix.SYS_OPENAT, at, "/code/program", unix.O_WRONLY, 0), func(got int64) bool {
			return got == -int64(unix.EROFS) || got == -int64(unix.ETXTBSY) || got == -int64(unix.EACCES)
		}},
		{posture.WallUser, "being another user than the nobody of its namespace", asking(unix.SYS_GETEUID), exactly(workloadID)},
		{posture.WallRights, "gaining privileges by a program", asking(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS), exactly(1)},
		{posture.WallScratch, "writing to the scratch", asking(unix.SYS_OPENAT, at, "/tmp/a", unix.O_RDWR|unix.O_CREAT, 0o600), exactly(3)},
		{posture.WallScratch, "60 MB in it", asking(unix.SYS_FALLOCATE, 3, 0, 0, 60<<20), exactly(0)},
		{posture.WallScratch, "a second file in it", asking(unix.SYS_OPENAT, at, "/tmp/b", unix.O_RDWR|unix.O_CREAT, 0o600), exactly(4)},
		{posture.WallScratch, "120 MB in it", asking(unix.SYS_FALLOCATE, 4, 0, 0, 60<<20), refusedBy(unix.ENOSPC)},
	}
	for c := range unix.CAP_LAST_CAP + 1 {
		list = append(list, trial{posture.WallRights, fmt.Sprintf("keeping capability %d", c), asking(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, c), func(got int64) bool { return got == 0 || got == -int64(unix.EINVAL) }})
	}
	return list
}

// shown is what trying a wall showed where it holds.
func shown() map[posture.Wall]string {
	return map[posture.Wall]string{
		posture.WallPID:     "a program was the second process of a namespace of its own, and saw no other",
		posture.WallNet:     "a network namespace of its own; making a socket was refused",
		posture.WallMount:   "/etc/passwd was not there, the root and the code could not be written",
		posture.WallUTS:     "a host name of its own",
		posture.WallIPC:     "no shared memory or queues with others",
		posture.WallUser:    "an identity that owns nothing here",
		posture.WallSeccomp: "unshare ended a program and was named",
		posture.WallRights:  "no capability is left, and none can be had",
		posture.WallScratch: "60 MB fitted in, 120 MB did not",
		posture.WallMemory:  "a program that had 16 MB did not get 64",
		posture.WallCPU:     "a group of its own took half a processor as its limit, and a process entered it",
		posture.WallPids:    "a group of its own took four processes as its limit, and a process entered it",
	}
}

// trialsWithin bounds all trials together: what is cut by it says nothing about
// a wall.
const trialsWithin = 30 * time.Second

// Trials tries each wall by running small programs behind them, and by looking
// at those from outside. A wall that is known not to stand is not tried. It takes
// some tenths of a second.
func (t *Tier) Trials(ctx context.Context) []Trial {
	ctx, cancel := context.WithTimeout(ctx, trialsWithin)
	defer cancel()
	x := &examination{t: t, ctx: ctx, broken: map[posture.Wall]string{}}
	for _, try := range []func() error{x.inside, x.outside, x.seccomp, x.memory} {
		if err := try(); err != nil {
			return []Trial{unusable(err)}
		}
	}
	return x.found()
}

// unusable is the one finding where nothing can be run at all.
func unusable(err error) Trial {
	f := Trial{Known: true, Why: "no code can be run here: " + err.Error(), Hint: adviceFor(err)}
	if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		f.Why = "no code can be run here: " + e.Why
	}
	return f
}

type examination struct {
	t      *Tier
	ctx    context.Context
	broken map[posture.Wall]string
}

func (x *examination) fail(w posture.Wall, why string, args ...any) {
	if x.broken[w] == "" {
		x.broken[w] = fmt.Sprintf(why, args...)
	}
}

func (x *examination) run(memory int64, asks ...ask) (*posture.Result, error) {
	res, err := x.t.Run(x.ctx, sandbox.Spec{ID: "doctor", Language: sandbox.Static, Code: probe(asks...), Timeout: sandbox.DefaultTimeout, MemoryMB: memory, Need: []posture.Wall{posture.WallPID}})
	if err == nil && (res.Reason == posture.ReasonHalt || res.Reason == posture.ReasonWall) {
		err = errors.New("trying the walls takes too long here, and showed nothing")
	}
	return res, err
}

func (x *examination) inside() error {
	list := trials()
	var asks []ask
	for _, tr := range list {
		asks = append(asks, tr.ask)
	}
	res, err := x.run(0, asks...)
	if err != nil {
		return err
	}
	if res.State != posture.Completed || res.ExitCode != 0 {
		return fmt.Errorf("a program that does nothing unusual ended as %s, exit code %d (%s)", res.State, res.ExitCode, res.Err)
	}
	for i, got := range answers(res.Stdout, len(list)) {
		if !list[i].want(got) {
			x.fail(list[i].wall, "%s: the answer was %s", list[i].what, answerWords(got))
		}
	}
	return nil
}

func answerWords(got int64) string {
	if got < 0 && got > noAnswer {
		return unix.ErrnoName(unix.Errno(-got))
	}
	return strconv.FormatInt(got, 10)
}

// outside looks at a process that waits behind its walls for a request.
func (x *examination) outside() error {
	l, err := x.t.language(x.ctx, sandbox.Static)
	if err != nil {
		return err
	}
	z, err := x.t.launcher(x.ctx, l)
	if err != nil {
		return err
	}
	s, err := x.t.take(z)
	if err != nil {
		return err
	}
	defer s.free()
	pid, err := s.pid()
	if err != nil {
		return err
	}
	for w, ns := range map[posture.Wall]string{posture.WallPID: "pid", posture.WallNet: "net", posture.WallMount: "mnt", posture.WallUTS: "uts", posture.WallIPC: "ipc", posture.WallUser: "user"} {
		ours, err := os.Readlink("/proc/self/ns/" + ns)
		theirs, err2 := os.Readlink(filepath.Join("/proc", pid, "ns", ns))
		if err := errors.Join(err, err2); err != nil {
			x.fail(w, "its namespace cannot be seen: %v", err)
		} else if ours == theirs {
			x.fail(w, "it has the namespace of this process (%s)", ours)
		}
	}
	x.owner(pid)
	return nil
}

// owner: which user the sandbox is on the host.
func (x *examination) owner(pid string) {
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join("/proc", pid), &st); err != nil {
		x.fail(posture.WallUser, "its owner cannot be seen: %v", err)
	} else if st.Uid == 0 {
		x.fail(posture.WallUser, "it is root on the host")
	}
}

// pid is the number of the seat's init on the host.
func (s *seat) pid() (string, error) {
	b, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(s.init))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Pid:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", errors.New("a pidfd does not say whose it is")
}

func (x *examination) seccomp() error {
	res, err := x.run(0, asking(unix.SYS_UNSHARE, unix.CLONE_NEWUSER))
	if err != nil {
		return err
	}
	switch {
	case res.State != posture.SyscallBlocked:
		x.fail(posture.WallSeccomp, "a program that called unshare ended as %s, exit code %d", res.State, res.ExitCode)
	case res.Call == nil || res.Call.Name != "unshare":
		x.fail(posture.WallSeccomp, "the call was stopped and not named")
	}
	return nil
}

func (x *examination) memory() error {
	if !slices.Contains(x.t.Posture().Up, posture.WallMemory) {
		return nil
	}
	const private = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE
	res, err := x.run(16, asking(unix.SYS_MMAP, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, private, -1, 0))
	if err != nil {
		return err
	}
	// Populating is done as far as there is room; the program may be told no
	// rather than killed. What counts is how much it got.
	if res.State != posture.OOM && res.ExitCode != posture.ExitLimit && res.MemoryPeak > 24<<20 {
		x.fail(posture.WallMemory, "a program that had 16 MB got %d, and ended as %s, exit code %d", res.MemoryPeak>>20, res.State, res.ExitCode)
	}
	return nil
}

// found is the findings, wall by wall.
func (x *examination) found() []Trial {
	p, lacks, words := x.t.Posture(), x.t.listLacks(), shown()
	words[posture.WallLandlock] = fmt.Sprintf("version %d holds files a second time", x.t.abi)
	var list []Trial
	for _, w := range posture.Walls() {
		f := Trial{Wall: w, Holds: true, Why: words[w]}
		switch {
		case !slices.Contains(p.Up, w):
			f.Holds, f.Known = false, true
			l := lacks[w]
			f.Why, f.Hint = l.Why, adviceAbout(w)
			if l.Advice != "" {
				f.Hint = l.Advice + "; " + f.Hint
			}
			if less := p.Instead[w]; less != "" {
				f.Why += ". Where a contract takes that, it is bounded " + less
			}
		case x.broken[w] != "":
			f.Holds, f.Why, f.Hint = false, x.broken[w], "run no code here, and report it"
		}
		list = append(list, f)
	}
	return list
}
