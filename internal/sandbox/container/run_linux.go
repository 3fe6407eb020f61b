package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/heir"
	"github.com/holdfast-dev/holdfast/internal/sandbox/scratch"
)

// graceful is how long a container that was killed may take to be gone.
const graceful = 3 * time.Second

// maxRules is how many rules a call may have; of one that has more Holdfast is
// asked each time. A runtime's library takes 40 us for each rule, at every start,
// and the calls that programs make often have few.
const maxRules = 45

// manner is how a run differs from others; the zero value does not.
type manner struct {
	tried func(down map[string]string) // of a trial: told which limits do not hold
}

// run is one execution, from its folder to its result.
type run struct {
	t        *Tier
	peak     atomic.Int64 // bytes, where no control group counts
	spec     sandbox.Spec
	name     string // of its folder, its container and its control groups
	home     string
	bundle   bundle
	cmd      *exec.Cmd
	door     *door
	scratch  int
	out, err stream
	copied   sync.WaitGroup
	pipes    []*os.File // read ends
	ended    chan struct{}
	timer    *time.Timer
	manner

	mu      sync.Mutex
	watcher sandbox.Watcher
	reason  posture.Reason // why it was ended before anybody watched it
	stopped bool
	at      posture.Instants
}

// execute runs spec. A nil error means that the code ran, whatever came of it;
// an error is a *holdfast.Error, and nothing of the code has run.
func (t *Tier) execute(ctx context.Context, spec sandbox.Spec, p sandbox.Program, at posture.Instants, how manner) (res *posture.Result, err error) {
	at.Raised = time.Now()
	t.bequeath()
	r := &run{t: t, spec: spec, name: runName(t.name, t.seq.Add(1)), scratch: -1, ended: make(chan struct{}), at: at, manner: how}
	r.home = filepath.Join(t.cfg.Dir, "runs", r.name)
	defer func() {
		r.free()
		if r.at.Freed = time.Now(); res != nil {
			res.Walk(r.at)
		}
	}()
	if err := r.prepare(p); err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go heir.OnThread(func() { r.onThread(p, started) })
	if err := <-started; err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { r.stop(posture.ReasonHalt) })()
	defer context.AfterFunc(t.ctx, func() { r.stop(posture.ReasonHalt) })()
	return r.outcome()
}

// prepare makes what does not need the run's own thread.
func (r *run) prepare(p sandbox.Program) error {
	if err := os.Mkdir(r.home, 0o700); err != nil {
		return failed(holdfast.KindMount, "make its folder", err)
	}
	rootfs, entries, err := skeleton(filepath.Join(r.t.cfg.Dir, "skeletons"), p.Root)
	if err != nil {
		return failed(holdfast.KindMount, "make its root", err)
	}
	r.bundle = bundle{
		id: r.spec.ID, args: p.Argv, env: p.Environment(r.spec.Environment), user: ociUser{workload, workload},
		rootfs: rootfs, entries: entries, memory: r.spec.MemoryMB << 20, period: r.spec.CPUPeriod, quota: r.spec.CPUQuota,
		rlimits: rlimits(r.spec, r.t.root), arch: archWord(), rules: sandbox.Fewer(p.Rules, maxRules),
	}
	if r.t.root {
		r.bundle.group = r.t.groups.parent + "/" + r.name + "/container"
		if err := r.t.groups.make(r.name); err != nil {
			return failed(holdfast.KindCgroup, "make its control group", err)
		}
	} else {
		r.bundle.user, r.bundle.self = ociUser{}, &ociUser{uint32(os.Geteuid()), uint32(os.Getegid())}
	}
	if r.t.runtime.version.listens() {
		if r.door, err = openDoor(r.home); err != nil {
			return failed(holdfast.KindSeccomp, "listen for its filter", err)
		}
		r.bundle.listener = r.door.path(r.t.runtime.version)
	}
	return nil
}

func archWord() string {
	if goruntime.GOARCH == "arm64" {
		return "SCMP_ARCH_AARCH64"
	}
	return "SCMP_ARCH_X86_64"
}

// onThread lays the ground, starts the runtime and waits for its end, on the
// thread whose namespaces these are.
func (r *run) onThread(p sandbox.Program, started chan<- error) {
	defer close(r.ended)
	g, err := lay(r.home, r.t.root, p.CodeName, r.spec)
	r.scratch = g.scratch
	if err != nil {
		started <- failed(holdfast.KindMount, "make its workspace", err)
		return
	}
	r.bundle.code, r.bundle.work, r.bundle.network = g.code, g.work, g.network
	if err = r.start(); err != nil {
		started <- failed(holdfast.KindSpawn, "start "+r.t.runtime.version.name, err)
		return
	}
	started <- nil
	r.cmd.Wait()
}

