package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// backend is a server of the official SDK that can be ended and hung, and comes
// back where it may.
type backend struct {
	name     string
	versions []string
	late     chan struct{} // closed when it opens; nil for at once
	opened   atomic.Int32
	most     int32 // lives, 0 for any
	deaf     atomic.Bool
	halted   atomic.Bool

	mu    sync.Mutex
	end   func()
	tools []string
	extra func(*sdk.Server)
	told  []string
}

func (b *backend) server() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: b.name, Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: b.versions, PageSize: 3,
		Instructions: "use " + b.name})
	read := &sdk.ToolAnnotations{ReadOnlyHint: true}
	b.mu.Lock()
	tools := append([]string{"who", "wait"}, b.tools...)
	b.mu.Unlock()
	for _, name := range tools {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}, Annotations: read}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if name == "wait" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: b.name + " " + name}}}, nil
		})
	}
	if b.extra != nil {
		b.extra(s)
	}
	return s
}

// conn is the far end of one life.
type backendConn struct {
	*gatewaytest.Stream
	b     *backend
	ended chan struct{}
}

func (c *backendConn) Exit(ctx context.Context) error {
	select {
	case <-c.ended:
		return errors.New("signal: killed")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *backend) open(ctx context.Context) (gateway.Conn, error) {
	if b.halted.Load() {
		return nil, &holdfast.Error{Kind: holdfast.KindHalted, Why: "everything is halted"}
	}
	n := b.opened.Add(1)
	if b.most > 0 && n > b.most {
		return nil, errors.New("it ended too often")
	}
	if b.late != nil {
		select {
		case <-b.late:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &backendConn{b: b, ended: make(chan struct{})}
	end := func() { cancel(); inR.Close(); inW.Close(); outR.Close(); outW.Close() }
	c.Stream = &gatewaytest.Stream{Reader: outR, Writer: inW, OnClose: end}
	b.mu.Lock()
	b.end = func() { outW.Close(); end() }
	b.mu.Unlock()
	go func() {
		defer close(c.ended)
		defer outW.Close()
		if b.deaf.Load() {
			_, _ = io.Copy(io.Discard, inR)
			return
		}
		_ = b.server().Run(ctx, &sdk.IOTransport{Reader: inR, Writer: outW})
	}()
	return c, nil
}

func (b *backend) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
}

func (b *backend) upstream(t testing.TB, k gateway.Kernel) Upstream {
	return Upstream{Conn: b.open, State: func(state string, why error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.told = append(b.told, fmt.Sprint(state, " ", why))
	}, Config: gateway.Config{Kernel: k, Server: b.name, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Token: gatewaytest.Token}}
}

// routed is the official client at a router.
type routerRig struct {
	t       *testing.T
	k       *kernel
	session *sdk.ClientSession
	changed atomic.Int32
	done    chan error
	client  *gatewaytest.Stream
}

// patient is of a router that waits for all that comes, hurried of one before
// servers that do not.
var (
	patient = patience{greet: time.Minute, list: time.Minute, ready: time.Minute, halted: 20 * time.Millisecond}
	hurried = patience{greet: time.Second, list: time.Second, ready: 500 * time.Millisecond, halted: 20 * time.Millisecond}
)

func routerUp(t *testing.T, version string, bs ...*backend) *routerRig {
	t.Helper()
	return routerPaced(t, patient, version, bs...)
}

func routerPaced(t *testing.T, pace patience, version string, bs ...*backend) *routerRig {
	t.Helper()
	g := &routerRig{t: t, k: &kernel{}, done: make(chan error, 1)}
	var ups []Upstream
	for _, b := range bs {
		ups = append(ups, b.upstream(t, g.k))
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	g.client = &gatewaytest.Stream{Reader: inR, Writer: outW, OnClose: func() { inR.Close(); outW.Close() }}
	r, err := newRouter(gateway.Lines(g.client), ups)
	if err != nil {
		t.Fatal(err)
	}
	r.pace = pace
	go func() { g.done <- r.run(context.Background()) }()
	c := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { g.changed.Add(1) }})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if g.session, err = c.Connect(ctx, &sdk.IOTransport{Reader: outR, Writer: inW}, &sdk.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		g.session.Close()
		select {
		case err := <-g.done:
			if err != nil {
				t.Errorf("the router: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the router did not end")
		}
	})
	return g
}

// tools lists every page.
func (g *routerRig) tools() string {
	g.t.Helper()
	var names []string
	for tool, err := range g.session.Tools(g.t.Context(), nil) {
		if err != nil {
			g.t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

func (g *routerRig) call(name string) string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	r, err := g.session.CallTool(ctx, &sdk.CallToolParams{Name: name})
	if err != nil {
		return "error: " + err.Error()
	}
	said := ""
	for _, c := range r.Content {
		if tc, ok := c.(*sdk.TextContent); ok {
			said += tc.Text
		}
	}
	return said
}

// TestRouter runs the official client at several official servers, in every era
// that they have in common.
func TestRouter(t *testing.T) {
	for _, c := range []struct {
		name, version string
		a, b          []string
		want          string
	}{
		{"all new", "2026-07-28", nil, nil, "2026-07-28"},
		{"all handshake", "2025-11-25", nil, nil, "2025-11-25"},
		{"one cannot go without", "2026-07-28", nil, []string{"2025-11-25"}, "2025-11-25"},
		{"one is old", "2025-11-25", nil, []string{"2024-11-05"}, "2024-11-05"},
		{"older still", "2025-06-18", []string{"2025-06-18", "2025-03-26"}, []string{"2025-03-26"}, "2025-03-26"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &backend{name: "a", versions: c.a, tools: []string{"x1", "x2", "x3", "x4"}}
			b := &backend{name: "b.1", versions: c.b}
			g := routerUp(t, c.version, b, a)
			if v := g.session.InitializeResult().ProtocolVersion; v != c.want {
				t.Errorf("speaks %s", v)
			}
			want := "a__wait a__who a__x1 b.1__wait b.1__who a__x2 a__x3 a__x4"
			if got := g.tools(); got != want {
				t.Errorf("lists %s, want %s", got, want)
			}
			for name, want := range map[string]string{"a__who": "a who", "b.1__who": "b.1 who", "a__x4": "a x4"} {
				if got := g.call(name); got != want {
					t.Errorf("%s says %s", name, got)
				}
			}
			for _, r := range g.k.requests {
				if !strings.HasPrefix(r.Boundary, "mcp/a/") && r.Boundary != "mcp/b.1/who" || strings.Contains(r.Boundary, between) {
					t.Errorf("a crossing of %s", r.Boundary)
				}
			}
			if got := g.call("who"); !strings.Contains(got, `no MCP server here has "who"`) {
				t.Errorf("a tool of nobody: %s", got)
			}
			if i := g.session.InitializeResult().Instructions; !strings.Contains(i, "a: use a") || !strings.Contains(i, "b.1: use b.1") {
				t.Errorf("instructions %q", i)
			}
		})
	}
}

// A single server keeps its names, and nothing is joined.
func TestRouterOfOne(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			b := &backend{name: "a", tools: []string{"x"}}
			g := routerUp(t, version, b)
			if i := g.session.InitializeResult(); i.ProtocolVersion != version || i.Instructions != "use a" {
				t.Errorf("%+v", i)
			}
			if got := g.tools(); got != "wait who x" {
				t.Errorf("lists %s", got)
			}
			b.mu.Lock()
			b.tools = append(b.tools, "y")
			b.mu.Unlock()
			b.kill()
			gatewaytest.Eventually(t, "no call passes after the restart", func() bool { return g.call("y") == "a y" })
			if got := g.tools(); got != "wait who x y" {
				t.Errorf("lists %s", got)
			}
			if version < mcp.StatelessSince {
				gatewaytest.Eventually(t, "the client did not hear of the change",
					func() bool { return g.changed.Load() == 1 })
			}
		})
	}
}

