package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
)

func mcpCommand() command {
	return command{name: "mcp", about: "put MCP servers behind the gates", run: runMCP, help: `
Put an MCP server behind the gates: an MCP client starts this command in place
of the server's, or, with --http, reaches it at an address. Every tool is a
boundary, mcp/NAME/TOOL. Where no daemon runs, one is started, and ends when its
last client has gone.

    holdfast mcp [flags] -- SERVER ARGS...
    holdfast mcp [flags] URL                a server that speaks HTTP
    holdfast mcp [flags] NAME...            servers of the configuration
    holdfast mcp [flags] --all              all of them

Several servers stand behind one endpoint: their tools and prompts are shown as
NAME__TOOL, and one that ends is started again while the others go on.

    --name NAME      the server's name in boundaries; from SERVER if absent
    --http ADDR      serve clients over HTTP at ADDR, such as 127.0.0.1:8811,
                     until Ctrl-C
    --token          demand a bearer token of every HTTP request; it then says
                     who calls (see holdfast agent token)
    --wait DURATION  how long a call waits for a person: 0s to 55s
    --agent NAME     who calls; mcp if absent
    --kind KIND      the kind of agent, as the configuration lists them
    --session NAME   a new one for each start, if absent
    --chain NAME     the chain of steps its calls belong to, over sessions
    --env NAME       give the server this variable too; may be repeated
    --notify CMD     passed on to the daemon that is started

A daemon also serves the configured servers where it serves its pages, under
/mcp and /mcp/NAME, to whoever brings a token.

    $ holdfast mcp -- npx -y @modelcontextprotocol/server-filesystem .
    $ holdfast mcp --http 127.0.0.1:8811 --all
`}
}

// words is a flag that may be repeated.
type words []string

func (w *words) String() string { return strings.Join(*w, " ") }

func (w *words) Set(s string) error { *w = append(*w, s); return nil }

func runMCP(a *app, args []string) error {
	h, notify, err := a.hello(args)
	if err != nil {
		return err
	}
	if err := a.enabled(); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	conn, err := a.connect(p, h, notify)
	if err != nil {
		return err
	}
	if h.Listen != "" {
		return a.listening(conn, p, h)
	}
	return a.relay(conn, p)
}

// hello is what the command line asks of the daemon.
func (a *app) hello(args []string) (h api.Hello, notify string, err error) {
	fs := a.flags("mcp")
	var env words
	fs.StringVar(&h.Name, "name", "", "")
	fs.StringVar(&h.Agent, "agent", "mcp", "")
	fs.StringVar(&h.Kind, "kind", "", "")
	fs.StringVar(&h.Session, "session", "", "")
	fs.StringVar(&h.Chain, "chain", "", "")
	fs.Func("http", "", func(s string) error {
		if h.Listen = s; s == "" {
			return errors.New("it is an address to listen at, such as 127.0.0.1:8080")
		}
		return nil
	})
	fs.BoolVar(&h.Bearer, "token", false, "")
	fs.BoolVar(&h.All, "all", false, "")
	fs.Func("wait", "", func(s string) error {
		d, err := time.ParseDuration(s)
		if err == nil && (d < 0 || d > 55*time.Second) {
			err = errors.New("it is 0s to 55s")
		}
		h.Wait = &d
		return err
	})
	fs.Var(&env, "env", "")
	fs.StringVar(&notify, "notify", "", "")
	dashed := slices.Contains(args, "--")
	rest, err := a.parse(fs, args, 0, -1)
	if err != nil {
		return h, "", err
	}
	if err := a.local(); err != nil {
		return h, "", err
	}
	if err := (api.Ask{Agent: h.Agent, Kind: h.Kind, Session: h.Session, Chain: h.Chain}).Named(); err != nil {
		return h, "", usage("", "%s", err.(*holdfast.Error).Why)
	}
	if h.Bearer && h.Listen == "" {
		return h, "", usage("give --http ADDR too", "--token is for clients that come over HTTP")
	}
	if err := a.server(&h, rest, dashed); err != nil {
		return h, "", err
	}
	if h.Session == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return h, "", err
		}
		h.Session = id.String()
	}
	h.Env = server.Environment(os.Environ(), env)
	h.Dir, err = os.Getwd()
	return h, notify, err
}

// connect opens the connection, and once more where a lingering daemon ended
// after it had answered that it is there: it had not taken the connection.
func (a *app) connect(p daemon.Paths, h api.Hello, notify string) (conn io.ReadWriteCloser, err error) {
	for range 3 {
		var c *api.Client
		if c, _, err = a.daemon(p, notify); err != nil {
			return nil, err
		}
		conn, err = c.MCP(a.ctx, h)
		if refused := (*holdfast.Error)(nil); err == nil || errors.As(err, &refused) || a.ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}

// listening says where clients are served, and waits until that is over.
func (a *app) listening(conn io.ReadWriteCloser, p daemon.Paths, h api.Hello) error {
	defer conn.Close()
	stop := context.AfterFunc(a.ctx, func() { _ = conn.Close() })
	defer stop()
	ended := fail("look into "+p.Log, "the daemon ended")
	in := bufio.NewReader(io.LimitReader(conn, 64<<10))
	line, err := in.ReadBytes('\n')
	var l api.Listening
	if err == nil {
		err = json.Unmarshal(line, &l)
	}
	if err != nil {
		if a.ctx.Err() != nil {
			return nil
		}
		return ended
	}
	if host, _, err := net.SplitHostPort(h.Listen); err == nil && !netaddr.IsLoopbackHost(host) {
		a.say("what crosses the network here is not encrypted, tokens included: put TLS in front of it")
	}
	if a.json {
		err = a.printJSON(l)
	} else {
		_, err = fmt.Fprintf(a.out, "listening on %s\n", l.URL)
	}
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, in)
	if a.ctx.Err() != nil {
		return nil
	}
	return ended
}