// start writes the bundle and starts the runtime in its folder.
func (r *run) start() error {
	config, err := json.Marshal(r.bundle.config())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.home, "config.json"), config, 0o600); err != nil {
		return err
	}
	cmd := exec.Command(r.t.runtime.path, r.t.runtime.args(r.home, r.name)...)
	cmd.Dir, cmd.Env = r.home, environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	// Nothing is read from a pipe that nobody writes to. Runtimes give what they
	// are started with to the container's user: the host's /dev/null is not theirs
	// to give away.
	in, w0, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	w0.Close()
	cmd.Stdin = in
	out, w1, err := os.Pipe()
	if err != nil {
		return err
	}
	errs, w2, err := os.Pipe()
	if err != nil {
		return errors.Join(err, out.Close(), w1.Close())
	}
	cmd.Stdout, cmd.Stderr = w1, w2
	err = cmd.Start()
	w1.Close()
	w2.Close()
	if err != nil {
		return errors.Join(err, out.Close(), errs.Close())
	}
	r.cmd, r.pipes = cmd, []*os.File{out, errs}
	r.out.flood, r.err.flood = func() { r.stop(posture.ReasonOutput) }, func() { r.stop(posture.ReasonOutput) }
	r.copied.Add(2)
	go r.out.read(out, &r.copied)
	go r.err.read(errs, &r.copied)
	return nil
}

// args are what the runtime is started with.
func (r runtime) args(home, id string) []string {
	list := []string{"--root", r.state, "--log", filepath.Join(home, "log"), "--log-format", "json"}
	if r.platform != "" {
		list = append(list, "--network=none", "--platform="+r.platform)
	}
	return append(list, "run", "--bundle", home, id)
}

// outcome waits for the end of the container, or brings it.
func (r *run) outcome() (*posture.Result, error) {
	r.setTimer(r.t.cfg.Within, "")
	if r.door == nil {
		r.begin(0)
	} else {
		go r.listen()
	}
	<-r.ended
	told := time.Now()
	r.mu.Lock()
	r.timer.Stop()
	r.mu.Unlock()
	r.clear()
	w := r.watched()
	r.mu.Lock()
	at := &r.at
	at.Ended, at.Torn = told, time.Now()
	if !w.Began.IsZero() {
		at.Began = w.Began
	}
	r.mu.Unlock()
	if at.Began.IsZero() || r.broke() {
		return nil, r.unbegun()
	}
	res := &posture.Result{ID: r.spec.ID, State: posture.Completed, Path: posture.PathCold, Gone: at.Torn, Start: at.Raised}
	used := r.usage(res)
	r.verdict(res, w, used)
	stdout, cut1 := r.out.text()
	stderr, cut2 := r.err.text()
	res.Stdout, res.Stderr = stdout, append(stderr, res.Stderr...)
	for name, cut := range map[string]bool{"stdout": cut1, "stderr": cut2} {
		if cut {
			res.Cut = append(res.Cut, name)
		}
	}
	res.OutputFiles, res.Skipped = scratch.Collect(r.scratch, r.spec.Files)
	res.End = time.Now()
	res.WallTime = res.End.Sub(res.Start)
	res.Stages = []posture.Stage{{Name: "runtime", Took: at.Began.Sub(at.Raised)}, {Name: "program", Took: at.Ended.Sub(at.Began)}, {Name: "collect", Took: res.End.Sub(at.Torn)}}
	return res, nil
}

// broke says of a runtime without a listener, which nobody hears begin, that it
// ended by its own fault: with its own code, and a complaint in its log.
func (r *run) broke() bool {
	const own = 128
	return r.door == nil && r.cmd.ProcessState.ExitCode() == own && complaint(filepath.Join(r.home, "log"), nil) != silent
}

// setTimer stops the run after d.
func (r *run) setTimer(d time.Duration, why posture.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer = time.AfterFunc(d, func() { r.stop(why) })
}

