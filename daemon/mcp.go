package daemon

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	mcp "github.com/holdfast-dev/holdfast/internal/frontend/mcp/service"
)

// newMCP returns the MCP endpoints of this state. Seal is the key of what clients bring
// back with a retry.
func (d *Daemon) newMCP(seal []byte) *mcp.Service {
	return mcp.New(mcp.Options{
		Kernel: d.frontKernel(), Config: func() mcp.Config { return mcpConfig{d.config()} }, Bearer: d.bearer,
		Tokens:   d.tokens,
		Commands: func() mcp.Commands { return d.commands() },
		Halted: func() bool {
			s, err := d.latch.Read()
			return s.Halted || err != nil || d.disabled() != ""
		},
		Page: d.pageURL, ReviewHint: d.decidingCommand, Seal: seal, Panicked: d.panicked,
		Engine: d.newToolEngine(), Mask: d.mask, Log: d.log, Person: person(), Version: d.opt.Version,
		Busy: &d.sessionsDone,
	})
}

// mask takes out of a server's words what the log must not hold.
func (d *Daemon) mask(line []byte) []byte { return d.engine.Text(line).Out }

// maskText is mask of a text.
func (d *Daemon) maskText(s string) string { return string(d.maskRecord([]byte(s))) }

// maskRecord masks a text of a record.
func (d *Daemon) maskRecord(text []byte) []byte { return d.texts.Text(text).Out }

// mcpConfig is a configuration as the MCP endpoints read it.
type mcpConfig struct{ *config.Config }

// Server implements mcp.Config.
func (c mcpConfig) Server(name string) (mcp.Server, bool) {
	s, ok := c.MCP.Servers[name]
	if !ok {
		return mcp.Server{}, false
	}
	return mcp.Server{
		Command: s.Command, Dir: s.Cwd, Env: s.Env, URL: s.URL, TrustedHints: s.TrustedHints, Sandbox: s.Sandbox,
		ReadHeaders: func() (map[string]holdfast.Secret, error) { return readHeaders(s.Headers) },
	}, true
}

// ServerNames implements mcp.Config.
func (c mcpConfig) ServerNames() []string { return slices.Sorted(maps.Keys(c.MCP.Servers)) }

// AllowsPlainHTTP implements mcp.Config.
func (c mcpConfig) AllowsPlainHTTP() bool { return c.Unsafe.PlainHTTP }

// ReviewWait implements mcp.Config.
func (c mcpConfig) ReviewWait() time.Duration { return time.Duration(*c.Review.Wait) }

func readHeaders(from map[string]config.HeaderConfig) (map[string]holdfast.Secret, error) {
	out := map[string]holdfast.Secret{}
	for name, h := range from {
		v, err := h.ReadValue(name)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}
