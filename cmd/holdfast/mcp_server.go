package main

import (
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
)

// server completes h from the command after "--", from a URL, or from names of
// configured servers.
func (a *app) server(h *api.Hello, rest []string, dashed bool) error {
	how := "`holdfast mcp -- SERVER ARGS...`, `holdfast mcp URL`, or `holdfast mcp NAME...` for servers of the configuration"
	switch {
	case h.All && len(rest) == 0 && h.Name == "":
		return nil
	case h.All:
		return usage(how, "mcp --all takes no server and no --name")
	case len(rest) == 0:
		return usage(how, "mcp needs a server")
	case dashed:
		h.Command = rest
		h.Name = or(h.Name, server.NameForCommand(rest))
		if _, err := exec.LookPath(rest[0]); err != nil {
			return fail("is it installed, and in PATH?", "the MCP server cannot be started: %v", err)
		}
		return nil
	case strings.Contains(rest[0], "://"):
		return remoteServer(h, rest, how)
	case h.Name != "":
		return usage(how, "mcp does not take %q with --name", strings.Join(rest, " "))
	}
	return a.configured(h, rest)
}

// remoteServer completes h from the address of a server.
func remoteServer(h *api.Hello, rest []string, how string) error {
	u, err := url.Parse(rest[0])
	switch {
	case len(rest) > 1:
		return usage(how, "mcp does not take %q", rest[1])
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return usage("write https://host/path", "%q is not the address of an MCP server", rest[0])
	case u.User != nil:
		return usage("a server of the configuration can have headers", "the address holds a user or a password")
	}
	h.URL, h.Name = rest[0], or(h.Name, u.Hostname())
	return nil
}

// configured completes h from names.
func (a *app) configured(h *api.Hello, names []string) error {
	path, err := config.FindPath(a.config, a.lookup)
	if err != nil {
		return err
	}
	l, err := config.Load(path)
	if err != nil {
		return err
	}
	known := strings.Join(slices.Sorted(maps.Keys(l.Config.MCP.Servers)), ", ")
	for _, name := range names {
		if _, ok := l.Config.MCP.Servers[name]; !ok {
			return usage("put -- before a command: `holdfast mcp -- "+name+"`", "the configuration has no MCP server %q%s", name, prefix("; it has ", known))
		}
	}
	if len(names) == 1 {
		h.Name = names[0]
	} else {
		h.Names = names
	}
	return nil
}
