package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/cgroup"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/hostlimit"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
	"github.com/holdfast-dev/holdfast/internal/sandbox/scratch"
)

// graceful is how long a killed workload's init may take to report before it is
// killed too.
const graceful = 2 * time.Second

// run is one execution, from its seat to its result.
type run struct {
	*seat
	spec   sandbox.Spec
	plan   plan
	asks   *listener
	fs     int // the scratch
	stdout stream
	stderr stream
	copied sync.WaitGroup
	watch  sync.WaitGroup
	used   cgroup.Usage
	unread error // why the group's figures are not there
	gauged bool  // no control group holds its memory: it is looked at
	at     posture.Instants

	mu       sync.Mutex
	workload int            // pidfd, once the interpreter starts; else -1
	reason   posture.Reason // the first that ended it
	call     *posture.Call
	refused  []posture.Refusal
	started  bool
	asked    int // calls that were refused or answered
	pid      int // the workload's number in /proc, or 0
	memory   *os.File
	gone     chan struct{} // closed when nobody is left who asks

	// Of a run whose workload was parked.
	waiting  plan // how it came to wait
	parking  parking
	parkedAt time.Time
	vacant   *envRoom // nil unless an environment can be brought to it
	released bool     // it has its request; under mu, with plan, spec and at
	left     bool     // see leaves; under mu
}

// stopWords are what standard error says of a run that was stopped, beside the
// document's own (003 2.1).
var stopWords = map[posture.Reason]string{
	posture.ReasonOutput:  "Killed: more than 64 MB of output",
	posture.ReasonHalt:    "Killed: the run was stopped",
	posture.ReasonRefused: "Killed: more than 100000 calls were refused or answered",
}

// execute runs spec behind z. A nil error means that the code ran, whatever
// came of it; an error is a *holdfast.Error of the document's kinds, and nothing
// of the code has run.
func (t *Tier) execute(ctx context.Context, z *launcherConn, o *order, spec sandbox.Spec, at posture.Instants) (res *posture.Result, err error) {
	start := time.Now()
	s, err := t.take(z)
	if err != nil {
		return nil, err
	}
	at.Raised = s.made
	r := &run{seat: s, spec: spec, fs: -1, workload: -1, gauged: o.gauged, gone: make(chan struct{}), at: at}
	defer func() {
		r.free()
		if r.at.Freed = time.Now(); res != nil {
			res.Walk(r.at)
		}
	}()
	if r.plan, err = o.plan(r.next()); err != nil {
		return nil, failed(holdfast.KindSpawn, "write down what to do", err)
	}
	if err := r.limit(); err != nil {
		return nil, err
	}
	err = r.raise(r.plan)
	t.refill(z) // not before: the walls are raised without company
	if err != nil {
		return nil, err
	}
	r.attended()
	if res, err = r.outcome(ctx, spec.Timeout); err != nil {
		return nil, err
	}
	res.Path = posture.PathCold
	r.timed(res, start)
	return res, nil
}

// request is what the run was asked for.
func (r *run) request() sandbox.Spec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spec
}

// timed says when the run was.
func (r *run) timed(res *posture.Result, start time.Time) {
	res.Start, res.End = start, time.Now()
	if !res.Gone.IsZero() {
		res.Stages = append(res.Stages, posture.Stage{Name: "collect", Took: res.End.Sub(res.Gone)})
	}
	res.WallTime = res.End.Sub(start)
}

// raise lets the seat do what stands in p, and waits until every wall stands.
func (r *run) raise(p plan) error {
	r.copied.Add(2)
	r.stdout.from, r.stderr.from = r.out, r.errs
	go r.stdout.read(r.out, &r.copied)
	go r.stderr.read(r.errs, &r.copied)
	r.out, r.errs = nil, nil
	for _, s := range []*stream{&r.stdout, &r.stderr} {
		s.flood = func() { r.end(posture.ReasonOutput, nil) }
	}
	if err := r.proceed(p); err != nil {
		return r.lost(err)
	}
	return r.ready()
}

// limit holds the run to its share.
func (r *run) limit() error {
	if r.group == nil {
		return nil
	}
	s := sandbox.Share{Memory: r.spec.MemoryMB << 20, Period: r.spec.CPUPeriod, Quota: r.spec.CPUQuota, Pids: maxPids}
	if s == r.held {
		return nil
	}
	r.held = s
	return r.group.Change(s)
}

