package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// The test binary is also the server: role says how it behaves.
const roleEnv = "HOLDFAST_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

func play(role string) int {
	switch role {
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "exit3":
		fmt.Fprintln(os.Stderr, "cannot start: no such module")
		return 3
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "polite": // ignores the end of its input, heeds SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		return 7
	case "parent": // leaves a child behind that holds standard output
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{roleEnv + "=stubborn"}
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			return 1
		}
		fmt.Println(cmd.Process.Pid)
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "escape", "escape and end": // has a child that forks twice and leaves group and session
		out, err := again("middle").Output()
		if err != nil {
			return 1
		}
		fmt.Println(string(bytes.TrimSpace(out)))
		if role == "escape" {
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
	case "middle":
		cmd := again("stubborn")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return 1
		}
		fmt.Println(cmd.Process.Pid)
	case "mute": // ends its output, and stays
		os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "env":
		fmt.Println(strings.Join(os.Environ(), " "))
	case "noise":
		fmt.Fprint(os.Stderr, "first\r\n\n", strings.Repeat("y", 100_000), "\n", strings.Repeat("line\n", 5_000), "last")
	case "secrets": // whole, and across the place where a line is cut
		fmt.Fprintln(os.Stderr, "token hunter2hunter2 used")
		fmt.Fprintln(os.Stderr, strings.Repeat("z", maxLogLine-8)+" hunter2hunter2 rest")
		fmt.Fprintln(os.Stderr, strings.Repeat("z", maxLogLine-7)+"hunter2hunter2 rest")
	case "holder", "holder of escape": // starts a server, says its number, and waits to be killed
		as := map[bool]string{true: "stubborn", false: "escape"}[role == "holder"]
		p, err := Start(Command{Argv: []string{os.Args[0]}, Env: []string{roleEnv + "=" + as}})
		if err != nil {
			return 1
		}
		said, _ := bufio.NewReader(p).ReadString('\n')
		fmt.Println(p.PID(), strings.TrimSpace(said))
		time.Sleep(time.Minute)
	}
	return 0
}

// again is this program in another role, with all else that it was given.
func again(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return cmd
}

func launch(t *testing.T, role string, change ...func(*Command)) *Process {
	t.Helper()
	c := Command{Name: "t", Argv: []string{os.Args[0]}, Env: []string{roleEnv + "=" + role}, Grace: 300 * time.Millisecond}
	for _, f := range change {
		f(&c)
	}
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func line(t *testing.T, r io.Reader) string {
	t.Helper()
	s, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(s)
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && runtime.GOOS != "linux"
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Error(what)
}

func exitOf(p *Process) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return p.Exit(ctx).Error()
}

func TestEchoAndClose(t *testing.T) {
	p := launch(t, "echo", func(c *Command) { c.Grace = time.Minute })
	if _, err := io.WriteString(p, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := line(t, p); got != "hello" {
		t.Errorf("got %q", got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := p.Exit(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a running server's exit: %v", err)
	}
	start := time.Now()
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("a server that ends with its input took %v", d)
	}
	if got := exitOf(p); got != "exit status 0" {
		t.Errorf("exit %q", got)
	}
	if _, err := p.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read after close: %v", err)
	}
	if _, err := p.Write([]byte("x")); err == nil {
		t.Error("write after close succeeds")
	}
}

func TestCloseEscalates(t *testing.T) {
	for role, want := range map[string]string{"polite": "exit status 7", "stubborn": "signal: killed"} {
		t.Run(role, func(t *testing.T) {
			p := launch(t, role)
			line(t, p)
			p.Close()
			if got := exitOf(p); got != want {
				t.Errorf("exit %q, want %q", got, want)
			}
		})
	}
}

// TestCloseWhileWriting: a server that does not read blocks no one for ever.
func TestCloseWhileWriting(t *testing.T) {
	p := launch(t, "stubborn")
	wrote := make(chan error)
	go func() { _, err := p.Write(make([]byte, 1<<20)); wrote <- err }()
	line(t, p)
	p.Close()
	select {
	case err := <-wrote:
		if err == nil {
			t.Error("a megabyte went to a server that does not read")
		}
	case <-time.After(time.Minute):
		t.Error("the write still waits")
	}
}

func TestExitStatusAndLastWords(t *testing.T) {
	var b syncBuffer
	p := launch(t, "exit3", func(c *Command) { c.Log = slog.New(slog.NewTextHandler(&b, nil)) })
	if _, err := p.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read: %v", err)
	}
	if got := exitOf(p); got != "exit status 3" {
		t.Errorf("exit %q", got)
	}
	p.Close()
	if !strings.Contains(b.String(), "cannot start: no such module") {
		t.Errorf("log: %s", b.String())
	}
}

