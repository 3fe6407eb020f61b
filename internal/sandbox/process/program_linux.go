package process

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
)

// Program returns what another tier needs to run programs of a language, less
// the calls of narrow, making the language's root where there is none. An error
// is a *holdfast.Error of the document's kinds (003 2.1).
func (t *Tier) Program(ctx context.Context, asked string, narrow []string) (sandbox.Program, error) {
	l, err := t.language(ctx, asked)
	if err != nil {
		return sandbox.Program{}, err
	}
	p, err := l.Allows.Without(narrow)
	if err != nil {
		return sandbox.Program{}, err
	}
	root, err := t.rootOf(ctx, l)
	if err != nil {
		return sandbox.Program{}, err
	}
	return sandbox.Program{Exact: l.Exact, Argv: l.Argv(), CodeName: l.CodeName, Asks: l.Asks, Root: root, Environment: l.Environment, Check: l.Check, Rules: p.Rules()}, nil
}

// rootOf is the language's private copy; its launcher keeps it.
func (t *Tier) rootOf(ctx context.Context, l language.Language) (string, error) {
	z, err := t.launcher(ctx, l)
	if err != nil {
		return "", err
	}
	return z.root.Path, nil
}

// Watch answers the filter of a program that another tier started by Program's
// rules, as the first process of its PID namespace. It owns the descriptors.
func (t *Tier) Watch(w sandbox.Watching) (sandbox.Watcher, error) {
	lang, _ := t.langs.Match(w.Spec.Language)
	allows := lang.Allows
	if allows == nil {
		allows = &seccomp.Profile{}
	}
	allows, err := allows.Without(w.Spec.Narrow)
	var l *listener
	if err == nil {
		l, err = newListener(w.Listener)
	}
	if err != nil {
		unix.Close(w.Listener)
		unix.Close(w.Scratch)
		return nil, failed(holdfast.KindSeccomp, "listen to the filter", err)
	}
	g := &guest{allows: allows, run: &run{seat: &seat{init: -1}, spec: w.Spec, asks: l, fs: w.Scratch, workload: -1, gone: make(chan struct{})}, begin: w.Begin, done: make(chan struct{})}
	go g.answer()
	return g, nil
}

// guest is a program of another tier that is watched.
type guest struct {
	*run
	allows *seccomp.Profile
	begin  func(pid int) error
	left   *int
	// before is what the process ran when it first asked to execute.
	before image
	done   chan struct{}
}

// End implements sandbox.Watcher.
func (g *guest) End(why posture.Reason) { g.end(why, nil) }

// Wait implements sandbox.Watcher.
func (g *guest) Wait() sandbox.Watched {
	<-g.done
	g.mu.Lock()
	defer g.mu.Unlock()
	return sandbox.Watched{Began: g.at.Began, Reason: g.reason, Call: g.call, Refused: g.refused, Left: g.left}
}

// Close implements sandbox.Watcher: whoever still asks is told that there is no
// such call.
func (g *guest) Close() { g.asks.close() }

func (g *guest) answer() {
	defer close(g.done)
	for {
		n, err := g.asks.next()
		if err != nil {
			break
		}
		g.question(n)
	}
	close(g.gone)
	g.watch.Wait()
	g.asks.close()
	if g.memory != nil {
		g.memory.Close()
	}
	unix.Close(g.fs)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.workload >= 0 {
		unix.Close(g.workload)
		g.workload = -1
	}
}

// question is run's, for a program that is number 1 and not WorkloadPID. What
// asks before anything was executed is the runtime, on its way to that.
func (g *guest) question(n notice) {
	c := seccomp.NewCall(n.nr, n.arch, n.args)
	executes := !c.Foreign && (c.Name == "execve" || c.Name == "execveat")
	switch {
	case executes && (!g.started || g.still(n)):
		g.execute(n)
		return
	case !g.started:
		g.asks.proceed(n)
		return
	}
	if !c.Foreign && c.Name == "exit_group" {
		code := int(n.args[0] & 0xff)
		g.left = &code
	}
	n.args = c.SwapSelf()
	switch { // of numbers alone: nothing they point to can change
	case !c.Foreign && g.allows.Feigns(c.Name, n.args):
		g.asks.refuse(n, 0)
	case !c.Foreign && g.allows.Passes(c.Name, n.args):
		g.asks.proceed(n)
	default:
		g.run.question(n)
	}
}

// execute lets the one execve happen. A filter that was made elsewhere may be one
// whose askers any signal wakes; who was woken asks again, and what was answered
// meanwhile has not happened, even where the kernel took the answer.
func (g *guest) execute(n notice) {
	if g.workload < 0 && !g.taken(n) {
		return // it is not let go on: whoever began it ends it
	}
	if g.asks.proceed(n) == nil {
		g.started = true
	}
}

// taken takes hold of the program before it begins.
func (g *guest) taken(n notice) bool {
	fd, err := unix.PidfdOpen(int(n.pid), 0)
	g.before = imageOf(n)
	if err != nil || g.begin(int(n.pid)) != nil {
		unix.Close(fd)
		return false
	}
	g.mu.Lock()
	g.workload, g.at.Began = fd, time.Now()
	late := g.reason != ""
	g.mu.Unlock()
	if late {
		kill(fd)
	}
	g.pid = numberOf(fd)
	return !late
}

// image is which file a process runs; hidden is that it does not let itself be
// looked at, as a runtime does and no program can here.
type image struct {
	dev, ino uint64
	hidden   bool
}

func imageOf(n notice) image {
	var st unix.Stat_t
	if unix.Stat(fmt.Sprintf("/proc/%d/exe", n.pid), &st) != nil {
		return image{hidden: true}
	}
	return image{dev: st.Dev, ino: st.Ino}
}

// still says whether who asks is the runtime yet, and nothing was executed.
func (g *guest) still(n notice) bool { return imageOf(n) == g.before && g.asks.asks(n) }
