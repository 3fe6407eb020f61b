package kernel

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

	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// measureMemory measures the daemon with one MCP server idle behind it.
func measureMemory(b *measure.Run) (_ []measure.Figure, err error) {
	program, err := programs.FindHoldfast(b)
	if err != nil {
		return nil, err
	}
	state, config := filepath.Join(b.Dir, "memory"), filepath.Join(b.Dir, "memory.yaml")
	if err := os.WriteFile(config, []byte("version: 1\nlisten: {pages: none}\n"+fixture.Repeats+"\n"), 0o600); err != nil {
		return nil, err
	}
	up := exec.CommandContext(b.Ctx, program, "up", "--no-operator", "--state", state, "--config", config)
	up.Cancel = func() error { return up.Process.Signal(syscall.SIGTERM) }
	out, err := up.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := up.Start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, inflighttest.Stop(up)) }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the daemon did not start: %w", err)
	}
	client := exec.CommandContext(b.Ctx, program, append([]string{"mcp", "--state", state, "--config", config, "--name", "idle", "--"}, programs.RoleCommand(IdleRole)...)...)
	if err := greetServer(b, client); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, inflighttest.Stop(client)) }()
	time.Sleep(b.Span(3 * time.Second))
	rss, err := resident(up.Process.Pid)
	if err != nil {
		return nil, err
	}
	f := measure.Figure{Name: "daemon, one MCP server idle behind it", Measured: rss, Unit: "MB resident", Target: "< 45 MB"}
	f.Met = f.Measured < 45
	return []measure.Figure{f}, nil
}

// greetServer starts an MCP client's part and asks for the tools.
func greetServer(b *measure.Run, cmd *exec.Cmd) error {
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
			return errors.Join(fmt.Errorf("the MCP server behind the gates did not answer: %s", excerpt.Printable(line)), err, inflighttest.Stop(cmd))
		}
	}
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

// IdleRole is the role in which this program is ServeIdle.
const IdleRole = "idle-server"

// ServeIdle is an MCP server with one tool that nobody calls.
func ServeIdle(in io.Reader, out io.Writer) error {
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
