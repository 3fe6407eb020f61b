package inflighttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Client is an MCP client of one process.
type Client struct {
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Reader
	next  int
}

// StartClient starts a server, or a gateway before one, and greets it.
func StartClient(ctx context.Context, argv []string) (*Client, error) {
	p := &Client{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.lines = in, bufio.NewReaderSize(out, 64<<10)
	for _, m := range []string{
		`"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`,
		`"method":"tools/list"`,
	} {
		if _, err := p.Ask(m); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		if p.next == 1 {
			if _, err := io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
				return nil, errors.Join(err, p.Close())
			}
		}
	}
	return p, nil
}

// Send writes one request and returns its id.
func (p *Client) Send(rest string) (int, error) {
	p.next++
	_, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", p.next, rest)
	return p.next, err
}

// Ask sends a request and waits for its answer, which must be a result.
func (p *Client) Ask(rest string) ([]byte, error) {
	id, err := p.Send(rest)
	if err != nil {
		return nil, err
	}
	for {
		got, line, err := p.Answer()
		if err != nil {
			return nil, err
		}
		if got != id {
			continue
		}
		if !bytes.Contains(line, []byte(`"result"`)) || bytes.Contains(line, []byte(`"isError":true`)) {
			return nil, fmt.Errorf("the MCP server did not do it: %s", excerpt.Printable(string(line)))
		}
		return line, nil
	}
}

// Answer reads the next line; its id is 0 where it is no answer.
func (p *Client) Answer() (int, []byte, error) {
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return 0, nil, fmt.Errorf("the MCP server went away: %w", err)
	}
	var m struct {
		ID     int    `json:"id"`
		Method string `json:"method"`
	}
	if err := json.Unmarshal(line, &m); err != nil || m.Method != "" {
		return 0, line, err
	}
	return m.ID, line, nil
}

// Close ends the process.
func (p *Client) Close() error {
	if c, ok := p.in.(io.Closer); ok {
		_ = c.Close()
	}
	return Stop(p.cmd)
}

// Stop ends a process that was started here, and waits for it.
func Stop(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = cmd.Wait() // how it ended does not matter here
	return nil
}
