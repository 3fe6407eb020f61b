package container

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/scratch"
)

// job is one execution behind the engine, from its folder to its result.
type job struct {
	d        *Docker
	spec     sandbox.Spec
	name     string // of its folder, its container and its control group
	home     string
	asked    bool   // the engine was asked for a container
	id       string // the container's, once it is made
	scratch  int
	out, err stream
	at       posture.Instants

	mu     sync.Mutex
	reason posture.Reason // the first that ended it
}

// execute runs spec. A nil error means that the code ran, whatever came of it;
// an error is a *holdfast.Error, and nothing of the code has run.
func (d *Docker) execute(ctx context.Context, spec sandbox.Spec, p sandbox.Program, at posture.Instants) (res *posture.Result, err error) {
	at.Raised = time.Now()
	d.bequeath()
	j := &job{d: d, spec: spec, name: runName(d.name, d.seq.Add(1)), scratch: -1, at: at}
	j.home = filepath.Join(d.cfg.Dir, dockerRuns, j.name)
	defer func() {
		j.free()
		if j.at.Freed = time.Now(); res != nil {
			res.Walk(j.at)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	d.settle()
	starting, over := context.WithTimeout(ctx, d.cfg.Within)
	defer over()
	if err := j.make(starting, p); err != nil {
		return nil, j.unbegun(starting, err)
	}
	return j.play(ctx, starting)
}

// make makes the container, and believes of it what the engine then shows.
func (j *job) make(ctx context.Context, p sandbox.Program) error {
	image, err := j.d.image(ctx)
	if err != nil {
		return err
	}
	g, err := layShared(j.home, j.d.root, p.CodeName, j.spec)
	j.scratch = g.scratch
	if err != nil {
		return failed(holdfast.KindMount, "make its workspace", err)
	}
	r := dockerRun{name: j.name, owner: j.name, dir: j.d.cfg.Dir, spec: j.spec, program: p, image: image, code: g.code, work: g.work, uid: workload, gid: workload, runtime: j.d.runtime()}
	r.program.Argv = slices.Clone(p.Argv)
	if name := r.program.Argv[0]; !strings.HasPrefix(name, insideCode+"/") {
		r.program.Argv[0] = path.Base(name) // where the image has it
	}
	if !j.d.root {
		r.uid, r.gid = os.Geteuid(), os.Getegid()
	}
	if j.d.grouped {
		r.group = j.d.groups.parent + "/" + j.name
		if err := j.d.groups.make(j.name); err != nil {
			return failed(holdfast.KindCgroup, "make its control group", err)
		}
	}
	var made struct {
		ID       string `json:"Id"`
		Warnings []string
	}
	want := r.create()
	j.asked = true
	if err := j.d.engine.call(ctx, http.MethodPost, "/containers/create", url.Values{"name": {"holdfast-" + j.name}}, want, &made); err != nil {
		return err
	}
	if len(made.ID) != 64 || strings.Trim(made.ID, "0123456789abcdef") != "" {
		return fmt.Errorf("the engine says %.80q of the container that it made", made.ID)
	}
	j.id = made.ID
	for _, w := range made.Warnings {
		if strings.Contains(w, "iscard") { // a limit that it does not keep
			return &holdfast.Error{Kind: holdfast.KindCgroup, Why: fmt.Sprintf("the engine holds less than was asked: %.200s", printable(w)), Hint: "see `docker info`"}
		}
		j.d.trouble(fmt.Errorf("the engine warns: %.200s", printable(w)))
	}
	var shown dockerShown
	if err := j.d.engine.call(ctx, http.MethodGet, "/containers/"+j.id+"/json", nil, nil, &shown); err != nil {
		return err
	}
	return shown.is(want)
}

// play starts the container and waits for its end, or brings it.
func (j *job) play(ctx, starting context.Context) (*posture.Result, error) {
	listening, deaf := context.WithCancel(context.Background())
	defer deaf()
	attached, err := j.d.engine.open(j.bound(listening, starting), http.MethodPost, "/containers/"+j.id+"/attach", url.Values{"stream": {"1"}, "stdout": {"1"}, "stderr": {"1"}}, nil)
	if err != nil {
		return nil, j.unbegun(starting, err)
	}
	defer attached.Body.Close()
	keep := func(s *stream) func([]byte) {
		return func(b []byte) {
			if s.keep(b) {
				go j.end(posture.ReasonOutput)
			}
		}
	}
	written := make(chan error, 1)
	go func() { written <- demux(attached.Body, keep(&j.out), keep(&j.err)) }()
	j.at.Ready = time.Now()
	// A caller who goes meanwhile is heard when it is known whether it has begun.
	begin, over := context.WithTimeout(context.Background(), j.d.cfg.Within)
	defer over()
	if err := j.d.engine.call(begin, http.MethodPost, "/containers/"+j.id+"/start", nil, nil, nil); err != nil {
		if s := (*said)(nil); !errors.As(err, &s) && j.ran() {
			return j.outcome(j.lost(err), written) // its answer was lost, not the program
		}
		return nil, j.unbegun(starting, err)
	}
	j.at.Began = time.Now()
	timer := time.AfterFunc(j.spec.Timeout, func() { j.end(posture.ReasonWall) })
	defer timer.Stop()
	defer context.AfterFunc(ctx, func() { j.end(posture.ReasonHalt) })()
	return j.outcome(j.wait(), written)
}

// bound is a context that ends with listening, and with starting unless the
// container has begun by then.
func (j *job) bound(listening, starting context.Context) context.Context {
	ctx, cancel := context.WithCancel(listening)
	context.AfterFunc(starting, func() {
		if errors.Is(starting.Err(), context.DeadlineExceeded) && j.at.Ready.IsZero() {
			cancel()
		}
	})
	return ctx
}

// wait returns how the container ended. A wait that breaks off is tried once
// more: the connection may be gone and the engine not.
func (j *job) wait() dockerEnd {
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), j.spec.Timeout+time.Minute)
		var end struct {
			StatusCode int
			Error      *struct{ Message string }
		}
		err := j.d.engine.call(ctx, http.MethodPost, "/containers/"+j.id+"/wait", url.Values{"condition": {"not-running"}}, nil, &end)
		cancel()
		if err == nil && end.Error != nil {
			err = fmt.Errorf("the engine says: %.300s", printable(end.Error.Message))
		}
		if err == nil {
			return j.state(end.StatusCode)
		}
		if try == 1 {
			return j.lost(err)
		}
	}
}

