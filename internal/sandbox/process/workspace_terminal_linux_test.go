//go:build linux

package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// glass is a terminal as a person sees it.
type glass struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	mu     sync.Mutex
	seen   bytes.Buffer
}

func newGlass(t *testing.T) *glass {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	g := &glass{t: t, master: os.NewFile(uintptr(fd), "master")}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	peer, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if g.slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", peer), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.master.Close(); g.slave.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := g.master.Read(buf)
			g.mu.Lock()
			g.seen.Write(buf[:n])
			g.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return g
}

func (g *glass) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen.String()
}

func (g *glass) await(want string) {
	g.t.Helper()
	for range 1000 {
		if strings.Contains(g.text(), want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	g.t.Errorf("%q never came; there is %q", want, g.text())
}

func (g *glass) size(rows, cols uint16) {
	c, err := g.master.SyscallConn()
	if err == nil {
		c.Control(func(fd uintptr) {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
		})
	}
	if err != nil {
		g.t.Error(err)
	}
}

// begin runs a script with the given streams, and returns what it comes to.
func begin(t *testing.T, ctx context.Context, script string, std sandbox.Streams) <-chan *posture.Result {
	t.Helper()
	w := OpenWorkspaces()
	t.Cleanup(func() { w.Close() })
	spec, err := sandbox.CheckWorkspace(sandbox.Workspace{ID: "t", Argv: []string{"/bin/bash", "-c", script}, Tree: repository(t), Need: anyWalls,
		Environment: map[string]string{"PATH": "/usr/bin:/bin", "TERM": "xterm"}}, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan *posture.Result, 1)
	go func() {
		res, err := w.RunConnected(ctx, spec, std, nil)
		if err != nil {
			t.Error(err)
			res = &posture.Result{}
		}
		end <- res
	}()
	return end
}

// TestWorkspaceTerminal: a program has a terminal of its own, of the caller's
// size; keys go inside, and the caller's is afterwards what it was.
func TestWorkspaceTerminal(t *testing.T) {
	runRootless(t)
	g := newGlass(t)
	g.size(31, 99)
	before, err := unix.IoctlGetTermios(int(g.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	end := begin(t, t.Context(), `test -t 0 && test -t 1 && test -t 2 && tty && stty size
trap 'echo "now $(stty size)"' WINCH; trap 'echo interrupted' INT
echo ready; while :; do read -t 0.1 x && [ "$x" = end ] && exit 9; done`, sandbox.Streams{In: g.slave, Out: g.slave, Err: g.slave})
	g.await("/dev/pts/0\r\n31 99\r\n")
	g.await("ready\r\n")
	g.size(40, 120)
	unix.Kill(os.Getpid(), unix.SIGWINCH)
	g.await("now 40 120\r\n")
	io.WriteString(g.master, "\x03")
	g.await("interrupted")
	// bash drops the part of a line that it had read when its read times out.
	for again := time.NewTicker(time.Second); ; {
		io.WriteString(g.master, "end\r")
		select {
		case res := <-end:
			if res.ExitCode != 9 {
				t.Errorf("%+v", res)
			}
		case <-again.C:
			continue
		}
		break
	}
	if after, err := unix.IoctlGetTermios(int(g.slave.Fd()), unix.TCGETS); err != nil || *after != *before {
		t.Errorf("the terminal is %+v, and was %+v (%v)", after, before, err)
	}
}

// TestWorkspaceTerminalCloses: programs are told as by the kernel, and one that
// does not mind goes on.
func TestWorkspaceTerminalCloses(t *testing.T) {
	for script, want := range map[string]int{"echo ready; sleep 1000; echo no": 129, "trap '' HUP; echo ready; sleep 0.3; for i in $(seq 2000); do echo $i; done; exit 4": 4} {
		g := newGlass(t)
		end := begin(t, t.Context(), script, sandbox.Streams{In: g.slave, Out: g.slave, Err: g.slave})
		g.await("ready")
		g.master.Close()
		select {
		case res := <-end:
			if res.ExitCode != want {
				t.Errorf("%s: %d (%s), want %d", script, res.ExitCode, res.Err, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s goes on", script)
		}
	}
}

// TestWorkspaceMixed: what is no terminal stays a pipe, and what is one is none
// of the caller's own.
func TestWorkspaceMixed(t *testing.T) {
	g := newGlass(t)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(feed, "given\n")
	feed.Close()
	res := <-begin(t, t.Context(), "cat; test -t 0 || echo pipe; test -t 1 && echo terminal; test -t 2 || echo none", sandbox.Streams{In: in, Out: g.slave, Err: in})
	g.await("given\r\npipe\r\nterminal\r\nnone\r\n")
	if res.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
}

// TestWorkspaceSignals: what is sent to the relay arrives inside.
func TestWorkspaceSignals(t *testing.T) {
	sandboxtest.Heed(t)
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	end := begin(t, t.Context(), "trap 'echo usr' USR1; trap 'echo int' INT; trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.05; done", sandbox.Streams{Out: to})
	read := func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		if _, err := io.ReadFull(from, b); err != nil || string(b) != want {
			t.Errorf("%q %v, want %q", b, err, want)
		}
	}
	read("ready\n")
	for sig, want := range map[unix.Signal]string{unix.SIGUSR1: "usr\n", unix.SIGINT: "int\n"} {
		unix.Kill(os.Getpid(), sig)
		read(want)
	}
	unix.Kill(os.Getpid(), unix.SIGTERM)
	read("term\n")
	if res := <-end; res.ExitCode != 5 {
		t.Errorf("%+v", res)
	}
}

// TestWorkspaceHalt: a run is over at once, with everything in it, whether or not
// anybody reads what it writes.
func TestWorkspaceHalt(t *testing.T) {
	runRootless(t)
	for name, script := range map[string]string{
		"deaf": "trap '' TERM HUP INT; for i in $(seq 20); do (trap '' TERM; setsid sleep 1000 & sleep 1000) & done; echo ready; wait; wait",
		"loud": "echo ready; while :; do echo yes; done",
	} {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		before := below(t, os.Getpid())
		ctx, stop := context.WithCancel(t.Context())
		end := begin(t, ctx, script, sandbox.Streams{Out: to})
		if _, err := io.ReadFull(from, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		inside := len(below(t, os.Getpid()))
		start := time.Now()
		stop()
		select {
		case res := <-end:
			if res.Reason != posture.ReasonHalt || res.ExitCode != 137 {
				t.Errorf("%s: %s %d", name, res.Reason, res.ExitCode)
			}
			t.Logf("%s: %d processes were gone after %v", name, inside-len(before), res.Gone.Sub(start))
			if res.Gone.Sub(start) > time.Second {
				t.Errorf("%s: it took %v", name, res.Gone.Sub(start))
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s goes on", name)
		}
		left := below(t, os.Getpid())
		left = slices.DeleteFunc(left, func(p int) bool { return slices.Contains(before, p) })
		if len(left) > 0 {
			t.Errorf("%s: there are left %v", name, left)
		}
		from.Close()
		to.Close()
	}
}

// TestWorkspaceTreeVanishes: its programs find nothing, and nothing else happens.
func TestWorkspaceTreeVanishes(t *testing.T) {
	dir := repository(t)
	go func() {
		for range 500 {
			if _, err := os.Stat(dir + "/begun"); err == nil {
				for range 500 {
					if os.RemoveAll(dir) == nil {
						return
					}
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	got := workIn(t, dir, "touch begun; while touch x 2>/dev/null; do sleep 0.02; done; echo gone; exit 3", "")
	if got.ExitCode != 3 || got.out != "gone\n" {
		t.Errorf("%d %q %q", got.ExitCode, got.out, got.errs)
	}
}

// TestWorkspaceLimits: memory and processes are bounded for all of it together.
func TestWorkspaceLimits(t *testing.T) {
	w := OpenWorkspaces()
	up := w.Posture().Up
	w.Close()
	dir := repository(t)
	small := func(s *sandbox.Workspace) { s.MemoryMB, s.Processes = 64, 24 }
	got := workIn(t, dir, `exec /usr/bin/python3 -c '
import os, time
n = 0
try:
    while n < 60:
        if os.fork() == 0: time.sleep(60)
        n += 1
except OSError as e: print(10 < n < 30, e.errno)'`, "", small)
	if got.out != "True 11\n" || got.ExitCode != 0 {
		t.Errorf("%q %q", got.out, got.errs)
	}
	if !slices.Contains(up, posture.WallMemory) {
		return
	}
	got = workIn(t, dir, "/usr/bin/python3 -c 'b=bytearray(200<<20)'; echo $?", "", small)
	if got.out != "137\n" || !strings.Contains(string(got.Stderr), "memory limit exceeded") {
		t.Errorf("%q %q %q", got.out, got.errs, got.Stderr)
	}
	got = workIn(t, dir, "exec /usr/bin/python3 -c 'b=bytearray(200<<20)'", "", small)
	if got.ExitCode != 137 || got.State != posture.OOM {
		t.Errorf("%d %s %q", got.ExitCode, got.State, got.Stderr)
	}
}

// TestWorkspaceLeavesNothing: runs of every kind end with what they began with.
func TestWorkspaceLeavesNothing(t *testing.T) {
	dir := repository(t)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	once := func() {
		for _, script := range []string{"true", "sleep 100 & exit 3", "kill -9 $$", "mount -t tmpfs x /tmp"} {
			workIn(t, dir, script, "x")
		}
		if _, err := tryWork(t, t.Context(), dir, "true", "", func(w *sandbox.Workspace) { w.Dir = w.Tree + "/none" }); err != nil {
			t.Log(err)
		}
	}
	once()
	fds, procs := count(), len(below(t, os.Getpid()))
	for range 5 {
		once()
	}
	time.Sleep(50 * time.Millisecond)
	if now := count(); now > fds {
		t.Errorf("%d descriptors, and there were %d", now, fds)
	}
	if now := len(below(t, os.Getpid())); now != procs {
		t.Errorf("%d processes, and there were %d", now, procs)
	}
}
