package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The test binary is also the server of the official SDK, restricted to the
// protocol versions that the variable lists, or to none.
const sdkEnv = "HOLDFAST_TEST_SDK_SERVER"

func TestMain(m *testing.M) {
	if versions, ok := os.LookupEnv(sdkEnv); ok {
		if err := sdkServer(versions); err != nil && !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

func text1(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

func sdkServer(versions string) error {
	o := &sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{Resources: &sdk.ResourceCapabilities{ListChanged: true}, Prompts: &sdk.PromptCapabilities{}}}
	if versions != "" {
		o.SupportedProtocolVersions = strings.Fields(versions)
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "sums", Version: "1"}, o)
	s.AddResource(&sdk.Resource{Name: "r", URI: "file:///r"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "file:///r", Text: "r"}}}, nil
	})
	object := map[string]any{"type": "object"}
	read := &sdk.ToolAnnotations{ReadOnlyHint: true}
	sdk.AddTool(s, &sdk.Tool{Name: "sum", Annotations: read},
		func(_ context.Context, _ *sdk.CallToolRequest, in sumIn) (*sdk.CallToolResult, sumOut, error) {
			return nil, sumOut{in.A + in.B}, nil
		})
	s.AddTool(&sdk.Tool{Name: "format", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text1("formatted"), nil
	})
	s.AddTool(&sdk.Tool{Name: "forbidden", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text1("done all the same"), nil
	})
	s.AddTool(&sdk.Tool{Name: "steps", InputSchema: object, Annotations: read}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			p := &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		return text1("stepped"), nil
	})
	s.AddTool(&sdk.Tool{Name: "wait", InputSchema: object, Annotations: read}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "waiting")
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "cancelled")
		return nil, ctx.Err()
	})
	s.AddTool(&sdk.Tool{Name: "fails", InputSchema: object, Annotations: read}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text1("no such sum")
		r.IsError = true
		return r, nil
	})
	s.AddTool(&sdk.Tool{Name: "asks", InputSchema: object, Annotations: read}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		//lint:ignore SA1019 servers of older protocols ask this
		_, roots := r.Session.ListRoots(ctx, nil)
		_, elicit := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "give me"})
		return text1(fmt.Sprintf("roots: %v; elicit: %v", roots, elicit)), nil
	})
	s.AddTool(&sdk.Tool{Name: "needs", InputSchema: object, Annotations: read}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"a": &sdk.ElicitParams{Message: "give me"}}, RequestState: "s"}, nil
	})
	s.AddTool(&sdk.Tool{Name: "goes_on", InputSchema: object, Annotations: read}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Params.RequestState == "" {
			//lint:ignore SA1019 servers may still ask it
			roots := &sdk.ListRootsParams{}
			return &sdk.CallToolResult{RequestState: "half way",
				InputRequests: sdk.InputRequestMap{"name": &sdk.ElicitParams{Message: "who?"}, "roots": roots}}, nil
		}
		said, err := json.Marshal(r.Params.InputResponses)
		return text1(r.Params.RequestState + " " + string(said)), err
	})
	return s.Run(context.Background(), &sdk.StdioTransport{})
}

// child is a server process as the gateway sees it.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	io.Reader
	ended chan struct{}
	err   error
}

func (c *child) Write(b []byte) (int, error) { return c.in.Write(b) }

func (c *child) Close() error { c.in.Close(); <-c.ended; return nil }

func (c *child) Exit(ctx context.Context) error {
	select {
	case <-c.ended:
		if c.err == nil {
			return errors.New("exit status 0")
		}
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func spawn(t *testing.T, versions string) (*child, *gatewaytest.Peer) {
	t.Helper()
	r, w := io.Pipe()
	errs, says := gatewaytest.Pair()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), sdkEnv+"="+versions)
	cmd.Stdout, cmd.Stderr = w, errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, in: in, Reader: r, ended: make(chan struct{})}
	go func() { c.err = cmd.Wait(); w.Close(); errs.Close(); close(c.ended) }()
	return c, says
}

// sdkRig is the official client and the official server with the gateway
// between them.
type sdkRig struct {
	k        *gateway.Table
	session  *sdk.ClientSession
	stderr   *gatewaytest.Peer
	progress atomic.Int32
	asked    atomic.Int32
	// elicited is what the client does when it is asked; nil accepts.
	elicited func(*sdk.ElicitParams) string
}

func startSDK(t *testing.T, version, versions string, change ...func(*sdkRig, *gateway.Config)) *sdkRig {
	t.Helper()
	g := &sdkRig{k: gateway.NewTable()}
	cfg := gateway.Config{Kernel: g.k, Server: "sums", Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Token: gateway.GoodToken}
	for _, f := range change {
		f(g, &cfg)
	}
	g.k.SetRisk("mcp/sums/forbidden", holdfast.Prohibited)
	server, says := spawn(t, versions)
	g.stderr = says
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- gateway.Serve(context.Background(), gateway.Lines(&gatewaytest.Stream{Reader: inR, Writer: outW,
			OnClose: func() { inR.Close(); outW.Close() }}), server, cfg)
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, g.options())
	//lint:ignore SA1019 servers may still ask for them
	client.AddRoots(&sdk.Root{URI: "file:///work"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	g.session, err = client.Connect(ctx, &sdk.IOTransport{Reader: outR, Writer: inW}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		g.session.Close()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Serve did not return")
		}
	})
	return g
}

