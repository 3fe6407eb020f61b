package programs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
)

// Daemon is `holdfast up`, for MCP clients of the measurement.
type Daemon struct {
	Program, State, Config, Record string
	Up                             *exec.Cmd
}

// StartDaemon starts the daemon. The server's tools are LOW.
func StartDaemon(b *measure.Run, name string) (*Daemon, error) {
	return StartDaemonWith(b, name, "boundaries:\n  - {boundary: mcp/bench/*, risk: LOW}\n")
}

// StartDaemonWith starts a daemon without pages, and with what the text says.
func StartDaemonWith(b *measure.Run, name, text string) (*Daemon, error) {
	program, err := FindHoldfast(b)
	if err != nil {
		return nil, err
	}
	g := &Daemon{Program: program, State: filepath.Join(b.Dir, name), Config: filepath.Join(b.Dir, name+".yaml"), Record: filepath.Join(b.Dir, name+".log")}
	if err := os.WriteFile(g.Config, []byte("version: 1\nlisten: {pages: none}\n"+fixture.Repeats+"\n"+text), 0o600); err != nil {
		return nil, err
	}
	g.Up = exec.CommandContext(b.Ctx, program, "up", "--no-operator", "--state", g.State, "--config", g.Config)
	g.Up.Cancel = func() error { return g.Up.Process.Signal(syscall.SIGTERM) }
	out, err := g.Up.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.Up.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("the daemon did not start: %w", err), g.Stop())
	}
	return g, nil
}

// Stop ends the daemon.
func (d *Daemon) Stop() error { return inflighttest.Stop(d.Up) }
