// Package command runs a configured program: bounded, in a clean environment, with masked output.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// maxSaid bounds what is kept of what a command prints, in bytes.
const maxSaid = 4 << 10

// Command is one run of a program.
type Command struct {
	Name  string // in the log
	Argv  []string
	Env   []string // names of the variables that it is given
	Limit time.Duration
	Input io.Reader
	// Output takes what it prints on its standard output, and ends it by an error; nil is for what it says.
	Output io.Writer
}

// Runner runs commands.
type Runner struct {
	// Environ returns a clean environment with the variables that are named.
	Environ func(names []string) []string
	Mask    func([]byte) []byte
	Log     *slog.Logger
}

// Run runs one command and returns what it said, masked, at most 4 KiB: on its standard output and its standard
// error, or on the latter alone if its output goes elsewhere. At the end of its time, or of ctx, it is killed with
// all that it has started in its group.
func (r Runner) Run(ctx context.Context, c Command) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin = c.Input
	cmd.Env = r.Environ(c.Env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	says := excerpt.NewFirst(maxSaid)
	cmd.Stdout, cmd.Stderr = says, says
	taking := &untilRefused{to: c.Output, end: cancel}
	if c.Output != nil {
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
	said := string(bytes.TrimSpace(r.Mask(says.Bytes())))
	if err == nil {
		return said, nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %s: %w", c.Limit, err)
	}
	r.Log.Error("a command failed", "command", c.Name, "err", err, "output", excerpt.Word(said))
	if said == "" {
		return said, err
	}
	return said, fmt.Errorf("%w: %s", err, excerpt.Of(said, 128))
}

// errHeld is of a command that ended well, and left behind what holds its output.
var errHeld = errors.New(
	"it ended, but what it had started goes on and holds its output open: send that elsewhere, or wait for it",
)

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
