package process

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/bystander"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/cgroup"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/grant"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/relay"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/workroot"
)

// Workspaces runs whole programs on work trees. It is safe for use by many at
// once.
type Workspaces struct {
	groups *cgroup.Groups
	abi    int
	listed bool // networks do without nf_tables
}

// OpenWorkspaces looks for control groups. The caller closes it.
func OpenWorkspaces() *Workspaces {
	g := cgroup.Find("/proc", hostUser)
	g.Sweep()
	return &Workspaces{groups: g, abi: min(landlockABI(), 7)}
}

// Close gives the control groups back.
func (w *Workspaces) Close() error {
	w.groups.Close()
	return nil
}

// asTier returns a tier with the walls of workspaces.
func (w *Workspaces) asTier() *Tier { return &Tier{groups: w.groups, abi: w.abi} }

// Posture is which walls stand here (D20).
func (w *Workspaces) Posture() posture.Posture {
	p := w.asTier().Posture()
	p.Instead = nil
	if p.Down[posture.WallPids] != "" {
		p.Instead = map[posture.Wall]string{posture.WallPids: "not by a control group: RLIMIT_NPROC in a user namespace of its own bounds processes and threads"}
	}
	return p
}

// RunConnected runs the program of spec until it ends, with the caller's own standard
// descriptors relayed. A nil error means that it ran, whatever came of it; else
// nothing of it has run. ctx ends it immediately, and everything that it started. hand
// takes the sockets of its network, if it has one.
//
// spec was checked by sandbox.CheckWorkspace; Argv[0] is where FindProgram found
// it.
func (w *Workspaces) RunConnected(ctx context.Context, spec sandbox.Workspace, std sandbox.Streams, hand Hand) (*posture.Result, error) {
	start := time.Now()
	posture := w.Posture()
	if missing := posture.Missing(spec.Need); len(missing) > 0 {
		return nil, w.asTier().short("run/*", posture, missing)
	}
	if err := ctx.Err(); err != nil {
		return nil, failed(holdfast.KindSpawn, "start: it was stopped before", err)
	}
	s, err := w.raise(ctx, spec, std, hand)
	if err != nil {
		return nil, err
	}
	defer s.free()
	res := s.attend(ctx, spec.Timeout)
	said := append(s.watcher.Close(), s.absent.Clear()...)
	slices.Sort(said) // a place that was made again and again is named once
	for _, line := range append(slices.Compact(said), s.trees[0].FindNested(start)...) {
		res.Stderr = append(res.Stderr, line+"\n"...)
	}
	posture.Network = s.reach
	res.Posture = posture
	res.Start, res.End = start, time.Now()
	res.WallTime = res.End.Sub(start)
	return res, nil
}

// workspace is one run of a program on a tree.
type workspace struct {
	*run
	z       *launcherConn
	relay   *relay.Relay
	trees   []grant.Tree
	absent  grant.Absent
	watcher *grant.Watcher
	reach   posture.Reach
	window  time.Time // when the count of refusals began anew
	burst   int
}

