package programs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Child is a process that is spoken to in lines.
type Child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
	said  bytes.Buffer // on standard error
}

// StartChild starts a program.
func StartChild(b *measure.Run, program string, args ...string) (*Child, error) {
	c := &Child{cmd: exec.CommandContext(b.Ctx, program, args...)}
	c.cmd.Stderr = &c.said
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.lines = in, bufio.NewReaderSize(out, 64<<10)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	return c, nil
}

// Read is the next line.
func (c *Child) Read() (string, error) {
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s ended: %w", filepath.Base(c.cmd.Path), err), c.End(), errors.New(excerpt.Printable(c.said.String())))
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// Ask sends a word and reads the document that answers it.
func (c *Child) Ask(word string, into any) error {
	if _, err := io.WriteString(c.in, word+"\n"); err != nil {
		return err
	}
	line, err := c.Read()
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(line), into)
}

// End closes the process's input and ends it.
func (c *Child) End() error {
	_ = c.in.Close() // it may have ended already
	return inflighttest.Stop(c.cmd)
}
