package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// runHook runs one command with input on its standard input, in a clean
// environment with the variables that env names, and returns what it printed,
// masked, at most hookSays bytes. At the end of its time, or of ctx, it is killed
// with all that it has started in its group.
func (d *Daemon) runHook(ctx context.Context, name string, argv, env []string, limit time.Duration, input io.Reader) (string, error) {
	return d.runHookInto(ctx, name, argv, env, limit, input, nil)
}

// runHookInto is runHook of a command whose standard output goes to out, whose error
// ends it. What is returned is what it printed on its standard error alone.
func (d *Daemon) runHookInto(ctx context.Context, name string, argv, env []string, limit time.Duration, input io.Reader, out io.Writer) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = input
	cmd.Env = append(server.Environment(os.Environ(), env), "HOLDFAST_STATE="+d.Paths.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	says := excerpt.NewFirst(hookSays)
	cmd.Stdout, cmd.Stderr = says, says
	taking := &untilRefused{to: out, end: cancel}
	if out != nil {
		cmd.Stdout = taking
	}
	err := cmd.Run()
	if taking.err != nil {
		err = taking.err
	}
	if errors.Is(err, syscall.EPIPE) {
		err = nil // it did not care for its input
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = errHeld
	}
	said := string(bytes.TrimSpace(d.mask(says.Bytes())))
	if err == nil {
		return said, nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %s: %w", limit, err)
	}
	d.log.Error("a command failed", "command", name, "err", err, "output", excerpt.Word(said))
	return said, fmt.Errorf("%w: %s", err, excerpt.Of(said, 128))
}

// errHeld is of a command that ended well, and left behind what holds its output.
var errHeld = errors.New("it ended, but what it had started goes on and holds its output open: send that elsewhere, or wait for it")

// untilRefused ends a command once what it writes is not taken.
type untilRefused struct {
	to  io.Writer
	end func()
	err error // why it was not
}

// Write implements io.Writer.
func (u *untilRefused) Write(p []byte) (int, error) {
	n, err := u.to.Write(p)
	if u.err = err; err != nil {
		u.end()
	}
	return n, err
}