// raise builds the walls, and returns when the program has its first word.
func (w *Workspaces) raise(ctx context.Context, spec sandbox.Workspace, std sandbox.Streams, hand Hand) (_ *workspace, err error) {
	s := &workspace{run: &run{seat: &seat{tapeFD: -1, init: -1, troubles: &troubles{}}, spec: sandbox.Spec{ID: spec.ID}, fs: -1, workload: -1}}
	defer func() {
		if err != nil {
			if s.watcher != nil {
				s.watcher.Close()
			}
			s.free()
		}
	}()
	o, root, err := w.order(spec)
	if err != nil {
		return nil, err
	}
	s.trees, s.absent = root.Trees, grant.FindMissing(root.Trees)
	if s.z, err = startWorkspace(root); err != nil {
		return nil, err
	}
	if err := w.groups.Admit(s.z.cmd.Process.Pid); err != nil {
		return nil, failed(holdfast.KindCgroup, "let its launcher into its group", err)
	}
	if w.groups.Mode() != "none" {
		share := sandbox.Share{Memory: spec.MemoryMB << 20, Period: sandbox.DefaultPeriod,
			Quota: time.Duration(spec.Processors) * sandbox.DefaultPeriod, Pids: spec.Processes}
		if s.group, err = w.groups.Create("run", share); err != nil {
			return nil, err
		}
	}
	if s.relay, err = relay.New(std, hostUser); err != nil {
		return nil, failed(holdfast.KindSpawn, "make its input and output", err)
	}
	o.screen, o.terminal = s.relay.Screen()
	if s.watcher, err = s.absent.Watch(func() { s.end(posture.ReasonHalt, nil) }); err != nil {
		return nil, failed(holdfast.KindMount, "hold the repository", err)
	}
	if s.reach, err = s.handOver(ctx, spec.Network, hand); err != nil {
		return nil, err
	}
	if err := s.begin(o); err != nil {
		return nil, err
	}
	return s, s.ready()
}

// order turns a request into what the root and the tape are made of.
func (w *Workspaces) order(spec sandbox.Workspace) (_ *workspaceOrder, _ *workroot.Root, err error) {
	trees, err := grant.Open(spec.Tree)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			grant.Close(trees)
		}
	}()
	filter, err := seccomp.WorkspaceProfile(spec.ExecTree).Compile()
	if err != nil {
		return nil, nil, failed(holdfast.KindSeccomp, "compile its filter", err)
	}
	own, err := trees[0].ReadInfo()
	if err != nil {
		return nil, nil, grant.NewError(spec.Tree, err)
	}
	root := &workroot.Root{Root: os.Geteuid() == 0, ID: os.Geteuid(), Home: sandbox.WorkspaceHome,
		Shell: spec.Environment["SHELL"], Host: "workspace",
		Toolbox: spec.Toolbox, Trees: trees, Exec: spec.ExecTree, Network: spec.Network, Listed: w.listed}
	if root.Root {
		if root.ID = int(own.Sys().(*syscall.Stat_t).Uid); root.ID == 0 || root.ID == workloadID {
			root.ID = ordinaryUser
		}
		root.Owner = workloadID
	}
	o := &workspaceOrder{
		order:    order{argv: append([]string{spec.Name}, spec.Argv[1:]...), filter: filter, landlockABI: w.abi, limits: w.limits(spec)},
		identity: root.ID, outside: root.Owner, host: root.Host, dir: spec.Dir, program: spec.Argv[0], umask: umask(), shared: spec.Network != nil,
		write:   []string{"/tmp", sandbox.WorkspaceHome, "/dev", "/proc"},
		execute: append(slices.Clone(workroot.SystemDirs), spec.Toolbox...),
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Environment)) {
		o.env = append(o.env, name+"="+spec.Environment[name])
	}
	for _, t := range trees {
		o.write = append(o.write, t.Path)
	}
	if spec.ExecTree {
		o.execute = append(o.execute, o.write...)
	}
	o.execute = slices.DeleteFunc(o.execute, func(p string) bool { _, err := os.Stat(p); return err != nil && p != sandbox.WorkspaceHome })
	return o, root, nil
}

// ordinaryUser is who the workload is inside where root owns the tree.
const ordinaryUser = 1000

// umask is the caller's: it is the tree's owner's habit.
func umask() int {
	mask := unix.Umask(0o022)
	unix.Umask(mask)
	return mask
}

// limits are what one process may take; the control group holds all of them
// together, and where none bounds their number a limit of their user does.
func (w *Workspaces) limits(spec sandbox.Workspace) []rlimit {
	list := []rlimit{{unix.RLIMIT_CORE, 1}, atMost(unix.RLIMIT_NOFILE, workspaceFiles), {unix.RLIMIT_MSGQUEUE, 0}}
	if up, _ := w.groups.Walls(); !slices.Contains(up, posture.WallPids) {
		list = append(list, atMost(unix.RLIMIT_NPROC, uint64(spec.Processes)))
	}
	return list
}