// One server that dies takes no other down: a call in flight there is answered,
// it comes back, and the client hears that the lists changed.
func TestRouterOutlivesAServer(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			a, b := &backend{name: "a"}, &backend{name: "b"}
			g := routerUp(t, version, a, b)
			waited := make(chan string, 1)
			go func() { waited <- g.call("b__wait") }()
			gatewaytest.Eventually(t, "the call did not begin",
				func() bool { return g.k.Under.Load() == 1 })
			b.mu.Lock()
			b.tools = []string{"fresh"}
			b.mu.Unlock()
			b.kill()
			if got := <-waited; !strings.Contains(got, "the MCP server ended") {
				t.Errorf("the call in flight: %s", got)
			}
			if got := g.call("a__who"); got != "a who" {
				t.Errorf("the other: %s", got)
			}
			gatewaytest.Eventually(t, "it does not come back", func() bool { return g.call("b__fresh") == "b fresh" })
			gatewaytest.Eventually(t, "the client did not hear of it", func() bool { return g.changed.Load() == 1 })
			if got := g.tools(); got != "a__wait a__who b__fresh b__wait b__who" {
				t.Errorf("lists %s", got)
			}
			b.mu.Lock()
			if said := strings.Join(b.told, "; "); !strings.Contains(said, "running <nil>; restarting the MCP server ended: signal: killed; running <nil>") {
				t.Errorf("told %s", said)
			}
			b.mu.Unlock()
		})
	}
}

