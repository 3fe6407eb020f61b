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

	"github.com/holdfast-dev/holdfast/internal/excerpt"
	"github.com/holdfast-dev/holdfast/internal/mcp/server"
)

// runHook runs one command with input on its standard input, in a clean
// environment with the variables that env names, and returns what it printed,
// masked, at most hookSays bytes. At the end of its time, or of ctx, it is killed
// with all that it has started in its group.
func (d *Daemon) runHook(ctx context.Context, name string, argv, env []string, limit time.Duration, input io.Reader) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = input
	cmd.Env = append(server.Environment(os.Environ(), env), "HOLDFAST_STATE="+d.Paths.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out := excerpt.NewFirst(hookSays)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if errors.Is(err, syscall.EPIPE) {
		err = nil // it did not care for its input
	}
	said := string(bytes.TrimSpace(d.mask(out.Bytes())))
	if err == nil {
		return said, nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %s: %w", limit, err)
	}
	d.log.Error("a command failed", "command", name, "err", err, "output", clip(said))
	return said, fmt.Errorf("%w: %s", err, excerpt.Of(said, 128))
}
