//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
	"golang.org/x/sys/unix"
)

// hosted is a site whose daemon serves exec, run and the tool run_code, and is at
// rest; held is what it holds then.
type hosted struct {
	*site
	daemon int
	held   sandboxtest.Held
	dirs   []string
	shares bool // the roots of other tests, in which others leave things
}

// share lets the daemon, which has not begun, use the shared roots.
func (h *hosted) share() {
	h.t.Helper()
	if err := shareRoots(filepath.Join(h.dir, "s")); err != nil {
		h.t.Fatal(err)
	}
	h.shares = true
}

const hostedWalls = "walls: [pid, net, mount, uts, ipc, user, seccomp, rights, scratch]"

func newHosted(t *testing.T) *hosted {
	t.Helper()
	s := newSite(t, "version: 1\nlisten: {pages: none}\nmcp: {servers: {code: {sandbox: true}}}\nboundaries:\n  - {boundary: exec/*, risk: LOW, "+hostedWalls+"}\n  - {boundary: run/*, risk: LOW, "+hostedWalls+"}\n")
	s.write("ok.py", "print(6 * 7)\n")
	s.write("spin.py", "while True: pass\n")
	tree := filepath.Join(s.dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	return &hosted{site: s}
}

// up starts the daemon, as cmd, or as any is where it is nil.
func (h *hosted) up(cmd *exec.Cmd) {
	h.t.Helper()
	if cmd == nil {
		h.start("up", "up", "--no-operator")
	} else {
		h.startAs("up", cmd)
	}
	h.after("up", "listening")
	if h.daemon = h.pid(); !h.shares {
		h.dirs = []string{filepath.Join(h.dir, "s", "sandbox")}
	}
	for range 3 { // from then on some wait for the next
		h.serves()
	}
	h.held = sandboxtest.AtRest(h.t, h.daemon, h.dirs...)
}

// startAs is start for a command that is not simply holdfast with arguments.
func (h *hosted) startAs(out string, cmd *exec.Cmd) {
	h.t.Helper()
	f, err := os.Create(filepath.Join(h.dir, out))
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = f, f
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { h.stop(cmd) })
}

// shell is a script with holdfast in it, on this state.
func (h *hosted) shell(script string) *exec.Cmd {
	cmd := h.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", script}
	return cmd
}

func (h *hosted) serves() {
	h.t.Helper()
	if out, code := h.run("exec", "--lang", "python3", "ok.py"); code != 0 || !strings.HasPrefix(out, "42\n") {
		h.t.Fatalf("a plain run: %d %s", code, out)
	}
}

// goesOn wants the daemon to serve, nothing to be left, and the ledger to have
// so many lines with each of the words, and to be whole.
func (h *hosted) goesOn(want map[string]int) {
	h.t.Helper()
	h.serves()
	sandboxtest.NothingLeft(h.t, h.daemon, h.held, h.dirs...)
	tail := h.must("ledger", "tail", "-n", "100")
	for words, n := range want {
		if have := strings.Count(tail, words); have != n {
			h.t.Errorf("the ledger has %q %d times, want %d:\n%s", words, have, n, tail)
		}
	}
	h.must("ledger", "verify", "--semantics")
}

// spins reports whether code that the daemon runs spins.
func (h *hosted) spins() bool { return spinsBelow(h.daemon) }

// spinsBelow reports whether code that a process runs wants a processor, and has used
// more of one than what waits does.
func spinsBelow(pid int) bool {
	for _, p := range sandboxtest.Below(pid) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		text := string(b)
		f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(f) > 12 && strings.Contains(text, "(python") {
			if user, _ := strconv.Atoi(f[11]); f[0] == "R" && user > 20 { // hundredths of a second
				return true
			}
		}
	}
	return false
}

// TestAttackHost attacks one daemon that runs code and programs, in one way after the
// other, the last of which kills it.
func TestAttackHost(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	h.up(nil)
	for _, attack := range []struct {
		name string
		do   func(h *hosted)
	}{
		{"callers that are killed", (*hosted).attackByKilling},
		{"a terminal", (*hosted).attackByTerminal},
		{"a tree that vanishes", (*hosted).attackTree},
	} {
		t.Run(attack.name, func(t *testing.T) {
			own := *h
			own.site = &site{t: t, dir: h.dir}
			attack.do(&own)
		})
	}
}