// dockerEnd is how a container ended.
type dockerEnd struct {
	code int
	oom  bool
	lost error // nobody says how
}

// lost is the end of a container whose engine says nothing any more: what is left
// of it is killed where Holdfast can.
func (j *job) lost(err error) dockerEnd {
	j.at.Faulted = time.Now()
	if j.d.grouped {
		j.d.groups.kill(j.name)
	}
	return dockerEnd{lost: err}
}

// state is how a container of that exit code ended, as the engine says.
func (j *job) state(code int) dockerEnd {
	var shown dockerShown
	j.d.trouble(j.d.engine.call(context.Background(), http.MethodGet, "/containers/"+j.id+"/json", nil, nil, &shown))
	return dockerEnd{code: code, oom: shown.State.OOMKilled}
}

// ran says whether the container has begun, as far as the engine tells.
func (j *job) ran() bool {
	var shown dockerShown
	err := j.d.engine.call(context.Background(), http.MethodGet, "/containers/"+j.id+"/json", nil, nil, &shown)
	return err != nil || shown.State.Running || shown.State.Status == "exited"
}

// end kills the code, for the first reason there is.
func (j *job) end(why posture.Reason) {
	j.mu.Lock()
	first := j.reason == ""
	if first {
		j.reason = why
	}
	j.mu.Unlock()
	if !first {
		return
	}
	err := j.d.engine.call(context.Background(), http.MethodPost, "/containers/"+j.id+"/kill", url.Values{"signal": {"KILL"}}, nil, nil)
	if s := (*said)(nil); err != nil && !(errors.As(err, &s) && s.status == http.StatusConflict) { // 409: it has ended
		if j.d.grouped {
			j.d.groups.kill(j.name)
		}
		j.d.trouble(err)
	}
}

