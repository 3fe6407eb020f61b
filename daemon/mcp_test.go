package daemon

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The test binary is also an MCP server, of the official SDK, where the
// variable says so.
const mcpServerEnv = "HOLDFAST_DAEMON_TEST_MCP"

func TestMain(m *testing.M) {
	sandboxtest.Faulty()
	RunHelperRole()
	insideWorkspace()
	if os.Getenv(mcpServerEnv) == "" {
		// The tests that run in parallel wait more than they compute.
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
		debug.SetGCPercent(400) // a tenth of the processor time went into collections
		code := m.Run()
		removeRuntimes()
		os.Exit(code)
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "t", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "pid", InputSchema: map[string]any{"type": "object"}, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(os.Getpid())}}}, nil
		})
	s.AddTool(&sdk.Tool{Name: "pay", InputSchema: map[string]any{"type": "object", "additionalProperties": false, "required": []string{"to", "amount"},
		"properties": map[string]any{"to": map[string]any{"type": "string"}, "amount": map[string]any{"type": "number"}}}},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "paid " + string(r.Params.Arguments)}}}, nil
		})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// withServers is a daemon whose pages' address serves two MCP servers.
func withServers(t *testing.T) (*Daemon, *api.Client, string) {
	t.Helper()
	t.Setenv(mcpServerEnv, "yes")
	d, c, down := up(t, fmt.Sprintf("version: 1\nlisten:\n  pages: 127.0.0.1:0\nmcp:\n  servers:\n    a: {command: [%[1]s], env: [%[2]s]}\n    b: {command: [%[1]s], env: [%[2]s]}\n", os.Args[0], mcpServerEnv))
	t.Cleanup(down)
	at, _ := d.pagesAt()
	return d, c, at
}

func giveToken(t *testing.T, c *api.Client, agent string) *api.Token {
	t.Helper()
	tok, err := c.Token(t.Context(), api.TokenAsk{Agent: agent, Session: "s", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// asking adds a bearer token, which may be changed, to each request.
type asking struct{ token string }

func (a *asking) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	return http.DefaultTransport.RoundTrip(r)
}

func reachMCP(t *testing.T, url, version string, a *asking) *sdk.ClientSession {
	t.Helper()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: a}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func pid(t *testing.T, s *sdk.ClientSession, tool string) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool})
	if err != nil || r.IsError {
		t.Fatalf("%v %+v", err, r)
	}
	return r.Content[0].(*sdk.TextContent).Text
}

// The pages' address serves the configured servers, together and each, to who
// brings a token: in the agent's name, and in the renewed token's too.
func TestServersOnThePages(t *testing.T) {
	d, c, at := withServers(t)
	d.repeats()
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		a := &asking{giveToken(t, c, "nightly").Token}
		all := reachMCP(t, at+"/mcp", version, a)
		first := pid(t, all, "a__pid")
		if second := pid(t, all, "b__pid"); second == first {
			t.Error("two servers are one process")
		}
		a.token = giveToken(t, c, "nightly").Token
		if again := pid(t, all, "a__pid"); again != first {
			t.Errorf("a renewed token began another session")
		}
		if one := reachMCP(t, at+"/mcp/b", version, a); pid(t, one, "pid") == "" {
			t.Error("no answer")
		}
		st, err := c.Status(t.Context())
		if err != nil || st.Servers["a"] == "" || !strings.HasPrefix(st.Servers["b"], "running") {
			t.Errorf("%v %+v", err, st.Servers)
		}
	}
	seen := 0
	err := d.store.View(t.Context(), func(tx kernel.Tx) error {
		agents, err := tx.Agents(holdfast.Local)
		for _, g := range agents {
			if g.Name == "nightly" {
				seen++
			}
		}
		return err
	})
	if err != nil || seen != 1 || countEvents(t, d, "agent_token_given") != 4 {
		t.Errorf("%v, nightly was seen %d times", err, seen)
	}
}

// Requests of two identities share nothing, whatever an agent claims.
func TestIdentitiesShareNoSession(t *testing.T) {
	_, c, at := withServers(t)
	one, two := &asking{giveToken(t, c, "one").Token}, &asking{giveToken(t, c, "two").Token}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		if pid(t, reachMCP(t, at+"/mcp/a", version, one), "pid") == pid(t, reachMCP(t, at+"/mcp/a", version, two), "pid") {
			t.Errorf("%s: two identities share a server", version)
		}
	}
}