// ready waits for the frame by which the init says that the walls stand.
func (r *run) ready() error {
	r.ctl.SetReadDeadline(time.Now().Add(10 * time.Second))
	f, fds, err := receive(r.ctl)
	r.ctl.SetReadDeadline(time.Time{})
	if err != nil {
		closeAll(fds)
		return failed(holdfast.KindSpawn, "start: its first process ended without a word", died{err})
	}
	if f.kind != frameReady || len(fds) != 2 {
		closeAll(fds)
		return r.failure(f)
	}
	r.fs, r.at.Ready = fds[1], time.Now()
	if r.asks, err = newListener(fds[0]); err != nil {
		return failed(holdfast.KindSeccomp, "listen to the filter", err)
	}
	return nil
}

// lost tells why an init is not there to be told anything: what it said last is
// the wall that it could not build.
func (r *run) lost(err error) error {
	r.ctl.SetReadDeadline(time.Now().Add(graceful))
	f, fds, nothing := receive(r.ctl)
	closeAll(fds)
	if nothing == nil && f.kind == frameFailed {
		return r.failure(f)
	}
	return failed(holdfast.KindSpawn, "let its first process go on", died{err})
}

// failure tells which wall could not be built.
func (r *run) failure(f frame) error {
	stages, op := r.first.stages, int(f.a)
	for _, p := range []plan{r.plan, r.waiting} {
		if p.base > 0 && op >= p.base {
			stages, op = p.stages, op-p.base
			break
		}
	}
	if f.kind != frameFailed || op >= len(stages) {
		return failed(holdfast.KindSpawn, "start", errors.New("its first process said what cannot be read"))
	}
	s := stages[op]
	err := error(unix.Errno(f.b))
	if s == stageMount {
		err = &posture.Tmpfs{Err: err} // the root is the launcher's
	}
	return failed(s.kind(), s.task(), err)
}

// outcome waits for the end of the code, or brings it. An error is that all of
// it was killed from elsewhere before the interpreter could start, or that a
// workload that was parked did not get its request.
func (r *run) outcome(ctx context.Context, timeout time.Duration) (*posture.Result, error) {
	timer := time.AfterFunc(timeout, func() { r.end(posture.ReasonWall, nil) })
	defer timer.Stop()
	stop := context.AfterFunc(ctx, func() { r.end(posture.ReasonHalt, nil) })
	defer stop()
	f, fds, err := receive(r.ctl)
	closeAll(fds)
	if r.hasLeft() {
		return r.early(), nil
	}
	if err == nil && f.kind == frameFailed && r.unserved(f) {
		return nil, r.failure(f)
	}
	told := time.Now()
	r.at.Ended = told
	res := &posture.Result{ID: r.spec.ID, State: posture.Completed}
	kill(r.init)
	await(r.init)
	res.Gone = time.Now()
	r.at.Torn = res.Gone
	r.watch.Wait()
	r.copied.Wait()
	r.usage(res)
	if err != nil && r.unbegun() {
		return nil, failed(holdfast.KindSpawn, "start: its first process was killed", died{err})
	}
	res.Stages = append(res.Stages, posture.Stage{Name: "end", Took: res.Gone.Sub(told)})
	if err == nil && f.kind == frameFailed {
		r.spawnFailed(res, r.failure(f))
	} else {
		r.verdict(res, err == nil && f.kind == frameEnded)
	}
	r.brought(res)
	return res, nil
}

// brought is what the run wrote.
func (r *run) brought(res *posture.Result) {
	res.Stdout, res.Stderr = r.stdout.text(), append(r.stderr.text(), res.Stderr...)
	res.Cut = cutStreams(&r.stdout, &r.stderr)
	res.OutputFiles, res.Skipped = scratch.Collect(r.fs, r.spec.Files)
}

// unbegun says of a run that is over that the interpreter was never let go, and
// that no limit of the run's own was the reason.
func (r *run) unbegun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.started && r.reason == "" && r.used.OOMKills == 0
}

// answerAll answers the filter's questions until nobody is left who could ask.
func (r *run) answerAll() {
	defer r.watch.Done()
	defer close(r.gone)
	for {
		n, err := r.asks.next()
		if err != nil {
			if !errors.Is(err, errNoCaller) {
				r.at.Faulted = time.Now()
				kill(r.init) // a filter that nobody answers holds nothing
			}
			return
		}
		r.question(n)
	}
}