// outcome is what came of it. Nothing runs any more, or nobody can say.
func (j *job) outcome(end dockerEnd, written <-chan error) (*posture.Result, error) {
	at := &j.at
	at.Ended = time.Now()
	if at.Began.IsZero() {
		at.Began = at.Ended
	}
	select {
	case err := <-written:
		j.d.trouble(err)
	case <-time.After(graceful):
		j.d.trouble(errors.New("the engine goes on with a stream of output after the container has ended"))
	}
	at.Torn = time.Now()
	res := &posture.Result{ID: j.spec.ID, State: posture.Completed, Path: posture.PathCold, Gone: at.Torn, Start: at.Raised}
	var used figures
	if j.d.grouped {
		used = j.d.groups.read(j.name)
		res.MemoryPeak, res.PageFaults, res.UserTime, res.SystemTime = used.peak, used.faults, used.user, used.system
	}
	j.mu.Lock()
	res.Reason = j.reason
	j.mu.Unlock()
	end.verdict(res, used, j.spec.MemoryMB<<20)
	stdout, cut1 := j.out.text()
	stderr, cut2 := j.err.text()
	res.Stdout, res.Stderr = slices.Clone(stdout), append(slices.Clone(stderr), res.Stderr...)
	for i, cut := range []bool{cut1, cut2} {
		if cut {
			res.Cut = append(res.Cut, [...]string{"stdout", "stderr"}[i])
		}
	}
	res.OutputFiles, res.Skipped = scratch.Collect(j.scratch, j.spec.Files)
	res.End = time.Now()
	res.WallTime = res.End.Sub(res.Start)
	res.Stages = []posture.Stage{{Name: "create", Took: at.Ready.Sub(at.Raised)}, {Name: "start", Took: at.Began.Sub(at.Ready)}, {Name: "program", Took: at.Ended.Sub(at.Began)}, {Name: "collect", Took: res.End.Sub(at.Ended)}}
	return res, nil
}

// verdict says how the run ended (D15). The engine gives one number for a code
// and for 128 and a signal: of what the kernel's filter ended it says no more.
func (e dockerEnd) verdict(res *posture.Result, used figures, limit int64) {
	const sigkill, sigsys = 128 + int(unix.SIGKILL), 128 + int(unix.SIGSYS)
	switch {
	case res.Reason == posture.ReasonWall:
		settle(res, posture.Timeout, posture.ExitLimit, "Timeout: wall-clock limit exceeded")
	case res.Reason != "":
		settle(res, posture.Completed, posture.ExitLimit, stopWords[res.Reason])
	case e.lost != nil:
		res.Reason = posture.ReasonSignal
		settle(res, posture.Completed, posture.ExitLimit, fmt.Sprintf("Killed: the engine does not say how it ended (%.200s)", e.lost))
	case e.code == sigkill && (e.oom || used.peak > 0 && used.exhausted(limit)):
		res.Reason = posture.ReasonOOM
		settle(res, posture.OOM, posture.ExitLimit, "OOM: memory limit exceeded")
	case e.code == sigsys:
		res.Reason, res.Call = posture.ReasonSyscall, &posture.Call{Name: unnamed}
		settle(res, posture.SyscallBlocked, posture.ExitSyscall, fmt.Sprintf("Seccomp violation: syscall %s blocked", unnamed))
	default:
		res.ExitCode = e.code
	}
}