// workspaceFiles is how many descriptors a process may have.
const workspaceFiles = 65536

// startWorkspace starts the launcher that builds the root.
func startWorkspace(root *workroot.Root) (*launcherConn, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, failed(holdfast.KindSpawn, "make a socket", err)
	}
	extra := []*os.File{theirs}
	defer func() { closeFiles(extra) }()
	spec, err := specFile(root)
	if err == nil {
		extra = append(extra, spec)
		for _, t := range root.Trees {
			if !root.Root {
				break
			}
			var f *os.File
			if f, err = t.Mount(root.Exec, renamed); err != nil {
				break
			}
			extra = append(extra, f)
		}
	}
	if err != nil {
		ours.Close()
		return nil, err
	}
	z := &launcherConn{conn: ours, done: make(chan struct{}), seats: make(chan *seat), within: cloneWithin}
	exe, err := os.Executable()
	if err != nil {
		ours.Close()
		return nil, failed(holdfast.KindSpawn, "find its own program", err)
	}
	z.cmd = exec.Command(exe)
	z.cmd.Args = []string{workspaceLauncher}
	z.cmd.Env = []string{"GOMAXPROCS=1"}
	z.cmd.Stderr = &z.stderr
	z.cmd.ExtraFiles = extra
	z.cmd.SysProcAttr = workspaceAttr(root.Root)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread's end would be the launcher's
		started <- z.cmd.Start()
		z.cmd.Wait()
		close(z.done)
	}()
	if err := <-started; err != nil {
		ours.Close()
		return nil, failed(holdfast.KindNamespace, "start its launcher", err)
	}
	return z, nil
}

func workspaceAttr(root bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET}
	// A session of its own: the terminal's signals are for its relay.
	attr.Setsid = true
	if root {
		asRoot(attr)
		return attr
	}
	// Root of a namespace of its own, without which there is no terminal.
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	return attr
}

func specFile(root *workroot.Root) (*os.File, error) {
	b, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("root", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, failed(holdfast.KindSpawn, "get memory for its order", err)
	}
	f := os.NewFile(uintptr(fd), "root")
	if _, err = f.Write(b); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, failed(holdfast.KindSpawn, "get memory for its order", err)
	}
	return f, nil
}

// begin writes the tape and lets the launcher clone the init.
func (s *workspace) begin(o *workspaceOrder) (err error) {
	var doors []int
	if s.group != nil {
		doors = s.group.Entrances()
	}
	o.doors = len(doors)
	if s.plan, err = o.plan(); err != nil {
		return failed(holdfast.KindSpawn, "write down what to do", err)
	}
	if err := s.mapTape(); err != nil {
		return err
	}
	copy(s.tape[opsOffset:], s.plan.bytes)
	ctl, end, err := socketPair()
	if err != nil {
		return failed(holdfast.KindSpawn, "make a socket", err)
	}
	s.ctl = ctl
	defer end.Close()
	fds := append([]int{s.tapeFD, int(end.Fd())}, numbers(s.relay.InnerFiles())...)
	fds = append(fds, doors...)
	into := 0
	if dir, ok := s.birthplace(); ok {
		into, fds = len(fds), append(fds, dir)
	}
	s.init, err = s.z.clone(o.spaces(), into, fds)
	s.relay.CloseInner()
	if err != nil {
		return failed(holdfast.KindMount, "build its root", err)
	}
	return nil
}