func (r *run) question(n notice) {
	c := seccomp.NewCall(n.nr, n.arch, n.args)
	if !r.started && !c.Foreign && (c.Name == "execve" || c.Name == "execveat") {
		r.start(n)
		return
	}
	if c.IsExit() {
		if r.overran(n) {
			r.end(posture.ReasonOOM, nil)
			return
		}
		if r.leaves(n, c) {
			return
		}
		r.asks.proceed(n) // numbers alone: nothing they point to can change
		return
	}
	if r.answers(c) {
		r.answer(n, c)
		return
	}
	j := c.Evaluate()
	if j.IsRefused() {
		r.count(c, j.Errno)
		r.asks.refuse(n, j.Errno)
		return
	}
	reason := posture.ReasonSyscall
	if j.IsEscape() {
		reason = posture.ReasonEscape
	}
	r.end(reason, &posture.Call{Nr: int(n.nr), Name: c.Name, Arch: c.ABI, Args: n.args})
}

// start lets the interpreter start: once, before any of the code has run.
func (r *run) start(n notice) {
	if r.gauged {
		g, err := newGauge(int(n.pid))
		if err != nil {
			kill(r.init) // nothing runs that nobody looks at
			return
		}
		r.watch.Add(1)
		go r.watchMemory(g)
	}
	r.started = true
	fd, err := unix.PidfdOpen(int(n.pid), 0)
	if err != nil || !r.asks.asks(n) {
		unix.Close(fd)
		kill(r.init)
		return
	}
	r.mu.Lock()
	r.workload, r.at.Began = fd, time.Now()
	late := r.reason != ""
	r.mu.Unlock()
	if late {
		kill(fd)
		return
	}
	if r.parking.forks {
		r.asks.refuse(n, 0) // it has asked, and executes nothing
	} else {
		r.asks.proceed(n)
	}
	r.pid = numberOf(fd) // while the interpreter starts
}

// end kills the code, for the first reason there is.
func (r *run) end(why posture.Reason, call *posture.Call) {
	r.mu.Lock()
	if r.reason == "" {
		r.reason, r.call = why, call
	}
	fd := r.workload
	r.mu.Unlock()
	if fd >= 0 {
		kill(fd) // else start sees the reason
	}
	if r.ctl != nil { // a guest has no init that could report
		time.AfterFunc(graceful, func() { r.ctl.SetReadDeadline(time.Unix(1, 0)) })
	}
}

const (
	maxRefusals = 64
	// refusedFlood is how many calls that are refused or answered end a run: it
	// costs Holdfast what no share of the run's pays for.
	refusedFlood = 100_000
)

// tally counts what was put to Holdfast.
func (r *run) tally() {
	if r.asked++; r.asked == refusedFlood {
		r.end(posture.ReasonRefused, nil)
	}
}

func (r *run) count(c seccomp.Call, errno unix.Errno) {
	r.tally()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.refused {
		if r.refused[i].Name == c.Name {
			r.refused[i].Count++
			return
		}
	}
	if len(r.refused) < maxRefusals {
		r.refused = append(r.refused, posture.Refusal{Name: c.Name, Errno: unix.ErrnoName(errno), Count: 1})
	}
}

// usage reads what the run used from its tape.
func (r *run) usage(res *posture.Result) {
	u := r.tape[r.plan.usage:]
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(u[8*i:])) }
	res.UserTime = time.Duration(word(0))*time.Second + time.Duration(word(1))*time.Microsecond
	res.SystemTime = time.Duration(word(2))*time.Second + time.Duration(word(3))*time.Microsecond
	res.MemoryPeak, res.PageFaults = word(4)<<10, word(9)
	if r.group != nil {
		r.grouped(res)
	}
	res.Stages = r.stages()
}

// grouped prefers what the control group counted: all of the run, and exactly.
func (r *run) grouped(res *posture.Result) {
	u, err := r.group.ReadUsage()
	if err != nil {
		r.unread = err // the figures of the process stand
		return
	}
	r.used = u
	res.MemoryPeak = max(u.Peak, res.MemoryPeak)
	res.PageFaults = max(u.MajorFaults, res.PageFaults)
	if u.User+u.System > 0 {
		res.UserTime, res.SystemTime = u.User, u.System
	}
}

// markNames are the stages between two marks: those of the seat, the wait for a
// request, and those of the request. The program's own begins with its filter
// and the start of its interpreter.
var markNames = [...]string{"identity", "scratch", "", "files", "rights", "signals", "program"}