// attackByKilling: with the command that asked for it, or the
// client behind that, a run ends before its time, because of that, and stands in
// the ledger as given up. (The program never ends by itself, and at the end of its
// time the run would be a TIMEOUT: what was first is in the record.)
func (h *hosted) attackByKilling() {
	t := h.t
	client := h.shell(`exec mcpcall run_code '{"language":"python3","code":"while True: pass","timeout_seconds":30}' holdfast mcp code`)
	for name, cmd := range map[string]*exec.Cmd{"exec": h.command("exec", "--lang", "python3", "--timeout", "30s", "spin.py"), "client": client} {
		h.startAs(name, cmd)
		h.soon("its run", h.spins)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h.soon("its end", func() bool { return !h.spins() })
		_ = cmd.Wait()
	}
	h.soon("both in the ledger", func() bool { return strings.Count(h.must("ledger", "tail", "-n", "100"), "exec/python3.11") >= 5 })
	stopped := 0
	for line := range strings.Lines(h.must("ledger", "tail", "-n", "100", "--json")) {
		var e struct {
			Outcome, Run string
			Kind         string `json:"error_kind"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Outcome == "canceled" && e.Kind == string(holdfast.KindCanceled) && e.Run == "COMPLETED" {
			stopped++
		}
	}
	if stopped != 2 {
		t.Errorf("%d runs were stopped before their time:\n%s", stopped, h.must("ledger", "tail", "-n", "100", "--json"))
	}
	h.goesOn(map[string]int{"canceled   exec/python3": 2})
}

// short is a control group for memory with that many MB, below this process's own.
func short(t *testing.T, mb int64) (dir string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	limit, name := "memory.max", fmt.Sprintf("hf-test-%d", os.Getpid())
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) == 3 && f[1] == "memory":
			dir, limit = filepath.Join("/sys/fs/cgroup/memory", f[2], name), "memory.limit_in_bytes"
		case len(f) == 3 && f[1] == "" && dir == "":
			dir = filepath.Join("/sys/fs/cgroup", f[2], name)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("no control group for memory can be made here: ", err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Error(err)
	})
	if err := os.WriteFile(filepath.Join(dir, limit), []byte(strconv.FormatInt(mb<<20, 10)), 0); err != nil {
		t.Skip("no control group holds memory here: ", err)
	}
	return dir
}

// TestAttackHost_memoryIsShort: where the machine has no memory left it is the
// runs that end, each told why, and not the daemon; with room again it is as it
// was.
func TestAttackHost_memoryIsShort(t *testing.T) {
	t.Parallel()
	const room = 450
	h, dir := newHosted(t), short(t, room)
	h.share()
	h.up(h.shell("echo $$ > " + dir + "/cgroup.procs && exec holdfast up --no-operator"))
	if out, _ := h.run("exec", "--json", "--lang", "python3", "ok.py"); !strings.Contains(out, `"memory"`) {
		t.Skip("runs have no control group here")
	}
	used := int64(0)
	for _, name := range []string{"memory.usage_in_bytes", "memory.current"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			used, _ = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		}
	}
	h.write("eat.py", "x = bytearray(160 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('held')\n")
	hog := h.shell(fmt.Sprintf("echo $$ > %s/cgroup.procs && exec python3 -c 'x = b\"x\" * (%d << 20); print(\"listening\", 1, flush=True); input()'", dir, room-used>>20-80))
	keep, err := hog.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.startAs("hog", hog)
	h.after("hog", "listening")
	for range testrepeat.Times(3, 1) {
		out, code := h.run("exec", "--lang", "python3", "--timeout", "30s", "--memory", "256", "eat.py")
		if code != 137 || !strings.Contains(out, "OOM: memory limit exceeded (of the host: the run had ") || strings.Contains(out, "held") {
			t.Errorf("without: %d %s", code, out)
		}
	}
	h.serves()
	work := h.shell("echo $$ > " + dir + "/cgroup.procs && exec holdfast run --dir tree -- sh -c 'python3 -c \"b = b\\\"x\\\" * (900 << 20)\"; echo ended with $?'")
	said, _ := work.CombinedOutput()
	if code := work.ProcessState.ExitCode(); code != 0 || !strings.Contains(string(said), "ended with 137\n") || !strings.Contains(string(said), "1 processes were killed: memory limit exceeded") {
		t.Errorf("a program on a tree: %d %s", code, said)
	}
	keep.Close()
	_ = hog.Wait()
	if now := h.pid(); now != h.daemon {
		t.Errorf("the daemon is %d, and was %d", now, h.daemon)
	}
	if out, code := h.run("exec", "--lang", "python3", "--timeout", "30s", "--memory", "256", "eat.py"); code != 0 {
		t.Errorf("with room again: %d %s", code, out)
	}
	h.goesOn(nil)
}

// glass is a terminal that a person looks at.
type glass struct {
	master, slave *os.File
	mu            sync.Mutex
	seen          bytes.Buffer // guarded by mu
}

func newGlass(t *testing.T) *glass {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	control(t, master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	g := &glass{master: master, slave: slave}
	t.Cleanup(func() { master.Close(); slave.Close() })
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := master.Read(buf)
			g.mu.Lock()
			if g.seen.Len() < 1<<20 {
				g.seen.Write(buf[:n])
			}
			g.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return g
}

func control(t *testing.T, f *os.File, do func(fd int) error) {
	t.Helper()
	c, err := f.SyscallConn()
	var bad error
	if err == nil {
		err = c.Control(func(fd uintptr) { bad = do(int(fd)) })
	}
	if err := errors.Join(err, bad); err != nil {
		t.Fatal(err)
	}
}

func (g *glass) size(t *testing.T, rows, cols uint16) {
	t.Helper()
	control(t, g.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
}

// attackByTerminal: a terminal that is made larger and smaller a hundred
// times while output flows has inside the size that it has outside in the end; one
// that is closed hangs up what runs inside, and the command returns.
func (h *hosted) attackByTerminal() {
	t := h.t
	tree := filepath.Join(h.dir, "tree")
	for name, c := range map[string]struct {
		trap, script string
		exit         int
		hup          bool
	}{
		"hears it": {"trap 'echo hup > hup; exit 7' HUP", "while :; do echo y; done", 7, true},
		"ends":     {":", "while :; do echo y; done", 129, false},
		"deaf":     {"trap '' HUP", "while [ ! -e closed ]; do echo y; done; exit 4", 4, false},
	} {
		g := newGlass(t)
		g.size(t, 24, 80)
		cmd := h.command("run", "--dir", tree, "--", "bash", "-c", "rm -f look size hup closed; while [ ! -e look ] || [ \"$(stty size)\" != '33 111' ]; do echo resized; done; sleep 0.1; stty size > size; "+c.trap+"; touch ready; "+c.script)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = g.slave, g.slave, g.slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		h.startAs("run", cmd)
		at := func(name string) string { return filepath.Join(tree, name) }
		h.soon("output", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.seen.Len() > 10_000 })
		for i := range uint16(100) {
			g.size(t, 20+i%50, 60+i)
		}
		g.size(t, 33, 111)
		if err := os.WriteFile(at("look"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		h.soon("its size", func() bool { return there(at("ready")) })
		if b, err := os.ReadFile(at("size")); err != nil || string(b) != "33 111\n" {
			t.Errorf("%s: its size is %q %v", name, b, err)
		}
		below := sandboxtest.Below(cmd.Process.Pid)
		g.slave.Close()
		g.master.Close()
		time.AfterFunc(200*time.Millisecond, func() { _ = os.WriteFile(at("closed"), nil, 0o644) })
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != c.exit {
			t.Errorf("%s: exit %d, want %d", name, code, c.exit)
		}
		if hup := there(at("hup")); hup != c.hup {
			t.Errorf("%s: heard of it: %v", name, hup)
		}
		if len(below) < 3 {
			t.Errorf("%s: only %v ran", name, below)
		}
		for _, p := range below {
			if unix.Kill(p, 0) == nil {
				t.Errorf("%s: process %d is left", name, p)
			}
		}
		nothingOf(t, cmd.Process.Pid)
		h.soon("the last word", func() bool { return there(at("closed")) })
		_ = os.Remove(at("ready"))
	}
	h.goesOn(map[string]int{"done       run/bash": 3})
}

// nothingOf wants no control group of that process to be left.
func nothingOf(t *testing.T, pid int) {
	t.Helper()
	if held := sandboxtest.HeldBy(pid); held.Groups > 0 || held.Processes > 0 {
		t.Errorf("of process %d there is left %+v", pid, held)
	}
}

// attackTree: whatever happens to the tree, or to what holds the
// walls or the ledger, while a program works on it, the command ends and says what
// was, and what stands in the tree's place is as it was.
func (h *hosted) attackTree() {
	t := h.t
	tree, moved := filepath.Join(h.dir, "tree"), filepath.Join(h.dir, "moved")
	for _, c := range []struct {
		name    string
		happens func(run int) error
		exit    int
		says    string
	}{
		{"removed", func(int) error { return os.RemoveAll(tree) }, 3, ""},
		{"another in its place", func(int) error {
			err := errors.Join(os.Rename(tree, moved), os.MkdirAll(filepath.Join(tree, ".git"), 0o755), os.WriteFile(filepath.Join(tree, ".git", "commondir"), []byte("mine\n"), 0o644))
			return errors.Join(err, os.WriteFile(filepath.Join(moved, "stop"), nil, 0o644))
		}, 3, "it was removed"},
		{"its launcher killed", func(run int) error {
			for _, p := range sandboxtest.Below(run) {
				if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p)); string(b) == "holdfast-workspace\x00" {
					return unix.Kill(p, unix.SIGKILL)
				}
			}
			return errors.New("it has none")
		}, 137, "Killed: the host ended the run"},
	} {
		_ = os.RemoveAll(moved)
		if err := errors.Join(os.RemoveAll(tree), os.MkdirAll(filepath.Join(tree, ".git"), 0o755)); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(h.dir, "said")
		cmd := h.command("run", "--dir", tree, "--", "sh", "-c", "echo . > .git/commondir; touch begun; while [ -e begun -o -e .git ] && [ ! -e stop ]; do sleep 0.02; done; exit 3")
		h.startAs("said", cmd)
		h.soon("its beginning", func() bool { return there(filepath.Join(tree, "begun")) })
		if err := c.happens(cmd.Process.Pid); err != nil {
			t.Fatal(c.name, err)
		}
		_ = cmd.Wait()
		said, err := os.ReadFile(out)
		if code := cmd.ProcessState.ExitCode(); err != nil || code != c.exit || !strings.Contains(string(said), c.says) {
			t.Errorf("%s: exit %d, %v %s", c.name, code, err, said)
		}
		if b, err := os.ReadFile(filepath.Join(tree, ".git", "commondir")); c.name == "another in its place" && (err != nil || string(b) != "mine\n") {
			t.Errorf("what stands there now: %q %v", b, err)
		}
		nothingOf(t, cmd.Process.Pid)
	}
	script := h.shell("mkdir gone && cd gone && rmdir ../gone && exec holdfast run -- true")
	said, _ := script.CombinedOutput()
	if code := script.ProcessState.ExitCode(); code == 0 || !strings.Contains(string(said), "hint: ") {
		t.Errorf("where nobody can stand: exit %d %s", code, said)
	}
	h.goesOn(map[string]int{"done       run/sh": 3})

	cmd := h.command("run", "--dir", tree, "--", "sh", "-c", "touch alone; sleep 1000")
	h.startAs("said", cmd)
	h.soon("its beginning", func() bool { return there(filepath.Join(tree, "alone")) })
	if err := unix.Kill(h.daemon, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	said, err := os.ReadFile(filepath.Join(h.dir, "said"))
	if code := cmd.ProcessState.ExitCode(); err != nil || code == 0 || !strings.Contains(string(said), "the daemon went away: everything that ran in the workspace was killed") || !strings.Contains(string(said), "hint: ") {
		t.Errorf("its daemon killed: exit %d, %v %s", code, err, said)
	}
	nothingOf(t, cmd.Process.Pid)
	h.serves() // by another daemon, which finds what is not known
	if tail := h.must("ledger", "tail", "-n", "100"); strings.Count(tail, "unknown    run/sh") != 1 {
		t.Errorf("its daemon killed:\n%s", tail)
	}
	h.must("ledger", "verify", "--semantics")
}
