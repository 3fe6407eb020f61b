package container

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// try runs a program that does nothing in a container of the tier's runtime, and
// notes which walls stood around it.
func (t *Tier) try(ctx context.Context) error {
	empty := t.cfg.Dir + "/empty"
	if err := os.MkdirAll(empty, 0o755); err != nil {
		return err
	}
	p := sandbox.Program{Exact: sandbox.Static, Argv: []string{insideCode + "/nothing"}, CodeName: "nothing", Root: empty, Environment: func(map[string]string) []string { return nil }}
	for _, name := range bare {
		p.Rules = append(p.Rules, sandbox.Rule{Call: name, Action: sandbox.RuleAllow})
	}
	for _, name := range []string{"execve", "exit_group"} {
		p.Rules = append(p.Rules, sandbox.Rule{Call: name})
	}
	spec := sandbox.Spec{ID: "try", Language: sandbox.Static, Code: nothing(), Timeout: t.cfg.Within, MemoryMB: 64, CPUPeriod: sandbox.DefaultPeriod, CPUQuota: sandbox.DefaultPeriod}
	var mu sync.Mutex
	held := map[string]string{"memory": unseen, "cpu": unseen, "pids": unseen}
	res, err := t.execute(ctx, spec, p, posture.Instants{Received: time.Now(), Parsed: time.Now()}, manner{tried: func(down map[string]string) {
		mu.Lock()
		defer mu.Unlock()
		if len(held) > 0 {
			held = down
		}
	}})
	if err != nil {
		return err
	}
	if res.ExitCode != 7 {
		return fmt.Errorf("a program that ends with code 7 ended with %d: %.200s", res.ExitCode, res.Stderr)
	}
	mu.Lock()
	defer mu.Unlock()
	t.posture = t.seen(held)
	return nil
}

const unseen = "the trial ended before anybody could see under which limit it was"

// bare is what a runtime itself calls between the filter and the program. It asks
// for the time by a call where the kernel trusts no clock that can be read without.
var bare = []string{"brk", "clock_gettime", "clone", "clone3", "close", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "fcntl", "fstat", "futex", "getpid", "gettid", "lseek", "madvise", "mmap", "mprotect", "munmap", "nanosleep",
	"newfstatat", "open", "openat", "prctl", "pread64", "pwrite64", "read", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_getaffinity", "sched_yield", "set_robust_list", "sigaltstack", "tgkill", "write", "writev", "fstatfs", "statx", "readlinkat", "getdents64", "dup3", "rseq", "capget", "setgroups", "getppid", "poll", "ppoll", "sendmsg", "recvmsg"}

// seen is the posture after a trial.
func (t *Tier) seen(held map[string]string) posture.Posture {
	v := t.runtime.version
	p := posture.Posture{Tier: posture.TierContainer, Mode: "rootless", Groups: "none", Names: t.runtime.version.listens(), Down: map[posture.Wall]string{}, Instead: map[posture.Wall]string{},
		Unbound: map[string]string{"io": "what it writes is memory, and is bounded as that; reading its own read-only runtime is not"}}
	p.Down[posture.WallLandlock] = v.String() + " raises none"
	if t.root {
		p.Mode, p.Groups = "root", t.groups.mode()
		for c, why := range held {
			p.Down[posture.Wall(c)] = why
		}
	} else {
		const user = " makes no control group for an ordinary user"
		p.Down[posture.WallMemory], p.Instead[posture.WallMemory] = v.name+user, "not by a control group: RLIMIT_DATA bounds private memory at the run's limit and 8 MB for each thread"
		if p.Names { // so that it is known which process it is
			p.Instead[posture.WallMemory] += ", and a look every 10 ms ends a run whose resident memory is above its limit"
		}
		p.Down[posture.WallCPU], p.Instead[posture.WallCPU] = v.name+user, "not by a control group: a run may use every processor; RLIMIT_CPU ends it after twice its time limit and 2 s"
		p.Down[posture.WallPids], p.Instead[posture.WallPids] = v.name+user, "not by a control group: RLIMIT_NPROC bounds threads"
		p.Down[posture.WallNet], p.Instead[posture.WallNet] = v.name+" raises a loopback in the network namespace that it makes for an ordinary user", "the loopback is the container's own and leads nowhere"
		p.Down[posture.WallScratch], p.Instead[posture.WallScratch] = "an ordinary user can have no memory mounted for the workspace, which is a folder of the disk", "RLIMIT_FSIZE bounds each file at 100 MB"
		p.Unbound["io"] = "what it writes is a folder of the state directory's disk"
	}
	p.Notes = []string{
		"the program is the first process of its namespace: a signal that it sends itself is forgotten, and abort ends it by a fault",
		"a call of " + foreign + " ends the thread that makes it, and is not named: an OCI configuration has no rules for it",
		"a call newer than the runtime's library may be answered ENOSYS by the runtime, without a name",
		"its /proc/self tells where this tier's folders are on the host",
	}
	if !t.root {
		p.Notes = append(p.Notes, "how full the disk of the workspace is, it can see, and what another run does to that")
	}
	if !p.Names {
		p.Down[posture.WallSeccomp] = "no allowlist holds: " + v.String() + " is given none, and its kernel answers what it knows"
		p.Notes = append(p.Notes[3:], namesNone(v.String())+"what is called outside a language's allowlist is not seen",
			"a call of "+foreign+" is answered by gVisor's kernel, and ends nothing")
	}
	if t.runtime.platform != "" {
		p.Up = append(p.Up, posture.WallGVisor)
		p.Notes = append(p.Notes, "a kernel of gVisor's own answers the program's calls, on the platform "+t.runtime.platform)
	}
	for _, w := range posture.Walls() {
		if p.Down[w] == "" {
			p.Up = append(p.Up, w)
		}
	}
	return p
}

// foreign are the architectures beside x86-64 whose calls its kernel may take.
const foreign = "another architecture (i386, x32)"

// namesNone begins the note of what hands no listener of a filter out; what
// becomes of a call there follows.
func namesNone(what string) string {
	return "no call is named: " + what + " hands no listener of a filter out; "
}
