package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/api"
	"github.com/holdfast-dev/holdfast/internal/mcp/server"
)

func mcpCommand() command {
	return command{name: "mcp", about: "put an MCP server behind the gates", run: runMCP, help: `
Put an MCP server behind the gates, over standard input and output: an MCP
client starts this command in place of the server's. Every tool is a boundary,
mcp/NAME/TOOL. Where no daemon runs, one is started, and ends when its last
client has gone.

    holdfast mcp [flags] -- SERVER ARGS...
    holdfast mcp [flags] NAME               a server of the configuration

    --name NAME      the server's name in boundaries; from SERVER if absent
    --agent NAME     who calls; mcp if absent
    --kind KIND      the kind of agent, as the configuration lists them
    --session NAME   a new one for each start, if absent
    --env NAME       give the server this variable too; may be repeated
    --notify CMD     passed on to the daemon that is started

    $ holdfast mcp -- npx -y @modelcontextprotocol/server-filesystem .
`}
}

// words is a flag that may be repeated.
type words []string

func (w *words) String() string     { return strings.Join(*w, " ") }
func (w *words) Set(s string) error { *w = append(*w, s); return nil }

func runMCP(a *app, args []string) error {
	fs := a.flags("mcp")
	var h api.Hello
	var env words
	fs.StringVar(&h.Name, "name", "", "")
	fs.StringVar(&h.Agent, "agent", "mcp", "")
	fs.StringVar(&h.Kind, "kind", "", "")
	fs.StringVar(&h.Session, "session", "", "")
	fs.Var(&env, "env", "")
	notify := fs.String("notify", "", "")
	dashed := slices.Contains(args, "--")
	rest, err := a.parse(fs, args, 1, -1)
	if err != nil {
		return err
	}
	if err := (api.Ask{Agent: h.Agent, Kind: h.Kind, Session: h.Session}).Named(); err != nil {
		return usage("", "%s", err.(*holdfast.Error).Why)
	}
	if err := a.enabled(); err != nil {
		return err
	}
	if err := a.server(&h, rest, dashed); err != nil {
		return err
	}
	if h.Session == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return err
		}
		h.Session = id.String()
	}
	h.Env = server.Environment(os.Environ(), env)
	if h.Dir, err = os.Getwd(); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	conn, err := a.connect(p, h, *notify)
	if err != nil {
		return err
	}
	return a.relay(conn, p)
}