func (r *run) stages() []posture.Stage {
	if r.waiting.base > 0 {
		return r.parkedStages()
	}
	mark := func(i int) int64 { return int64(binary.LittleEndian.Uint64(r.tape[8*(slotMarks+i):])) }
	var list []posture.Stage
	for i, name := range markNames {
		if name != "" && mark(i+1) != 0 {
			list = append(list, posture.Stage{Name: name, Took: time.Duration(mark(i+1) - mark(i))})
		}
	}
	return list
}

// verdict says how the run ended (D15). whole says that its init reported.
func (r *run) verdict(res *posture.Result, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	res.Reason, res.Call, res.Refused = r.reason, r.call, r.refused
	status := unix.WaitStatus(binary.LittleEndian.Uint32(r.tape[r.plan.status:]))
	switch {
	case r.reason == posture.ReasonWall:
		settle(res, posture.Timeout, posture.ExitLimit, "Timeout: wall-clock limit exceeded")
	case r.reason == posture.ReasonOOM:
		settle(res, posture.OOM, posture.ExitLimit, "OOM: memory limit exceeded")
	case r.reason == posture.ReasonSyscall || r.reason == posture.ReasonEscape:
		settle(res, posture.SyscallBlocked, posture.ExitSyscall, fmt.Sprintf("Seccomp violation: syscall %s blocked", r.call.Name))
	case r.reason != "":
		settle(res, posture.Completed, posture.ExitLimit, stopWords[r.reason])
	case r.used.OOMKills > 0:
		settle(res, posture.OOM, posture.ExitLimit, "OOM: memory limit exceeded"+r.elsewhere())
		res.Reason = posture.ReasonOOM
	case r.unread != nil && (!whole || status.Signal() == unix.SIGKILL):
		settle(res, posture.Completed, posture.ExitLimit, "Killed: by the memory limit or by the host, which its control group does not say: "+r.unread.Error())
		res.Reason = posture.ReasonSignal
	case !whole:
		settle(res, posture.Completed, posture.ExitLimit, "Killed: the host ended the run")
		res.Reason = posture.ReasonSignal
	case status.Signaled():
		res.Signal, res.Reason = int(status.Signal()), posture.ReasonSignal
		res.ExitCode = 128 + res.Signal
		res.Err = fmt.Sprintf("the program died of signal %d (%s)", res.Signal, strings.ToLower(unix.SignalName(status.Signal())))
	default:
		res.ExitCode = status.ExitStatus()
	}
}

// elsewhere says of a run that was killed for want of memory well below its own
// limit that another one was reached: of a group above it, or the machine's.
func (r *run) elsewhere() string {
	limit := r.spec.MemoryMB << 20
	if r.used.Peak == 0 || r.used.Peak > limit-limit/16 {
		return ""
	}
	return fmt.Sprintf(" (of the host: the run had %d of its %d MB)", r.used.Peak>>20, r.spec.MemoryMB)
}

func settle(res *posture.Result, state posture.State, code int, words string) {
	res.State, res.ExitCode, res.Err = state, code, words
	res.Stderr = append(res.Stderr, words+"\n"...)
}

// spawnFailed is a run whose last wall, or whose interpreter, did not come up.
func (r *run) spawnFailed(res *posture.Result, err error) {
	settle(res, posture.SpawnError, posture.ExitSpawn, "Spawn failed: "+err.Error())
}

// free gives everything back. The init and all below it are gone by then, or
// are killed now.
func (r *run) free() {
	r.seat.free()
	r.watch.Wait()
	r.copied.Wait()
	if r.asks != nil {
		r.asks.close()
	}
	r.vacant.close()
	if r.memory != nil {
		r.memory.Close()
	}
	for _, fd := range []int{r.fs, r.workload} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// failed is an error of the document's kind: the sandbox could not do its part.
func failed(kind holdfast.Kind, what string, err error) error {
	var own *holdfast.Error
	if errors.As(err, &own) {
		return err
	}
	why := fmt.Sprintf("the sandbox could not %s: %v", what, err)
	hint := hostlimit.FindShortage(err)
	if hint == "" {
		hint = "run `holdfast doctor`: it tries every wall and says what to do"
		err = hostlimit.SeeDoctor{Cause: err}
	}
	return &holdfast.Error{Kind: kind, Why: why, Hint: hint, Err: err}
}