// mapTape maps the tape.
func (s *seat) mapTape() (err error) {
	if s.tapeFD, err = unix.MemfdCreate("tape", unix.MFD_CLOEXEC); err == nil {
		if err = unix.Ftruncate(s.tapeFD, tapeSize); err == nil {
			s.tape, err = unix.Mmap(s.tapeFD, 0, tapeSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
	}
	if err != nil {
		return failed(holdfast.KindSpawn, "get memory for the run", err)
	}
	return nil
}

// ready waits for the two words by which the walls stand: the init's, with the
// workload and its terminal, and the workload's, with the filter's listener.
func (s *workspace) ready() error {
	s.ctl.SetReadDeadline(time.Now().Add(10 * time.Second))
	defer s.ctl.SetReadDeadline(time.Time{})
	for s.workload < 0 || s.asks == nil {
		f, fds, err := receive(s.ctl)
		if err != nil {
			closeAll(fds)
			return failed(holdfast.KindSpawn, "start: its first process ended without a word", err)
		}
		switch {
		case f.kind == frameCloned && (len(fds) == 1 || len(fds) == 2) && s.workload < 0:
			s.mu.Lock()
			s.workload = fds[0]
			s.mu.Unlock()
			if len(fds) == 2 {
				if err := s.relay.AttachTerminal(fds[1]); err != nil {
					return failed(holdfast.KindSpawn, "open its terminal", err)
				}
			}
		case f.kind == frameReady && len(fds) == 1 && s.asks == nil:
			if s.asks, err = newListener(fds[0]); err != nil {
				return failed(holdfast.KindSeccomp, "listen to the filter", err)
			}
		default:
			closeAll(fds)
			return s.failure(f)
		}
	}
	return nil
}

// attend waits for the end of the program, or brings it.
func (s *workspace) attend(ctx context.Context, timeout time.Duration) *posture.Result {
	s.watch.Add(1)
	go s.answerAll()
	s.relay.Start(s.signal)
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() { s.end(posture.ReasonWall, nil) })
		defer timer.Stop()
	}
	stop := context.AfterFunc(ctx, func() { s.end(posture.ReasonHalt, nil) })
	defer stop()
	f, fds, err := receive(s.ctl)
	closeAll(fds)
	res := &posture.Result{ID: s.spec.ID, State: posture.Completed}
	kill(s.init)
	await(s.init)
	res.Gone = time.Now()
	s.watch.Wait()
	if s.halted() {
		s.relay.Abandon() // whoever stopped it does not wait for who reads
	} else {
		s.relay.End()
	}
	s.usage(res)
	res.Stages = s.steps()
	switch {
	case err == nil && f.kind == frameFailed:
		s.notStarted(res, f)
	default:
		s.ended(res, err == nil && f.kind == frameEnded)
	}
	return res
}

// steps are the stages between the marks of a workspace's tape.
func (s *workspace) steps() []posture.Stage {
	mark := func(i int) int64 { return int64(binary.LittleEndian.Uint64(s.tape[8*(slotMarks+i):])) }
	var list []posture.Stage
	last := 0
	for _, m := range []struct {
		at   int
		name string
	}{{1, "identity"}, {2, "proc"}, {5, "rights"}, {6, "signals"}, {7, "program"}} {
		if mark(m.at) != 0 {
			list = append(list, posture.Stage{Name: m.name, Took: time.Duration(mark(m.at) - mark(last))})
			last = m.at
		}
	}
	return list
}

// halted says that a person, or the owner's end, ended the run.
func (s *workspace) halted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason == posture.ReasonHalt
}

// ended is verdict for a run of several processes: one of them that the memory
// limit took does not end the others.
func (s *workspace) ended(res *posture.Result, whole bool) {
	status := unix.WaitStatus(binary.LittleEndian.Uint32(s.tape[s.plan.status:]))
	taken := s.used.OOMKills
	if taken > 0 && whole && status.Signal() != unix.SIGKILL {
		s.used.OOMKills = 0
		res.Stderr = fmt.Appendf(res.Stderr, "%d processes were killed: memory limit exceeded\n", taken)
	}
	s.verdict(res, whole)
}

