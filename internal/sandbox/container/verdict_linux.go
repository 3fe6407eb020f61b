package container

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// stopWords are what standard error says of a run that was stopped, beside the
// document's own (003 2.1).
var stopWords = map[posture.Reason]string{
	posture.ReasonOutput:  "Killed: more than 64 MB of output",
	posture.ReasonHalt:    "Killed: the run was stopped",
	posture.ReasonRefused: "Killed: more than 100000 calls were refused or answered",
}

// usage is what the run used: by its control group, else by what the runtime and
// all that it waited for used together.
func (r *run) usage(res *posture.Result) figures {
	if r.t.root {
		f := r.t.groups.read(r.name)
		res.MemoryPeak, res.PageFaults, res.UserTime, res.SystemTime = f.peak, f.faults, f.user, f.system
		return f
	}
	if u, ok := r.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		res.MemoryPeak, res.PageFaults = r.peak.Load(), u.Majflt // the greatest of its children's was Holdfast, before it became the runtime
		res.UserTime, res.SystemTime = r.cmd.ProcessState.UserTime(), r.cmd.ProcessState.SystemTime()
	}
	return figures{}
}

// exhausted says whether a run that was killed had used up its memory: the runtime
// takes the group that counts kills away with the container, the one above it
// has the peak.
func (f figures) exhausted(limit int64) bool {
	return f.oom > 0 || f.peak >= limit-limit/16
}

// verdict says how the run ended (D15): by what was watched, else by the code
// with which the runtime ended, which is the program's or 128 and its signal.
func (r *run) verdict(res *posture.Result, w sandbox.Watched, used figures) {
	res.Reason, res.Call, res.Refused = w.Reason, w.Call, w.Refused
	if res.Reason == "" {
		r.mu.Lock()
		res.Reason = r.reason
		r.mu.Unlock()
	}
	code := r.cmd.ProcessState.ExitCode()
	sig := 0
	if w.Left == nil && r.door != nil && code > 128 && code <= 128+64 {
		sig = code - 128
	}
	switch {
	case res.Reason == posture.ReasonWall:
		settle(res, posture.Timeout, posture.ExitLimit, "Timeout: wall-clock limit exceeded")
	case res.Reason == posture.ReasonOOM:
		settle(res, posture.OOM, posture.ExitLimit, "OOM: memory limit exceeded")
	case res.Reason == posture.ReasonSyscall || res.Reason == posture.ReasonEscape:
		settle(res, posture.SyscallBlocked, posture.ExitSyscall, fmt.Sprintf("Seccomp violation: syscall %s blocked", res.Call.Name))
	case res.Reason != "":
		settle(res, posture.Completed, posture.ExitLimit, stopWords[res.Reason])
	case sig == int(unix.SIGSYS):
		// Not asked about: another architecture's call, or a number without a name.
		res.Reason, res.Call = posture.ReasonEscape, &posture.Call{Name: unnamed}
		settle(res, posture.SyscallBlocked, posture.ExitSyscall, fmt.Sprintf("Seccomp violation: syscall %s blocked", unnamed))
	case (sig == int(unix.SIGKILL) || code == 128+int(unix.SIGKILL) && r.door == nil) && used.exhausted(r.spec.MemoryMB<<20):
		res.Reason = posture.ReasonOOM
		settle(res, posture.OOM, posture.ExitLimit, "OOM: memory limit exceeded")
	case code < 0 || sig == int(unix.SIGKILL):
		res.Reason = posture.ReasonSignal
		settle(res, posture.Completed, posture.ExitLimit, "Killed: the host ended the run")
	case sig != 0:
		res.Signal, res.Reason, res.ExitCode = sig, posture.ReasonSignal, code
		res.Err = fmt.Sprintf("the program died of signal %d (%s)", sig, strings.ToLower(unix.SignalName(syscall.Signal(sig))))
	case w.Left != nil:
		res.ExitCode = *w.Left
	default:
		res.ExitCode = code
	}
}

// unnamed stands for a call that the kernel ended a program for without asking.
const unnamed = "unknown"

func settle(res *posture.Result, state posture.State, code int, words string) {
	res.State, res.ExitCode, res.Err = state, code, words
	res.Stderr = append(res.Stderr, words+"\n"...)
}

// rlimits bound each process, and stand for control groups where an ordinary
// user's runtime makes none.
func rlimits(spec sandbox.Spec, root bool) []ociRlimit {
	list := []ociRlimit{
		limit("RLIMIT_CORE", unix.RLIMIT_CORE, 1), // not 0, at which Linux still pipes them
		limit("RLIMIT_NOFILE", unix.RLIMIT_NOFILE, sandbox.OpenFiles),
		limit("RLIMIT_FSIZE", unix.RLIMIT_FSIZE, sandbox.ScratchBytes),
		limit("RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 0),
		limit("RLIMIT_MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0),
		limit("RLIMIT_SIGPENDING", unix.RLIMIT_SIGPENDING, 256),
		limit("RLIMIT_CPU", unix.RLIMIT_CPU, uint64(2*spec.Timeout/time.Second)+2),
	}
	if !root {
		const stack = 8 << 20
		list = append(list, limit("RLIMIT_DATA", unix.RLIMIT_DATA, uint64(spec.MemoryMB<<20+66*stack)), limit("RLIMIT_STACK", unix.RLIMIT_STACK, stack),
			limit("RLIMIT_NPROC", unix.RLIMIT_NPROC, maxPids))
	}
	return list
}

// limit is one that this process's own may keep lower.
func limit(name string, resource int, value uint64) ociRlimit {
	var own unix.Rlimit
	if unix.Prlimit(0, resource, nil, &own) == nil {
		value = min(value, own.Max)
	}
	return ociRlimit{name, value, value}
}
