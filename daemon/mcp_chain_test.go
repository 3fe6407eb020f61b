package daemon

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a client of a stdio server does counts in the chain that it was started
// for, over agents and sessions (spec 001, layer 1, "per dispatch chain").
func Test001_Layer1_a_gateways_calls_count_in_their_chain(t *testing.T) {
	t.Setenv(mcpServerEnv, "yes")
	_, c, down := up(t, "version: 1\nlisten: {pages: none}\nboundaries:\n  - {boundary: mcp/a/*, risk: MEDIUM, permissions: [mcp:call], consumes: {messages: 1}}\n"+
		"budgets:\n  - {scope: chain, resource: messages, amount: 2}\nmcp:\n  servers:\n    a: {command: ["+os.Args[0]+"], env: ["+mcpServerEnv+"]}\n")
	t.Cleanup(down)
	in := func(agent, chain string) string {
		conn, err := c.MCP(t.Context(), api.Hello{Names: []string{"a"}, Agent: agent, Session: agent + "-s", Chain: chain})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := attentive(t, &sdk.IOTransport{Reader: conn, Writer: conn}, "2025-11-25")
		defer s.Close()
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "pid"})
		if err != nil {
			return err.Error()
		}
		if !r.IsError {
			return ""
		}
		return said(r)
	}
	for i, ask := range []struct {
		agent, chain string
		no           bool
	}{{"ada", "nightly", false}, {"bea", "nightly", false}, {"carl", "nightly", true}, {"carl", "weekly", false}, {"carl", "", false}} {
		why := in(ask.agent, ask.chain)
		if ask.no != strings.Contains(why, "messages per chain") || !ask.no && why != "" {
			t.Errorf("call %d of %s in %q: %q", i+1, ask.agent, ask.chain, why)
		}
	}
	if _, err := c.MCP(t.Context(), api.Hello{Names: []string{"a"}, Agent: "ada", Chain: "a\nb"}); err == nil {
		t.Error("a chain with a line break was taken")
	}
}