// listen takes the filter's listener and has it answered.
func (r *run) listen() {
	fd, err := r.door.take(r.t.cfg.Within)
	if err != nil {
		return // the run ends, or its time does
	}
	dup, err := unix.FcntlInt(uintptr(r.scratch), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		unix.Close(fd)
		return
	}
	w, err := r.t.cfg.Programs.Watch(sandbox.Watching{Listener: fd, Scratch: dup, Spec: r.spec, Begin: r.begin})
	if err != nil {
		r.stop("")
		return
	}
	r.mu.Lock()
	r.watcher = w
	late, why := r.stopped, r.reason
	r.mu.Unlock()
	if late {
		w.End(why)
	}
}

var errLate = errors.New("it was ended before it began")

// begin is when every wall stands and the program is about to be executed.
func (r *run) begin(pid int) error {
	r.mu.Lock()
	late := r.stopped
	if !late {
		r.at.Ready = time.Now()
		if r.door == nil {
			r.at.Began = r.at.Ready
		}
	}
	r.mu.Unlock()
	if late {
		return errLate
	}
	switch {
	case r.tried != nil && pid == 0:
		go r.look()
	case r.tried != nil:
		r.tried(r.t.groups.held(pid, r.bundle))
	}
	r.setTimer(r.spec.Timeout, posture.ReasonWall)
	if !r.t.root && pid > 0 {
		go r.weigh(pid)
	}
	return nil
}

// look tells which limits a container is under of which nobody hears when it
// begins: it looks at its group until they are there, or it has ended.
func (r *run) look() {
	for {
		down := r.t.groups.heldIn(r.bundle)
		r.tried(down)
		select {
		case <-r.ended:
			return
		case <-time.After(time.Millisecond):
		}
		if len(down) == 0 {
			return
		}
	}
}

// stop ends the run, for the first reason there is; an empty one is that it did
// not begin in time.
func (r *run) stop(why posture.Reason) {
	r.mu.Lock()
	first := !r.stopped
	if first {
		r.stopped, r.reason = true, why
	}
	w, began := r.watcher, !r.at.Ready.IsZero()
	r.mu.Unlock()
	if !first {
		return
	}
	if w != nil && began {
		w.End(why)
		time.AfterFunc(graceful, r.kill)
		return
	}
	r.kill()
}

// kill kills the runtime and everything in the container.
func (r *run) kill() {
	select {
	case <-r.ended:
		return
	default:
	}
	if r.t.root {
		r.t.groups.kill(r.name)
	} else {
		go r.t.runtime.remove(r.name)
	}
	unix.Kill(-r.cmd.Process.Pid, unix.SIGKILL)
}

// clear sees that nothing of the container is left, after the runtime has ended.
func (r *run) clear() {
	r.t.trouble(r.t.runtime.remove(r.name))
	if r.t.root {
		r.t.groups.kill(r.name)
	}
	for _, p := range r.pipes {
		p.SetReadDeadline(time.Now().Add(graceful))
	}
	r.copied.Wait()
	if r.door != nil {
		r.door.close()
	}
}

func (r *run) watched() sandbox.Watched {
	r.mu.Lock()
	w := r.watcher
	r.mu.Unlock()
	if w == nil {
		return sandbox.Watched{}
	}
	return w.Wait()
}

// unbegun is why nothing has run.
func (r *run) unbegun() error {
	r.mu.Lock()
	stopped, why := r.stopped, r.reason
	r.mu.Unlock()
	wrote, _ := r.err.text()
	said := complaint(filepath.Join(r.home, "log"), wrote)
	v := r.t.runtime.version
	switch {
	case why == posture.ReasonHalt:
		return failed(holdfast.KindSpawn, "run: it was stopped before it began", context.Canceled)
	case stopped:
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("%s started no program within %s: %s", v, r.t.cfg.Within, said), Hint: "try `" + r.t.runtime.path + "` by hand; what it began is ended"}
	}
	e := &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("%s started no container: %s", v, said), Hint: "`holdfast doctor` tries it; `sandbox: container: runtime:` names another"}
	if strings.Contains(said, "cgroup") {
		e.Kind = holdfast.KindCgroup
	}
	return e
}

// free gives everything back.
func (r *run) free() {
	if r.door != nil {
		r.door.close()
	}
	if r.cmd != nil {
		<-r.ended
	}
	if r.scratch >= 0 {
		unix.Close(r.scratch)
	}
	if r.t.root {
		r.t.trouble(r.t.groups.remove(r.name))
	}
	r.t.trouble(r.t.runtime.forget(r.name))
	r.t.trouble(discard(r.home))
}
