package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memory measures the daemon with one MCP server idle behind it.
func (b *bench) memory() (_ []figure, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	state, config := filepath.Join(b.dir, "memory"), filepath.Join(b.dir, "memory.yaml")
	if err := os.WriteFile(config, []byte("version: 1\nlisten: {pages: none}\n"+benchRepeats+"\n"), 0o600); err != nil {
		return nil, err
	}
	up := exec.CommandContext(b.ctx, self, "up", "--no-operator", "--state", state, "--config", config)
	up.Cancel = func() error { return up.Process.Signal(syscall.SIGTERM) }
	out, err := up.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := up.Start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end(up)) }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the daemon did not start: %w", err)
	}
	client := exec.CommandContext(b.ctx, self, "mcp", "--state", state, "--config", config, "--name", "idle", "--", self, "bench", "kernel", "--idle-server")
	if err := b.greet(client); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end(client)) }()
	time.Sleep(b.span(3 * time.Second))
	rss, err := resident(up.Process.Pid)
	if err != nil {
		return nil, err
	}
	f := figure{Name: "daemon, one MCP server idle behind it", Measured: rss, Unit: "MB resident", Target: "< 45 MB"}
	f.Met = f.Measured < 45
	return []figure{f}, nil
}

// greet starts an MCP client's part and asks for the tools.
func (b *bench) greet(cmd *exec.Cmd) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	} {
		if _, err := io.WriteString(in, m+"\n"); err != nil {
			return err
		}
		if !strings.Contains(m, `"id"`) {
			continue
		}
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, `"result"`) {
			return errors.Join(fmt.Errorf("the MCP server behind the gates did not answer: %s", clean(line)), err, end(cmd))
		}
	}
	return nil
}

// end ends a process that was started here, and waits for it.
func end(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = cmd.Wait() // how it ended does not matter here
	return nil
}

// resident is how much memory of a process is in RAM, in MB of a million
// bytes.
func resident(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		if b, err = exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output(); err != nil {
			return 0, err
		}
		b = append([]byte("VmRSS: "), b...)
	}
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) > 1 && f[0] == "VmRSS:" {
			kb, err := strconv.ParseFloat(f[1], 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, errors.New("the process does not say how much memory it uses")
}

// idleServer is an MCP server with one tool that nobody calls.
func idleServer(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		if m.ID == nil {
			continue
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"idle","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"nothing","description":"does nothing","inputSchema":{"type":"object"}}]}`
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result); err != nil {
			return err
		}
	}
	return lines.Err()
}