// What cannot be verified gets 401 and an entry under the reserved tenant, and
// learns nothing of what is configured (D5).
func TestWithoutAGoodToken(t *testing.T) {
	d, c, at := withServers(t)
	good := giveToken(t, c, "nightly")
	revoked := giveToken(t, c, "nightly")
	if err := c.Revoke(t.Context(), api.Word{Subject: revoked.ID, Who: "ann", Why: "lost"}); err != nil {
		t.Fatal(err)
	}
	ask := func(path, authorization string) (int, string) {
		r, err := http.NewRequest("POST", at+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if (resp.StatusCode == 401) != (resp.Header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d without a challenge", path, resp.StatusCode)
		}
		return resp.StatusCode, string(b)
	}
	other, _, err := forger(t).Mint(holdfast.Identity{Principal: "agent:x", Agent: "x", Session: "s", Roles: []string{"agent"}}, time.Minute, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bad := []string{"", "Bearer a.b.c", "Basic eDp5", "Bearer " + good.Token[:len(good.Token)-4] + "AAAA", "Bearer " + other.Reveal(), "Bearer " + revoked.Token}
	before := unverified(t, d)
	for _, path := range []string{"/mcp", "/mcp/a", "/mcp/nobody"} {
		for _, authorization := range bad {
			code, said := ask(path, authorization)
			if code != 401 || strings.Contains(said, "configuration") {
				t.Errorf("%s with %.20q: %d %s", path, authorization, code, said)
			}
		}
	}
	// The revoked one is the agent's own, and recorded under its tenant.
	if n := unverified(t, d) - before; n != int64(3*(len(bad)-1)) {
		t.Errorf("%d entries", n)
	}
	if code, said := ask("/mcp/nobody", "Bearer "+good.Token); code != 404 || !strings.Contains(said, "the configuration has a, b") {
		t.Errorf("%d %s", code, said)
	}
}

// forger signs as the daemon does, with a key of its own.
func forger(t *testing.T) *token.Minter {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	m, err := token.NewMinter(key, localIssuer, localAudience)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func unverified(t *testing.T, d *Daemon) (n int64) {
	t.Helper()
	err := d.store.View(t.Context(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		for _, h := range heads {
			if h.Tenant == holdfast.Unverified {
				n = h.Size
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The key of a retry's state survives a restart, is another in another state,
// and is none of the key files.
func TestSealSurvives(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) []byte {
		d, err := Open(t.Context(), Options{State: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		return bytes.Clone(d.mcp.Seal)
	}
	first := open("a")
	if len(first) != 32 || !bytes.Equal(first, open("a")) {
		t.Error("the key does not survive")
	}
	if bytes.Equal(first, open("b")) {
		t.Error("two states have one key")
	}
	b, err := os.ReadFile(filepath.Join(dir, "a", "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b))
	if key, err := base64.StdEncoding.DecodeString(fields[len(fields)-1]); err != nil || bytes.Equal(key, first) {
		t.Errorf("the key is the sealing key itself, or that cannot be read: %v", err)
	}
}

// What a hello may not ask for is refused before anything is opened.
func TestHellos(t *testing.T) {
	d, _, down := up(t, quiet+"mcp:\n  servers:\n    a: {command: [/bin/true]}\n")
	defer down()
	long := 56 * time.Second
	for name, h := range map[string]api.Hello{
		"nobody":           {Names: []string{"a", "x"}},
		"both":             {Names: []string{"a"}, Command: []string{"/bin/true"}},
		"command and url":  {Name: "x", Command: []string{"/bin/true"}, URL: "http://127.0.0.1:1/"},
		"open to all":      {Names: []string{"a"}, Listen: "0.0.0.0:0"},
		"open to a name":   {Names: []string{"a"}, Listen: "example.com:0"},
		"no address":       {Names: []string{"a"}, Listen: "x"},
		"too long a wait":  {Names: []string{"a"}, Wait: &long},
		"plain http":       {Name: "x", URL: "http://example.com/mcp"},
		"no server at all": {Name: "x"},
	} {
		h.Agent = "t"
		if serve, err := d.mcp.Open(h); err == nil {
			t.Errorf("%s was opened", name)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_ = serve(ended, gone{})
		}
	}
}

type gone struct{}

func (gone) Read([]byte) (int, error)  { return 0, io.EOF }
func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (gone) Close() error              { return nil }
