// Package server runs an MCP server as a child process and carries its
// standard input and output. It is a hand: it starts and stops, and judges
// nothing.
//
// The process gets a group of its own and an environment made from a list, so
// that no credential of Holdfast's user reaches it unnamed. When the process
// ends, whatever is left of its group is killed before the process is reaped.
// On Linux, descendants that left the group (setsid, a daemon that forked
// twice) are then found by a variable in their environment and killed too; one
// that started with another environment is outside this reach, which is the
// sandbox's. Where Holdfast itself is killed, the process dies with it; its
// group sees the end of its input, and what goes on all the same is found by
// SweepLost when Holdfast starts again.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// DefaultGrace is how long Close waits after closing the server's standard
// input, and again after SIGTERM, before it goes on to the next means.
const DefaultGrace = 2 * time.Second

// lastWords is how long a pipe of a server that has ended is read on for,
// where a descendant outside its group holds it open.
const lastWords = 100 * time.Millisecond

// Command says what to start.
type Command struct {
	// Name is the server's name in boundaries and in the log.
	Name string
	// Argv is the program and its arguments; the program is looked up in
	// PATH. Never empty.
	Argv []string
	// Dir is the working directory; empty means Holdfast's own.
	Dir string
	// Env adds to the list of Environment: "NAME" lets a variable of
	// Holdfast's own environment through, "NAME=value" sets one.
	Env []string
	// Grace replaces DefaultGrace where it is positive.
	Grace time.Duration
	// Log receives what the server writes to standard error, line by line;
	// nil discards it.
	Log *slog.Logger
	// Mask returns a line of standard error without what the log must not
	// hold. It gets one line of at most 8 KiB, without its end, which it
	// may change and keep; nil logs lines as they are. What spans lines is
	// for the server not to say.
	Mask func(line []byte) []byte
}

// Process is a running server. Read and Write are its standard output and
// input; each may be used by one goroutine at a time, and beside Close.
// Whoever started it owns it and must call Close.
type Process struct {
	cmd    *exec.Cmd
	grace  time.Duration
	in     *os.File
	out    *os.File
	done   chan struct{} // closed when the process has been reaped
	over   chan struct{} // closed when its thread is free
	logged chan struct{} // closed when standard error has been read to its end
	stderr *os.File
	err    error // why it ended; read after done
	close  sync.Once

	mark  string
	words lastLine
	since time.Time
	// broke says that the server ended its side of a pipe before Close.
	broke atomic.Bool
	// ended is told once whether the server went of itself, and after how
	// long; nil tells nobody. The two are settled once.
	ended        func(itself bool, up time.Duration)
	decide, tell sync.Once
	itself       bool
	up           time.Duration
}

// Start starts the server. It fails with KindUsage where Argv is empty and
// KindNotFound where the program cannot be started; then nothing is left.
func Start(c Command) (*Process, error) { return start(c, nil) }

func start(c Command, ended func(itself bool, up time.Duration)) (*Process, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "no command for the MCP server",
			Hint: "name the server's program after --"}
	}
	files, err := pipes()
	if err != nil {
		return nil, fmt.Errorf("make pipes for the MCP server: %w", err)
	}
	p := &Process{grace: c.Grace, in: files[1], out: files[2], stderr: files[4],
		done: make(chan struct{}), over: make(chan struct{}), logged: make(chan struct{}), mark: newMark(), since: time.Now(), ended: ended}
	if p.grace <= 0 {
		p.grace = DefaultGrace
	}
	p.cmd = exec.Command(c.Argv[0], c.Argv[1:]...)
	p.cmd.Dir, p.cmd.Env = c.Dir, append(Environment(os.Environ(), c.Env), markName+"="+p.mark)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = files[0], files[3], files[5]
	p.cmd.SysProcAttr = attributes()

	started := make(chan error)
	go p.run(started)
	err = <-started
	closeAll(files[0], files[3], files[5])
	if err != nil {
		closeAll(files[1], files[2], files[4])
		return nil, &holdfast.Error{Kind: holdfast.KindNotFound, Err: err,
			Why:  fmt.Sprintf("the MCP server %q did not start: %v", c.Argv[0], reason(err)),
			Hint: "check the program's name, its permissions and PATH"}
	}
	go p.listen(c)
	return p, nil
}