func TestGroupDiesWithTheServer(t *testing.T) {
	p := launch(t, "parent")
	child, err := strconv.Atoi(line(t, p))
	if err != nil || !alive(child) {
		t.Fatalf("no child: %v", err)
	}
	p.Close()
	eventually(t, "the server's child lives on", func() bool { return !alive(child) })
	if _, err := p.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read: %v", err)
	}
}

func TestDiesWithHoldfast(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child's life to its parent's")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=holder")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	number, _, _ := strings.Cut(line(t, out), " ")
	pid, err := strconv.Atoi(number)
	if err != nil || !alive(pid) {
		t.Fatalf("no server: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the server outlives a killed holdfast", func() bool { return !alive(pid) })
}

// TestThreadStays: the child must not die because the thread that made it was
// given up; many goroutines that exit with their thread locked make that likely.
func TestThreadStays(t *testing.T) {
	p := launch(t, "echo")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { runtime.LockOSThread(); time.Sleep(time.Millisecond) })
	}
	wg.Wait()
	if _, err := io.WriteString(p, "still here\n"); err != nil {
		t.Fatal(err)
	}
	if got := line(t, p); got != "still here" {
		t.Errorf("got %q", got)
	}
}

func TestStartFails(t *testing.T) {
	for name, c := range map[string]struct {
		argv []string
		kind holdfast.Kind
	}{
		"no command":    {nil, holdfast.KindUsage},
		"empty command": {[]string{""}, holdfast.KindUsage},
		"not there":     {[]string{"holdfast-no-such-server"}, holdfast.KindNotFound},
		"not a program": {[]string{"/etc/hostname"}, holdfast.KindNotFound},
		"a directory":   {[]string{"/"}, holdfast.KindNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := Start(Command{Argv: c.argv}); holdfast.KindOf(err) != c.kind {
				t.Errorf("got %v, %v", p, err)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	have := []string{"PATH=/bin", "AWS_SECRET_ACCESS_KEY=x", "LC_ALL=C", "XDG_STATE_HOME=/s", "HOLDFAST_STATE=/h", "TOKEN=t", "SSH_AUTH_SOCK=/a", "HOME=/root", "pathological=1"}
	got := Environment(have, []string{"TOKEN", "MODE=ro", "HOME=/else", "MISSING"})
	want := []string{"PATH=/bin", "LC_ALL=C", "XDG_STATE_HOME=/s", "TOKEN=t", "MODE=ro", "HOME=/else"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	t.Setenv("GITHUB_TOKEN", "leak")
	if env := line(t, launch(t, "env")); strings.Contains(env, "leak") || !strings.Contains(env, "PATH=") {
		t.Errorf("the server sees %s", env)
	}
}

func TestStderrIsBounded(t *testing.T) {
	var b syncBuffer
	p := launch(t, "noise", func(c *Command) { c.Log = slog.New(slog.NewTextHandler(&b, nil)) })
	exitOf(p)
	p.Close()
	log := b.String()
	for _, want := range []string{"line=first cut=false", "cut=true", "lines_dropped="} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log", want)
		}
	}
	if len(log) > 64<<10 {
		t.Errorf("the log has %d bytes", len(log))
	}
}

// TestStderrIsMasked: the log holds what the mask returns of a line, and of a
// line that was cut no half word that the mask could not know.
func TestStderrIsMasked(t *testing.T) {
	var b syncBuffer
	mask := func(line []byte) []byte {
		return bytes.ReplaceAll(line, []byte("hunter2hunter2"), []byte("[masked]"))
	}
	p := launch(t, "secrets", func(c *Command) { c.Log, c.Mask = slog.New(slog.NewTextHandler(&b, nil)), mask })
	exitOf(p)
	p.Close()
	log := b.String()
	for _, want := range []string{`line="token [masked] used" cut=false`, `z " cut=true`, `line="" cut=true`} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log", want)
		}
	}
	if strings.Contains(log, "hunter") {
		t.Errorf("the log holds the secret, or a part of it")
	}
}

// TestNothingIsLeft: no goroutine, file or process after many servers.
func TestNothingIsLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts files under /proc")
	}
	files := func() int {
		es, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(es)
	}
	launch(t, "echo").Close()
	goroutines, fds := runtime.NumGoroutine(), files()
	for _, role := range []string{"echo", "exit3", "polite", "parent", "stubborn"} {
		for range 3 {
			p := launch(t, role, func(c *Command) { c.Grace = 20 * time.Millisecond })
			p.Close()
			if alive(p.PID()) {
				t.Errorf("%s lives on", role)
			}
		}
	}
	if _, err := Start(Command{Argv: []string{"/etc/hostname"}}); err == nil {
		t.Error("started")
	}
	eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := files(); n > fds {
		t.Errorf("%d files open, %d before", n, fds)
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }
