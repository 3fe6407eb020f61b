package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// peer is a server of the official SDK, and what it saw.
type peer struct {
	*httptest.Server
	canceled chan string
	over     chan struct{}
}

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

func words(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// sdkServer serves tools that use each part of the transport.
func sdkServer(t *testing.T, o *sdk.StreamableHTTPOptions) *peer {
	p := &peer{canceled: make(chan string, 8), over: make(chan struct{})}
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "sum"}, func(_ context.Context, _ *sdk.CallToolRequest, in sumIn) (*sdk.CallToolResult, any, error) {
		return words(fmt.Sprint(in.A + in.B)), nil, nil
	})
	s.AddTool(&sdk.Tool{Name: "where", InputSchema: map[string]any{"type": "object", "properties": map[string]any{
		"region": map[string]any{"type": "string", "x-mcp-header": "Region"},
		"deep": map[string]any{"type": "object", "properties": map[string]any{
			"n": map[string]any{"type": "integer", "x-mcp-header": "count-n"}}},
	}}}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return words(r.Extra.Header.Get("Mcp-Param-Region") + "|" + r.Extra.Header.Get("Mcp-Param-Count-N")), nil
	})
	object := map[string]any{"type": "object"}
	s.AddTool(&sdk.Tool{Name: "steps", InputSchema: object}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1)}); err != nil {
				return nil, err
			}
		}
		return words("stepped"), nil
	})
	s.AddTool(&sdk.Tool{Name: "wait", InputSchema: object}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		p.canceled <- "waits"
		select {
		case <-ctx.Done():
			p.canceled <- "cancelled"
		case <-p.over:
		}
		return nil, ctx.Err()
	})
	s.AddTool(&sdk.Tool{Name: "breaks", InputSchema: object}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 60 * time.Millisecond})
		time.Sleep(10 * time.Millisecond)
		return words("after the break"), nil
	})
	s.AddTool(&sdk.Tool{Name: "asks", InputSchema: object}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		a, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "give me", RequestedSchema: object})
		if err != nil {
			return nil, err
		}
		return words("client says " + a.Action), nil
	})
	s.AddTool(&sdk.Tool{Name: "grows", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.AddTool(&sdk.Tool{Name: "grown", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return words("x"), nil
		})
		return words("grown"), nil
	})
	p.Server = httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o))
	t.Cleanup(func() { close(p.over); p.CloseClientConnections(); p.Server.Close() })
	return p
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func dial(t *testing.T, url string, change ...func(*Config)) *Conn {
	t.Helper()
	cfg := Config{Name: "peer", URL: url, Log: testLog(t)}
	for _, f := range change {
		f(&cfg)
	}
	c, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// client is the official SDK's, speaking lines.
func client(t *testing.T, c *Conn, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).
		Connect(t.Context(), &sdk.IOTransport{Reader: c, Writer: c}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func call(t *testing.T, s *sdk.ClientSession, tool string, args any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p := &sdk.CallToolParams{Name: tool, Arguments: args}
	p.SetProgressToken("p")
	r, err := s.CallTool(ctx, p)
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, x := range r.Content {
		b.WriteString(x.(*sdk.TextContent).Text)
	}
	return b.String()
}

// TestSDK holds the transport against the SDK's server, in each revision and
// way to serve, with the SDK's client on the side of lines.
func TestSDK(t *testing.T) {
	for name, o := range map[string]*sdk.StreamableHTTPOptions{
		"sessions":       {EventStore: sdk.NewMemoryEventStore(nil)},
		"stateless":      {Stateless: true, PropagateRequestCancellation: true},
		"sessions, json": {JSONResponse: true},
		"stateless,json": {Stateless: true, JSONResponse: true, PropagateRequestCancellation: true},
	} {
		for _, version := range sdk.SupportedProtocolVersions() {
			t.Run(name+" "+version, func(t *testing.T) { speak(t, o, version) })
		}
	}
}

func speak(t *testing.T, o *sdk.StreamableHTTPOptions, version string) {
	p := sdkServer(t, o)
	c := dial(t, p.URL)
	progress, changed := make(chan float64, 8), make(chan bool, 8)
	s := client(t, c, version, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { changed <- true },
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept"}, nil
		},
	})
	// A server with sessions refuses what has none, and the client falls back.
	want := version
	if !o.Stateless && version >= mcp.StatelessSince {
		want = "2025-11-25"
	}
	got := s.InitializeResult().ProtocolVersion
	if got != want {
		t.Errorf("agreed on %s, want %s", got, want)
	}
	modern, json := got >= mcp.StatelessSince, o.JSONResponse
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) < 7 {
		t.Fatalf("tools: %v", err)
	}
	if got := call(t, s, "sum", map[string]any{"a": 2, "b": 40}); got != "42" {
		t.Errorf("sum: %s", got)
	}
	if modern {
		if got := call(t, s, "where", map[string]any{"region": "Zürich", "deep": map[string]any{"n": 7}}); got != "=?base64?WsO8cmljaA==?=|7" {
			t.Errorf("where: %s", got)
		}
	}
	if !json {
		if got := call(t, s, "steps", nil); got != "stepped" {
			t.Errorf("steps: %s", got)
		}
		for want := range 3 {
			if got := <-progress; got != float64(want+1) {
				t.Errorf("progress %v, want %d", got, want+1)
			}
		}
	}
	cancels(t, p, s, !modern && o.Stateless)
	if modern || o.Stateless || json {
		return
	}
	if got := call(t, s, "asks", nil); got != "client says accept" {
		t.Errorf("asks: %s", got)
	}
	if version >= "2025-11-25" {
		if got := call(t, s, "breaks", nil); got != "after the break" {
			t.Errorf("breaks: %s", got)
		}
	}
	call(t, s, "grows", nil)
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Error("a changed list was not heard of")
	}
}

// cancels makes a call and cancels it; deaf servers never hear of that.
func cancels(t *testing.T, p *peer, s *sdk.ClientSession, deaf bool) {
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "wait"})
		errs <- err
	}()
	if got := <-p.canceled; got != "waits" {
		t.Fatalf("got %q", got)
	}
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	if deaf {
		return
	}
	select {
	case <-p.canceled:
	case <-time.After(time.Minute):
		t.Error("the server did not hear of the cancellation")
	}
}