// What is given up is named, and so is what hangs; the rest goes on.
func TestRouterLeavesOut(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			a, b, c := &backend{name: "a"}, &backend{name: "b", most: 1}, &backend{name: "c"}
			c.deaf.Store(true)
			g := routerPaced(t, hurried, version, a, b, c)
			b.kill()
			gatewaytest.Eventually(t, "it is not given up",
				func() bool { return strings.Contains(g.call("b__who"), `"b" is given up: it ended too often`) })
			l, err := g.session.ListTools(t.Context(), nil)
			if err != nil || len(l.Tools) != 2 {
				t.Fatalf("%v %+v", err, l)
			}
			left, _ := l.Meta["dev.holdfast/left-out"].(map[string]any)
			if !strings.Contains(fmt.Sprint(left["b"]), "given up") || left["c"] == nil || left["a"] != nil {
				t.Errorf("left out: %v", left)
			}
			if got := g.call("a__who"); got != "a who" {
				t.Errorf("the other: %s", got)
			}
		})
	}
}

// While everything is halted a server that ended is not opened again, which is
// said at once, and no server is given up for it.
func TestRouterWhileHalted(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		a, b := &backend{name: "a"}, &backend{name: "b"}
		g := routerUp(t, version, a, b)
		b.halted.Store(true)
		b.kill()
		gatewaytest.Eventually(t, "the halt is not named", func() bool {
			return strings.Contains(g.call("b__who"),
				"everything is halted")
		})
		if got := g.call("a__who"); got != "a who" {
			t.Errorf("the other: %s", got)
		}
		b.halted.Store(false)
		gatewaytest.Eventually(t, "it does not come back", func() bool { return g.call("b__who") == "b who" })
	}
}

// A server that is late for the handshake comes in when it is there.
func TestRouterTakesTheLate(t *testing.T) {
	a, b := &backend{name: "a"}, &backend{name: "b", late: make(chan struct{})}
	g := routerPaced(t, hurried, "2025-11-25", a, b)
	if got := g.tools(); got != "a__wait a__who" {
		t.Errorf("lists %s", got)
	}
	close(b.late)
	gatewaytest.Eventually(t, "it does not come", func() bool { return g.call("b__who") == "b who" })
	gatewaytest.Eventually(t, "the client did not hear of it", func() bool { return g.changed.Load() == 1 })
}

// A cancellation reaches the server that has the call, and no other.
func TestRouterCancels(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		a, b := &backend{name: "a"}, &backend{name: "b"}
		g := routerUp(t, version, a, b)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for _, name := range []string{"a__wait", "b__wait"} {
			ctx := ctx
			if name == "a__wait" {
				ctx = t.Context()
			}
			go func() {
				_, err := g.session.CallTool(ctx, &sdk.CallToolParams{Name: name})
				ended <- err
			}()
		}
		active := func(n int64) func() bool {
			return func() bool { return g.k.Under.Load() == n }
		}
		gatewaytest.Eventually(t, "the calls did not begin", active(2))
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		gatewaytest.Eventually(t, "the call goes on", active(1))
	}
}