// notStarted is a run whose last wall, or whose program, did not come up. A
// program that cannot be executed ends as in a shell.
func (s *workspace) notStarted(res *posture.Result, f frame) {
	if op := int(f.a); op < len(s.plan.stages) && s.plan.stages[op] == stageExec {
		errno := unix.Errno(f.b)
		code := 126
		if errno == unix.ENOENT {
			code = 127
		}
		settle(res, posture.SpawnError, code, "the program cannot be executed: "+errno.Error())
		return
	}
	s.spawnFailed(res, s.failure(f))
}

// signal passes a signal on to the program, or to its whole group.
func (s *workspace) signal(sig unix.Signal, group bool) {
	if group && unix.PidfdSendSignal(s.workload, sig, nil, pidfdGroup) == nil {
		return
	}
	unix.PidfdSendSignal(s.workload, sig, nil, 0)
}

// pidfdGroup is PIDFD_SIGNAL_PROCESS_GROUP (Linux 6.9).
const pidfdGroup = 4

// answerAll answers the filter's questions until nobody is left who could ask.
func (s *workspace) answerAll() {
	defer s.watch.Done()
	for {
		n, err := s.asks.next()
		if err != nil {
			if !errors.Is(err, errNoCaller) {
				kill(s.init) // a filter that nobody answers holds nothing
			}
			return
		}
		s.question(n)
	}
}

func (s *workspace) question(n notice) {
	c := seccomp.NewCall(n.nr, n.arch, n.args)
	if c.PassesByNumbers() {
		s.asks.proceed(n)
		return
	}
	j := c.EvaluateInWorkspace()
	if j.IsRefused() {
		s.slow()
		s.tally(c, j.Errno)
		s.asks.refuse(n, j.Errno)
		return
	}
	s.end(posture.ReasonEscape, &posture.Call{Nr: int(n.nr), Name: c.Name, Arch: c.ABI, Args: n.args})
}

// refusedBurst is how many refused calls are answered at once in a second:
// answering costs Holdfast what no share of the run's pays for.
const refusedBurst = 20_000

func (s *workspace) slow() {
	if now := time.Now(); now.Sub(s.window) > time.Second {
		s.window, s.burst = now, 0
	}
	if s.burst++; s.burst > refusedBurst {
		time.Sleep(time.Millisecond)
	}
}

func (s *workspace) tally(c seccomp.Call, errno unix.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.refused {
		if s.refused[i].Name == c.Name {
			s.refused[i].Count++
			return
		}
	}
	if len(s.refused) < maxRefusals {
		s.refused = append(s.refused, posture.Refusal{Name: c.Name, Errno: unix.ErrnoName(errno), Count: 1})
	}
}

// free gives everything back, the processes first.
func (s *workspace) free() {
	if s.init >= 0 {
		kill(s.init)
		await(s.init)
	}
	if s.z != nil {
		s.z.conn.Close()
		s.z.cmd.Process.Kill()
		<-s.z.done
	}
	s.run.free()
	if s.relay != nil {
		s.relay.Close()
	}
	grant.Close(s.trees)
}

// renamed makes a user namespace in which only the owner is another.
func renamed(uid, gid uint32) (int, error) {
	p, err := bystander.StartInUserNamespace()
	if err != nil {
		return -1, err
	}
	defer p.End()
	dir := "/proc/" + strconv.Itoa(p.PID)
	for file, id := range map[string]uint32{"uid_map": uid, "gid_map": gid} {
		if err := os.WriteFile(dir+"/"+file, []byte(swap(id)), 0); err != nil {
			return -1, err
		}
	}
	return unix.Open(dir+"/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// swap maps id to the workloads' user, and every other to itself.
func swap(id uint32) string {
	const all = 1<<32 - 1 // -1 is nobody's number
	var b strings.Builder
	span := func(from, to uint64) {
		if from < to {
			fmt.Fprintf(&b, "%d %d %d\n", from, from, to-from)
		}
	}
	low, high := uint64(min(id, hostUser)), uint64(max(id, hostUser))
	span(0, low)
	fmt.Fprintf(&b, "%d %d 1\n", id, hostUser)
	span(low+1, high)
	span(high+1, all)
	return b.String()
}
