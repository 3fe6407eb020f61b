package credential

import (
	"context"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// FillBuffer reads to the end or until buf is full.
func FillBuffer(r io.Reader, buf []byte) (int, error) {
	n, err := io.ReadFull(r, buf)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}

// ReadOutput reads what a command prints into buf, until it is full, and returns how
// much there is. It gets no input, and what it says on standard error is dropped:
// that may be the secret as well. The error's words go on after the command's
// name, and hold none of what it printed.
func ReadOutput(ctx context.Context, argv []string, buf []byte, within time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, usage.HintErrorf("does it run where holdfast is started?", "cannot be started")
	}
	// What the command left behind may hold the pipe open.
	defer context.AfterFunc(ctx, func() { _ = out.Close() })()
	n, err := FillBuffer(out, buf)
	full := n == len(buf)
	if full {
		cancel()
	}
	waited := cmd.Wait()
	switch {
	case full:
		return n, nil
	case ctx.Err() != nil:
		return 0, usage.Errorf("took longer than %s", within)
	case waited != nil:
		return 0, usage.Errorf("failed: %v", cmd.ProcessState)
	}
	return n, err
}