// Which servers stand together is judged before any is opened.
func TestRouterRefuses(t *testing.T) {
	up := func(names ...string) (out []Upstream) {
		for _, n := range names {
			b := &backend{name: n}
			out = append(out, b.upstream(t, &kernel{}))
		}
		return out
	}
	many := up("a")
	for i := range MaxServers {
		many = append(many, up(fmt.Sprint("s", i))...)
	}
	closed := up("a")
	closed[0].Conn = nil
	for name, ups := range map[string][]Upstream{"none": nil, "twice": up("a", "a"), "not apart": up("a", "a__b"), "not apart either": up("a_", "a"),
		"too many": many, "no way to open": closed, "no name": up("")} {
		c, _ := gatewaytest.Pair()
		if err := Serve(t.Context(), gateway.Lines(c), ups); holdfast.KindOf(err) != holdfast.KindUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestApart(t *testing.T) {
	for _, c := range []struct {
		names []string
		apart bool
	}{{[]string{"a", "b"}, true}, {[]string{"a", "a_b"}, true}, {[]string{"a", "a__b"}, false}, {[]string{"a", "a_"}, false}, {[]string{"ab", "a"}, true},
		{[]string{"b__", "b"}, false}, {nil, true}} {
		if got := FindNameCollision(c.names) == ""; got != c.apart {
			t.Errorf("%v: %v", c.names, got)
		}
	}
}

// A cursor is read back as it was written; anything else is refused.
func TestRouterCursor(t *testing.T) {
	want := map[string]string{"a": "c1", "b": ""}
	got, err := readCursor(mcp.Quote(writeCursor(want)))
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{`7`, `"!"`, `""`, string(mcp.Quote(writeCursor(map[string]string{}))),
		string(mcp.Quote(strings.Repeat("A", maxAllCursors+1))),
		string(mcp.Quote(writeCursor(map[string]string{"a": strings.Repeat("x", mcp.MaxCursor+1)}))), `"W10"`} {
		if _, err := readCursor([]byte(bad)); err == nil {
			t.Errorf("%.40s was read", bad)
		}
	}
	if got, err := readCursor([]byte("null")); got != nil || err != nil {
		t.Errorf("%v %v", got, err)
	}
}

// Nobody is left when the client has gone, at whatever step.
func TestRouterEndsWithItsClient(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	for _, lines := range [][]string{{}, {hello}, {hello, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`}} {
		synctest.Test(t, func(t *testing.T) {
			a, b := &backend{name: "a"}, &backend{name: "b"}
			c, p := gatewaytest.Pair()
			done := make(chan error, 1)
			go func() {
				done <- Serve(t.Context(), gateway.Lines(c), []Upstream{a.upstream(t, &kernel{}), b.upstream(t,
					&kernel{})})
			}()
			for _, l := range lines {
				if _, err := io.WriteString(p.Input, l+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			p.Input.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
			for range p.Lines {
			}
		})
	}
}

// Two servers may ask under one id: the client answers each.
func TestRouterKeepsQuestionsApart(t *testing.T) {
	c, p := gatewaytest.Pair()
	var ups []Upstream
	servers := map[string]*gatewaytest.Peer{}
	for _, name := range []string{"a", "b"} {
		conn, peer := gatewaytest.Pair()
		servers[name] = peer
		first := true
		ups = append(ups, Upstream{Config: gateway.Config{Kernel: &kernel{}, Server: name, Token: gatewaytest.Token},
			Conn: func(ctx context.Context) (gateway.Conn, error) {
				if !first {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				first = false
				return conn, nil
			}})
	}
	done := make(chan error, 1)
	go func() { done <- Serve(t.Context(), gateway.Lines(c), ups) }()
	for _, name := range []string{"a", "b"} {
		fmt.Fprintln(servers[name].Input, `{"jsonrpc":"2.0","id":"same","method":"ping"}`)
	}
	seen := map[string]bool{}
	for range 2 {
		m, err := mcp.Parse([]byte(p.Next(t)))
		if err != nil || m.Method != "ping" || seen[string(m.ID)] {
			t.Fatalf("%v %s", err, m.Raw)
		}
		seen[string(m.ID)] = true
		fmt.Fprintln(p.Input, string(mcp.Respond(m.ID, []byte("{}"))))
	}
	for _, name := range []string{"a", "b"} {
		if l := servers[name].Next(t); l != `{"jsonrpc":"2.0","id":"same","result":{}}` {
			t.Errorf("%s gets %s", name, l)
		}
	}
	p.Input.Close()
	<-done
}