// options are the client's: it counts what it hears and is asked.
func (g *sdkRig) options() *sdk.ClientOptions {
	return &sdk.ClientOptions{
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) {},
		ResourceListChangedHandler:  func(context.Context, *sdk.ResourceListChangedRequest) {},
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { g.progress.Add(1) },
		//lint:ignore SA1019 servers may still ask for roots
		Capabilities: &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{},
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			g.asked.Add(1)
			if g.elicited != nil {
				return &sdk.ElicitResult{Action: g.elicited(r.Params)}, nil
			}
			return &sdk.ElicitResult{Action: "accept"}, nil
		},
	}
}

func (g *sdkRig) call(t *testing.T, name string, args any) (*sdk.CallToolResult, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := &sdk.CallToolParams{Name: name, Arguments: args}
	p.SetProgressToken("p-" + name)
	r, err := g.session.CallTool(ctx, p)
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	said := ""
	for _, c := range r.Content {
		if tc, ok := c.(*sdk.TextContent); ok {
			said += tc.Text
		}
	}
	return r, said
}

// TestOfficialSDK runs the official client against the official server, at
// both protocols and where the client falls back.
func TestOfficialSDK(t *testing.T) {
	for _, c := range []struct{ name, version, versions, want string }{
		{"2026-07-28", "2026-07-28", "", "2026-07-28"},
		{"2025-11-25", "2025-11-25", "", "2025-11-25"},
		{"old server", "2026-07-28", "2025-11-25", "2025-11-25"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := startSDK(t, c.version, c.versions)
			init := g.session.InitializeResult()
			if init.ProtocolVersion != c.want {
				t.Errorf("speaks %s", init.ProtocolVersion)
			}
			if init.Capabilities.Resources == nil || init.Capabilities.Prompts == nil || init.Capabilities.Tools == nil {
				t.Errorf("capabilities %+v", init.Capabilities)
			}
			g.sees(t)
			g.calls(t)
			g.holds(t)
			g.asks(t, c.want)
			g.cancels(t)
		})
	}
}

func (g *sdkRig) sees(t *testing.T) {
	list, err := g.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name == "forbidden" {
			t.Error("a PROHIBITED tool is listed")
		}
	}
	if len(list.Tools) < 5 {
		t.Errorf("%d tools", len(list.Tools))
	}
	if r, err := g.session.ListResources(t.Context(), nil); err != nil || len(r.Resources) != 1 {
		t.Errorf("resources/list: %+v %v", r, err)
	}
	if r, err := g.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "file:///r"}); err != nil || len(r.Contents) != 1 {
		t.Errorf("resources/read: %+v %v", r, err)
	}
	all := g.k.Requests()
	if r := all[len(all)-1]; r.Boundary != "mcp/sums/resources/read" || string(r.Payload) != `{"uri":"file:///r"}` {
		t.Errorf("the kernel was asked %s %s", r.Boundary, r.Payload)
	}
}

func (g *sdkRig) calls(t *testing.T) {
	if r, _ := g.call(t, "sum", sumIn{2, 3}); r.IsError || fmt.Sprint(r.StructuredContent) != "map[sum:5]" {
		t.Errorf("sum: %+v", r)
	}
	if o := g.k.LastOutput(); string(o.Structured) != `{"sum":5}` || !strings.Contains(string(o.Body), `"content"`) {
		t.Errorf("K8 saw %s", o.Body)
	}
	if r, said := g.call(t, "fails", nil); !r.IsError || said != "no such sum" || g.k.LastOutput().ExitCode != 1 {
		t.Errorf("fails: %+v", r)
	}
	if r, said := g.call(t, "forbidden", nil); !r.IsError || !strings.Contains(said, "refused: this tool is forbidden") {
		t.Errorf("forbidden: %+v %s", r, said)
	}
	if _, said := g.call(t, "steps", nil); said != "stepped" {
		t.Errorf("steps: %s", said)
	}
	gatewaytest.Eventually(t, "no progress came", func() bool { return g.progress.Load() == 3 })
}

func (g *sdkRig) holds(t *testing.T) {
	args := map[string]any{"disk": "/dev/sda"}
	r, said := g.call(t, "format", args)
	if !r.IsError || !strings.Contains(said, "holdfast review approve r1") || r.Meta["dev.holdfast/review"] != "r1" {
		t.Errorf("held: %+v %s", r, said)
	}
	g.k.Approve("r1")
	if r, said := g.call(t, "format", args); r.IsError || said != "formatted" {
		t.Errorf("after approval: %+v %s", r, said)
	}
	if r, _ := g.call(t, "format", args); !r.IsError {
		t.Error("an approval was used twice")
	}
}

// asks: what a server wants to know of the client, it does not learn.
func (g *sdkRig) asks(t *testing.T, version string) {
	before := g.asked.Load()
	if version < mcp.StatelessSince {
		if _, said := g.call(t, "asks", nil); strings.Contains(said, "<nil>") {
			t.Errorf("asks: %s", said)
		}
		if err := g.session.Ping(t.Context(), nil); err != nil {
			t.Errorf("ping: %v", err)
		}
	} else if r, said := g.call(t, "needs", nil); !r.IsError || !strings.Contains(said, "asks the client for elicitation/create, which holdfast does not pass") {
		t.Errorf("needs: %+v %s", r, said)
	}
	if n := g.asked.Load(); n != before {
		t.Errorf("the client was asked %d times", n-before)
	}
}

func (g *sdkRig) cancels(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := g.session.CallTool(ctx, &sdk.CallToolParams{Name: "wait"})
		ended <- err
	}()
	if l := g.stderr.Next(t); l != "waiting" {
		t.Errorf("the server says %q", l)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if l := g.stderr.Next(t); l != "cancelled" {
		t.Errorf("the server says %q", l)
	}
}
