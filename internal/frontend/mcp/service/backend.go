package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/remote"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/router"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// backend is one MCP server as it is opened, each time it is.
type backend struct {
	name    string
	agent   string
	trusted bool
	cmd     server.Command
	// url is set where the server is somewhere else; cmd is then nothing.
	url     string
	headers func() (map[string]holdfast.Secret, error)
	plain   bool
	// code says that it is Holdfast's own, which runs code.
	code bool
}

// servers is what a hello asks for. Configuration speaks for a name: nobody
// else's command or address may take it, and with it the trust in its hints and
// its contracts.
func (s *Service) servers(h api.Hello) ([]backend, error) {
	switch {
	case h.All || len(h.Names) > 0:
		if len(h.Command) > 0 || h.URL != "" || h.Name != "" {
			return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "an MCP endpoint has configured servers or one of its own, not both"}
		}
		return s.configured(h)
	case len(h.Command) > 0 && h.URL != "":
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "an MCP server has a command or a url, not both"}
	}
	b, err := s.backend(h)
	if err != nil {
		return nil, err
	}
	return []backend{b}, nil
}

// configured is the servers of the configuration that a hello names.
func (s *Service) configured(h api.Hello) ([]backend, error) {
	all := s.Config()
	names := slices.Clone(h.Names)
	if h.All {
		names = all.ServerNames()
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 || len(names) > router.MaxServers {
		return nil, &holdfast.Error{Kind: holdfast.KindUsage,
			Why:  fmt.Sprintf("an MCP endpoint has 1 to %d servers, not %d", router.MaxServers, len(names)),
			Hint: "mcp.servers in the configuration lists them"}
	}
	var out []backend
	for _, name := range names {
		if _, ok := all.Server(name); !ok {
			return nil, unknownServer(name, all.ServerNames())
		}
		b, err := s.backend(api.Hello{Name: name, Agent: h.Agent, Env: h.Env})
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func unknownServer(name string, configured []string) error {
	hint := "mcp.servers in the configuration lists none"
	if len(configured) > 0 {
		hint = "the configuration has " + strings.Join(configured, ", ")
	}
	return &holdfast.Error{Kind: holdfast.KindNotFound,
		Why: fmt.Sprintf("the configuration has no MCP server %q", excerpt.Word(name)), Hint: hint}
}

// backend is one server: of the configuration, or of the hello.
func (s *Service) backend(h api.Hello) (backend, error) {
	now := s.Config()
	b := backend{name: h.Name, agent: h.Agent, url: h.URL, plain: now.AllowsPlainHTTP()}
	b.cmd = server.Command{Name: h.Name, Argv: h.Command, Dir: h.Dir, Env: h.Env, Log: s.Log, Mask: s.Mask}
	c, configured := now.Server(h.Name)
	if !configured {
		return b, nil
	}
	taken := func(what string) error {
		return &holdfast.Error{Kind: holdfast.KindConflict, Why: "the configuration names another " + what + " for the MCP server " + h.Name,
			Hint: "leave the " + what + " out, or give this one another --name"}
	}
	switch {
	case len(h.Command) > 0 && !slices.Equal(h.Command, c.Command):
		return b, taken("command")
	case h.URL != "" && h.URL != c.URL:
		return b, taken("url")
	}
	b.trusted, b.url, b.headers, b.code = c.TrustedHints || c.Sandbox, c.URL, c.ReadHeaders, c.Sandbox
	if len(h.Command) == 0 {
		b.cmd.Argv, b.cmd.Dir = c.Command, c.Dir
		b.cmd.Env = append(slices.Clone(h.Env), c.Env...)
	}
	return b, nil
}

// maskText returns a text without what the log must not hold.
func (s *Service) maskText(text string) string { return string(s.Mask([]byte(text))) }

// mayOpen is asked before each start of a server: it is recorded first, and
// refused while everything is halted.
func (s *Service) mayOpen(b backend) func(context.Context) error {
	return func(context.Context) error {
		if s.Halted() {
			return &holdfast.Error{Kind: holdfast.KindHalted, Why: "everything is halted: no MCP server is started", Hint: "a person can lift it with `holdfast resume`"}
		}
		return s.Kernel.Record(b.event(s.Person))
	}
}

// open starts or reaches a server once.
func (s *Service) open(ctx context.Context, b backend) (gateway.Conn, error) {
	if err := s.mayOpen(b)(ctx); err != nil {
		return nil, err
	}
	if b.url == "" {
		return started(server.Start(b.cmd))
	}
	var header map[string]holdfast.Secret
	if b.headers != nil {
		var err error
		if header, err = b.headers(); err != nil {
			return nil, err
		}
	}
	c, err := remote.Dial(ctx, remote.Config{Name: quoted(b.name), URL: b.url, Header: header, Plaintext: b.plain,
		Log: s.Log, Mask: s.Mask})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// started keeps a nil process from becoming a connection that is not nil.
func started(p *server.Process, err error) (gateway.Conn, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// event records that a server is started or reached. What an address holds
// beside its host may be secret.
func (b backend) event(person string) kernel.Event {
	data := map[string]any{"agent": excerpt.Word(b.agent)}
	name := "mcp_server_started"
	if b.code {
		data["program"] = "holdfast itself"
	} else if b.url != "" {
		name = "mcp_server_reached"
		if u, err := url.Parse(b.url); err == nil {
			data["host"] = excerpt.Word(u.Host)
		}
		sum := sha256.Sum256([]byte(b.url))
		data["url_sha256"] = hex.EncodeToString(sum[:])
	} else {
		sum := sha256.Sum256([]byte(strings.Join(b.cmd.Argv, "\x00")))
		data["argv_sha256"] = hex.EncodeToString(sum[:])
		data["program"] = ""
		if len(b.cmd.Argv) > 0 {
			data["program"] = excerpt.Word(filepath.Base(b.cmd.Argv[0]))
		}
	}
	return kernel.Event{Tenant: holdfast.Local, Name: name, Who: person, Subject: excerpt.Word(b.name), Data: data}
}

// quoted keeps a name from writing lines of its own into a log.
func quoted(s string) string { return strconv.QuoteToGraphic(excerpt.Word(s)) }
