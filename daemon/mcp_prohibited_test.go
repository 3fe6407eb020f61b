package daemon

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// patternsOf is a configuration with a server that can be paid through, at whose
// payments patterns of risk look.
func patternsOf(patterns string) string {
	return "version: 1\nlisten:\n  pages: 127.0.0.1:0\nmcp:\n  servers:\n    a: {command: [" + os.Args[0] + "], env: [" + mcpServerEnv + "]}\nrisks:\n" + patterns
}

// shown is what tools/list has for a client, by name.
func shown(t *testing.T, s *sdk.ClientSession) string {
	t.Helper()
	r, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range r.Tools {
		names = append(names, strings.TrimPrefix(tool.Name, "a__"))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// attentive is a client that says when it is told of other tools.
func attentive(t *testing.T, transport sdk.Transport, version string) (*sdk.ClientSession, <-chan struct{}) {
	t.Helper()
	ch := make(chan struct{}, 16)
	c := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { ch <- struct{}{} }})
	s, err := c.Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, ch
}

// What a pattern prohibits to some agents is not listed to those, and to others it
// is (D37): whatever their door, by name and by kind, and as soon as other patterns
// are in force, of which every client is told. To call it is refused all the same.
func TestD37_prohibited_to_one_is_listed_to_others(t *testing.T) {
	t.Setenv(mcpServerEnv, "yes")
	const both, rest, old, now = "pay pid", "pid", "2025-11-25", "2026-07-28"
	d, c, down := up(t, patternsOf("  - {match: 'mcp/a/pay', agents: [eve], risk: PROHIBITED}\n  - {match: 'mcp/a/pay', kinds: [intern], risk: PROHIBITED}\n"))
	t.Cleanup(down)
	at, _ := d.pagesAt()
	by := func(agent, kind, path string) sdk.Transport {
		tok, err := c.Token(t.Context(), api.TokenAsk{Agent: agent, Kind: kind, Session: "s", TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return &sdk.StreamableClientTransport{Endpoint: at + path, HTTPClient: &http.Client{Transport: &asking{tok.Token}}}
	}
	piped := func(agent string) sdk.Transport {
		conn, err := c.MCP(t.Context(), api.Hello{Names: []string{"a"}, Agent: agent, Session: "s"})
		if err != nil {
			t.Fatal(err)
		}
		return &sdk.IOTransport{Reader: conn, Writer: conn}
	}
	type one struct {
		name    string
		s       *sdk.ClientSession
		changed <-chan struct{}
		before  string
		after   string
	}
	var all []*one
	for _, o := range []struct {
		name          string
		by            sdk.Transport
		before, after string
		version       string
	}{
		{"eve, all servers", by("eve", "", "/mcp"), rest, both, old},
		{"eve, one server", by("eve", "", "/mcp/a"), rest, both, old},
		{"eve, standard input", piped("eve"), rest, both, old},
		{"an intern", by("tom", "intern", "/mcp"), rest, rest, old},
		{"ada, all servers", by("ada", "", "/mcp"), both, rest, old},
		{"ada, one server", by("ada", "", "/mcp/a"), both, rest, old},
		{"ada, standard input", piped("ada"), both, rest, old},
		{"eve, all servers, new", by("eve", "", "/mcp"), rest, both, now},
		{"ada, one server, new", by("ada", "", "/mcp/a"), both, rest, now},
		{"ada, standard input, new", piped("ada"), both, rest, now},
	} {
		s, changed := attentive(t, o.by, o.version)
		all = append(all, &one{o.name, s, changed, o.before, o.after})
	}
	for _, o := range all {
		for range 2 { // the second answer may be kept from the first
			if got := shown(t, o.s); got != o.before {
				t.Errorf("%s is shown %q, not %q", o.name, got, o.before)
			}
		}
		if caps := o.s.InitializeResult().Capabilities; caps.Tools == nil || !caps.Tools.ListChanged {
			t.Errorf("%s is not promised that tools change", o.name)
		}
		if o.before == both {
			continue // it would wait for a person
		}
		r, err := o.s.CallTool(t.Context(), &sdk.CallToolParams{Name: toolOf(o.name), Arguments: map[string]any{"to": "x", "amount": 1}})
		if refused := err != nil || r.IsError && strings.Contains(said(r), "prohibit"); !refused {
			t.Errorf("%s calls what is not listed: %v", o.name, r)
		}
	}

	// Everybody but eve, now.
	text := patternsOf("  - {match: 'mcp/a/pay', risk: PROHIBITED}\n  - {match: 'mcp/a/pay', agents: [eve], risk: MEDIUM}\n")
	if err := os.WriteFile(d.opt.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		select {
		case <-o.changed:
		case <-time.After(time.Minute):
			t.Fatalf("%s is told nothing", o.name)
		}
		if got := shown(t, o.s); got != o.after {
			t.Errorf("%s is shown %q then, not %q", o.name, got, o.after)
		}
	}
}

func toolOf(client string) string {
	if strings.Contains(client, "all servers") || strings.Contains(client, "intern") {
		return "a__pay"
	}
	return "pay"
}

func said(r *sdk.CallToolResult) string {
	if len(r.Content) == 0 {
		return ""
	}
	text, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		return ""
	}
	return text.Text
}