// reason keeps the system's word and leaves the paths it tried to the log.
func reason(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// pipes returns reader and writer of standard input, output and error.
func pipes() ([]*os.File, error) {
	var fs []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(fs...)
			return nil, err
		}
		fs = append(fs, r, w)
	}
	return fs, nil
}

func closeAll(fs ...*os.File) {
	for _, f := range fs {
		f.Close()
	}
}

// run starts the process and stays on its thread until it has ended: the
// kernel signals a child when the thread that made it dies, not the process.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(p.over)
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = reap(p.cmd, func() { p.signal(syscall.SIGKILL) })
	sweep(p.mark)
	// What the server wrote is in the pipe by now; a descendant that left
	// the group may hold the pipe open, and must not hold the reader.
	_ = p.out.SetReadDeadline(time.Now().Add(lastWords))
	p.went(true)
	close(p.done)
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-p.logged:
	case <-t.C:
	}
	p.report()
}

// went settles how the server goes; the first word counts.
func (p *Process) went(itself bool) {
	p.decide.Do(func() { p.itself, p.up = itself, time.Since(p.since) })
}

// report says, once, how the server went.
func (p *Process) report() {
	p.tell.Do(func() {
		if p.ended != nil {
			p.ended(p.itself, p.up)
		}
	})
}

// listen carries standard error to the log.
func (p *Process) listen(c Command) {
	defer close(p.logged)
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	logLines(p.stderr, log.With("mcp_server", c.Name), c.Mask, &p.words)
}

// signal reaches the whole group. A group that is gone is no error.
func (p *Process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// Read reads the server's standard output. It returns io.EOF once the server
// and its group have ended, or after Close.
func (p *Process) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// The server is gone; what it wrote before is still read.
		_ = p.out.SetReadDeadline(time.Now().Add(lastWords))
		n, err = p.out.Read(b)
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	if err != nil {
		p.broke.Store(true)
	}
	return n, err
}

// Write writes to the server's standard input. It blocks while the server
// does not read, until Close.
func (p *Process) Write(b []byte) (int, error) {
	n, err := p.in.Write(b)
	if err != nil {
		p.broke.Store(true)
	}
	return n, err
}

// Prompt is the descriptor of the server's standard input, which never blocks,
// for who writes what it takes at once.
func (p *Process) Prompt() (syscall.RawConn, error) { return p.in.SyscallConn() }

// PID returns the process id, which is also its group's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exit waits until the server has ended, and says how: "exit status 3",
// "signal: killed", "exit status 0". It returns ctx's error if that ends first.
func (p *Process) Exit(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// Close ends the server: it closes standard input, waits, sends SIGTERM, waits,
// and sends SIGKILL, the signals to the whole group. When it returns, no
// process of the group, goroutine or file is left, nor, on Linux, a descendant
// that kept the environment it was given. It may be called again.
func (p *Process) Close() error {
	p.close.Do(func() {
		p.went(p.broke.Load())
		p.in.Close()
		if !p.gone(p.grace) {
			p.signal(syscall.SIGTERM)
			if !p.gone(p.grace) {
				p.signal(syscall.SIGKILL)
			}
		}
		<-p.done
		p.out.Close()
		p.finishLog()
		p.stderr.Close()
		p.report()
		<-p.over
	})
	return nil
}

// finishLog lets the last words be read; a descendant that left the group may
// hold the pipe open, and is not waited for.
func (p *Process) finishLog() {
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-p.logged:
	case <-t.C:
		p.stderr.Close()
		<-p.logged
	}
}

func (p *Process) gone(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}

// Environment picks from have, in the form of os.Environ, what every server
// gets and what allow names, in have's order, then what allow sets. A later
// setting wins over an earlier one.
func Environment(have, allow []string) []string {
	named := map[string]bool{}
	var set []string
	for _, a := range allow {
		if name, _, ok := strings.Cut(a, "="); ok {
			set = append(set, a)
			named[name] = false
		} else {
			named[a] = true
		}
	}
	var env []string
	for _, kv := range have {
		name, _, _ := strings.Cut(kv, "=")
		if let, ok := named[name]; ok && !let {
			continue
		} else if let || common(name) {
			env = append(env, kv)
		}
	}
	return append(env, set...)
}

// common says whether a variable tells where and how to run, and nothing that
// anybody would keep secret.
func common(name string) bool {
	switch name {
	case "PATH", "HOME", "LANG", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL":
		return true
	}
	return strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")
}