// unbegun is why nothing has run.
func (j *job) unbegun(starting context.Context, err error) error {
	if own := (*holdfast.Error)(nil); errors.As(err, &own) {
		return err
	}
	switch {
	case errors.Is(starting.Err(), context.DeadlineExceeded):
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the Docker engine started no program within %s", j.d.cfg.Within), Hint: "see `docker info` and the engine's log; what it began is ended", Err: err}
	case starting.Err() != nil:
		return failed(holdfast.KindSpawn, "run: it was stopped before it began", context.Canceled)
	}
	e := &holdfast.Error{Kind: holdfast.KindSpawn, Why: "the Docker engine started no container: " + printable(err.Error()), Hint: "`holdfast doctor` tries it; `sandbox: container: runtime:` names another", Err: err}
	if reply, ok := errors.AsType[*said](err); ok {
		j.addAdvice(e, reply.text)
	}
	return e
}

// addAdvice adds to e what the engine tells by the words of its answer alone: its API has no
// code for it.
func (j *job) addAdvice(e *holdfast.Error, answer string) {
	switch {
	case strings.Contains(answer, "executable file not found"):
		e.Hint = fmt.Sprintf("the image %.80q must have the program of %s by that name", j.d.cfg.Image, j.spec.Language)
	case strings.Contains(answer, "bind source path does not exist"):
		e.Kind = holdfast.KindMount
		e.Hint = "the engine must see the same files as Holdfast: it does not from another machine or another mount namespace"
	case strings.Contains(answer, "cgroup"):
		e.Kind = holdfast.KindCgroup
	}
}

// free gives everything back.
func (j *job) free() {
	if j.asked {
		j.d.owe("holdfast-" + j.name) // by its name: the answer with its number may have been lost
	}
	if j.scratch >= 0 {
		unix.Close(j.scratch)
	}
	if j.d.grouped {
		j.d.groups.kill(j.name)
		j.d.trouble(removeEverywhere(filepath.Join(filepath.Base(j.d.groups.parent), j.name)))
	}
	j.d.trouble(clearGround(j.home))
}

// layShared is lay where another program mounts what it makes: in the mounts that
// both see.
func layShared(home string, root bool, name string, spec sandbox.Spec) (ground, error) {
	g := ground{scratch: -1}
	base := filepath.Join(home, "ground")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return g, err
	}
	if err := os.Chmod(home, 0o700); err != nil {
		return g, err
	}
	if root {
		size := fmt.Sprintf("mode=0755,size=%d,nr_inodes=%d", sandbox.ScratchBytes+len(spec.Code), sandbox.ScratchInodes)
		if err := unix.Mount("holdfast", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, size); err != nil {
			return g, &posture.Tmpfs{Err: err}
		}
	}
	g.code, g.work = filepath.Join(base, "code"), filepath.Join(base, "work")
	if err := errors.Join(os.Mkdir(g.code, 0o755), os.Mkdir(g.work, 0o700), put(filepath.Join(base, "empty"), nil, 0o444, false)); err != nil {
		return g, err
	}
	if root { // the engine cannot be asked for a mount from which nothing is executed
		if err := unix.Mount(g.work, g.work, "", unix.MS_BIND, ""); err != nil {
			return g, err
		}
		if err := unix.Mount("", g.work, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return g, err
		}
	}
	if err := put(filepath.Join(g.code, name), spec.Code, 0o555, false); err != nil {
		return g, err
	}
	if err := fill(g.work, spec.Files, root); err != nil {
		return g, err
	}
	var err error
	g.scratch, err = unix.Open(g.work, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return g, err
}

// clearGround takes a run's folder away, and what is mounted in it.
func clearGround(home string) error {
	base := filepath.Join(home, "ground")
	if err := unix.Unmount(base, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && err != unix.EINVAL && err != unix.ENOENT && err != unix.EPERM {
		return &os.PathError{Op: "unmount", Path: base, Err: err}
	}
	return os.RemoveAll(home)
}