// connect opens the connection, and once more where a lingering daemon ended
// after it had answered that it is there: it had not taken the connection.
func (a *app) connect(p daemon.Paths, h api.Hello, notify string) (conn io.ReadWriteCloser, err error) {
	for range 3 {
		var c *api.Client
		if c, err = a.daemon(p, notify); err != nil {
			return nil, err
		}
		conn, err = c.MCP(a.ctx, h)
		if refused := (*holdfast.Error)(nil); err == nil || errors.As(err, &refused) || a.ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}

// server completes h from the command after "--", or from the name of a
// configured server.
func (a *app) server(h *api.Hello, rest []string, dashed bool) error {
	if dashed {
		h.Command = rest
		h.Name = or(h.Name, serverName(rest))
		if _, err := exec.LookPath(rest[0]); err != nil {
			return fail("is it installed, and in PATH?", "the MCP server cannot be started: %v", err)
		}
		return nil
	}
	if len(rest) != 1 || h.Name != "" {
		return usage("`holdfast mcp -- SERVER ARGS...`, or `holdfast mcp NAME` for a server of the configuration", "mcp does not take %q", strings.Join(rest, " "))
	}
	config, err := daemon.FindConfig(a.config, a.lookup)
	if err != nil {
		return err
	}
	l, err := daemon.Load(config)
	if err != nil {
		return err
	}
	if _, ok := l.Config.MCP.Servers[rest[0]]; !ok {
		known := strings.Join(slices.Sorted(maps.Keys(l.Config.MCP.Servers)), ", ")
		return usage("put -- before a command: `holdfast mcp -- "+rest[0]+"`", "the configuration has no MCP server %q%s", rest[0], prefix("; it has ", known))
	}
	h.Name = rest[0]
	return nil
}

// runs says whether a program starts another one that is named further on.
func runs(program string) bool {
	switch program {
	case "npx", "bunx", "pnpx", "uvx", "pipx", "npm", "pnpm", "yarn", "bun", "deno", "uv", "node",
		"python", "python3", "go", "docker", "podman", "env", "sh", "bash":
		return true
	}
	return false
}

// between says whether an argument stands between such a program and what it
// runs.
func between(arg string) bool {
	switch arg {
	case "run", "exec", "dlx", "x", "tool", "create":
		return true
	}
	return strings.HasPrefix(arg, "-")
}

// serverName makes the server's name of its command: the last path element of
// the package or program, without version, suffix and the prefixes that all
// servers share.
func serverName(argv []string) string {
	i := 0
	for i < len(argv)-1 && (i == 0 && runs(path.Base(argv[0])) || i > 0 && between(argv[i])) {
		i++
	}
	name := path.Base(argv[i])
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	for _, ext := range []string{".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".exe"} {
		name = strings.TrimSuffix(name, ext)
	}
	for _, p := range []string{"mcp-server-", "mcp_server_", "server-", "server_"} {
		if short, ok := strings.CutPrefix(name, p); ok && short != "" {
			return short
		}
	}
	return name
}

// startTime is how long a daemon that was started may take to answer.
const startTime = 10 * time.Second

// daemon returns a client of the daemon, starting one where nobody listens.
func (a *app) daemon(p daemon.Paths, notify string) (*api.Client, error) {
	c, _, err := api.Dial(a.ctx, p.Sock)
	if err == nil {
		return c, nil
	}
	if !errors.Is(err, api.ErrNobody) {
		return nil, a.silent(p, err)
	}
	ended, from, err := a.startDaemon(notify)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(a.ctx, startTime)
	defer cancel()
	for {
		c, _, err := api.Dial(ctx, p.Sock)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, a.didNotStart(p, from, "it did not answer within "+startTime.String())
		case how := <-ended:
			// Another client's daemon may have been faster.
			if c, _, err := api.Dial(ctx, p.Sock); err == nil {
				return c, nil
			}
			if holder := daemon.Process(p); holder.PID > 0 && ctx.Err() == nil {
				ended = nil
				continue
			}
			return nil, a.didNotStart(p, from, how)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startDaemon starts `holdfast up --linger` in a session of its own, its
// output in the state's log from the offset that is returned on.
func (a *app) startDaemon(notify string) (<-chan string, int64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	log, err := a.openLog()
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, 0, err
	}
	args := []string{"up", "--linger", "--state", a.touched}
	if a.config != "" {
		args = append(args, "--config", a.config)
	}
	if notify != "" {
		args = append(args, "--notify", notify)
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	ended := make(chan string, 1)
	go func() {
		_ = cmd.Wait()
		ended <- cmd.ProcessState.String()
	}()
	return ended, info.Size(), nil
}

// didNotStart is the error with what the daemon itself said last.
func (a *app) didNotStart(p daemon.Paths, from int64, how string) error {
	said, hint := "", "look into "+p.Log+", or try `"+a.forState("holdfast up")+"`"
	if f, err := os.Open(p.Log); err == nil {
		defer f.Close()
		b, _ := io.ReadAll(io.NewSectionReader(f, from, 64<<10))
		for line := range bytes.Lines(b) {
			text := strings.TrimSpace(string(line))
			if why, ok := strings.CutPrefix(text, "holdfast: "); ok {
				said += "\n" + why
			}
			if h, ok := strings.CutPrefix(text, "hint: "); ok {
				hint = h
			}
		}
	}
	if said == "" {
		said = " " + how
	}
	return fail(hint, "the daemon did not start:%s", said)
}
