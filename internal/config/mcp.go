package config

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/router"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// How long an MCP client that calls is kept waiting for a person.
const (
	defaultWait = Duration(50 * time.Second)
	MaxWait     = Duration(55 * time.Second)
)

func (k *checker) servers(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.MCP.Servers)) {
		s := c.MCP.Servers[name]
		if !serverName().MatchString(name) {
			k.fail(s.At, "use letters, digits, dot, dash and underscore", "%q is no name for a server",
				excerpt.Word(name))
		}
		switch {
		case s.Sandbox:
			k.own(name, s)
		case s.URL != "" && s.Command != nil:
			k.fail(s.At, "keep one of the two", "the server %q has a command and a url", excerpt.Word(name))
		case s.URL != "":
			k.remote(name, s, c.Unsafe.PlainHTTP)
		case s.Command == nil:
			k.fail(s.At, "write command: [PROGRAM, ARGS], url: https://host/mcp, or sandbox: true", "the server %q has neither a command nor a url", excerpt.Word(name))
		default:
			k.local(s)
		}
	}
	if why := router.FindNameCollision(slices.Sorted(maps.Keys(c.MCP.Servers))); why != "" {
		k.fail(k.at("mcp.servers"), "rename one of the two", "%s", why)
	}
}

// own judges the server that is Holdfast's own.
func (k *checker) own(name string, s ServerConfig) {
	if s.Command != nil || s.URL != "" || s.Headers != nil || s.Env != nil || s.Cwd != "" {
		k.fail(s.At, "leave everything else out", "the server %q is holdfast's own, and has no command, url, headers, env or cwd", excerpt.Word(name))
	}
}

// local judges a server that is started here.
func (k *checker) local(s ServerConfig) {
	k.command(s.At, s.Command)
	for _, v := range s.Env {
		if !register.IsEnvName(v) {
			k.fail(s.At, "env lists names, never values", "%q is no name of an environment variable",
				strings.SplitN(excerpt.Word(v), "=", 2)[0])
		}
	}
	if s.Headers != nil {
		k.fail(s.At, "a command is given what it needs by env", "headers belong to a url")
	}
}

// remote judges a server that is somewhere else.
func (k *checker) remote(name string, s ServerConfig, plain bool) {
	k.address(s.At, "url", s.URL, plain)
	if s.Env != nil || s.Cwd != "" {
		k.fail(s.At, "", "env and cwd belong to a command, and the server %q has a url", excerpt.Word(name))
	}
	for _, h := range slices.Sorted(maps.Keys(s.Headers)) {
		at := s.Headers[h].At
		if at == "" {
			at = s.At
		}
		switch from := s.Headers[h]; {
		case !headerName().MatchString(h):
			k.fail(at, "", "%q is not a header", excerpt.Word(h))
		case ownHeader(h):
			k.fail(at, "leave it out", "the header %s is made by holdfast itself", excerpt.Word(h))
		case (from.File == "") == (from.Env == ""):
			k.fail(at, "write {file: NAME} or {env: NAME}", "the header %s needs one of file and env", excerpt.Word(h))
		case from.Env != "" && !register.IsEnvName(from.Env):
			k.fail(at, "env names a variable and holds no value", "the header %s: that is no name of an environment variable", excerpt.Word(h))
		}
	}
}

// ownHeader says whether a header is part of the protocol or of HTTP itself.
func ownHeader(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "upgrade", "te", "trailer",
		"accept", "accept-encoding", "last-event-id":
		return true
	}
	return strings.HasPrefix(name, "mcp-") || strings.HasPrefix(name, "proxy-")
}

// headerFiles makes the names of headers' files absolute, and looks at them:
// what they hold is read when it is used, who could read it matters now.
func (r *reading) headerFiles(s ServerConfig) {
	for name, h := range s.Headers {
		if h.File == "" {
			continue
		}
		h.File = r.abs(h.File)
		s.Headers[name] = h
		if _, err := guard.ReadRegular(h.File, guard.MaxKeyFile, guard.CheckPrivate(h.File)); err != nil {
			r.unreadable(h.At, h.File, err)
		}
	}
}

// ReadValue reads a header's value. The error names the place and never the value.
func (h HeaderConfig) ReadValue(name string) (holdfast.Secret, error) {
	text, from := "", ""
	if h.Env != "" {
		v, ok := os.LookupEnv(h.Env)
		if !ok {
			return holdfast.Secret{}, usage.HintErrorf("set it where the daemon is started", "the header %s: the environment variable %s is not set", name, h.Env)
		}
		text, from = v, "the variable "+h.Env
	} else {
		b, err := guard.ReadRegular(h.File, guard.MaxKeyFile, guard.CheckPrivate(h.File))
		if err != nil {
			why, hint := usage.Explain(guard.ExplainReadError(h.File, err))
			return holdfast.Secret{}, usage.HintErrorf(hint, "the header %s: %s", name, why)
		}
		first, _, _ := strings.Cut(string(b), "\n")
		text, from = strings.TrimSuffix(first, "\r"), h.File
	}
	if text == "" || !credential.HeaderValue().MatchString(text) {
		return holdfast.Secret{}, usage.HintErrorf(
			"put the header's value there, in one line", "the header %s: %s does not hold a header's value", name, from,
		)
	}
	return holdfast.NewSecret(text), nil
}

// wait is how long a call is kept waiting for a person.
func (k *checker) wait(c *Config) {
	if *c.Review.Wait > MaxWait {
		k.fail(k.at("review.wait"), "clients give up on a call after a minute; a review stays open anyway", "review.wait is longer than 55s")
	}
}
