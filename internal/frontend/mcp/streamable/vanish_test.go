package streamable

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// waiter runs, for each core, an official server of its own in this process,
// whose one tool waits until its call is taken back.
type waiter struct {
	k       *gatewaytest.Open
	begun   chan struct{}
	waiting atomic.Int32
	live    atomic.Int32
}

// server is an official server whose one tool waits.
func (w *waiter) server() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "waits", Version: "1"}, nil)
	tool := &sdk.Tool{Name: "wait", InputSchema: map[string]any{"type": "object"}, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}
	s.AddTool(tool, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		w.waiting.Add(1)
		defer w.waiting.Add(-1)
		select {
		case w.begun <- struct{}{}: // a call that is taken back at once has nobody who waits for it
		case <-ctx.Done():
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return s
}

// dial runs a server and is its client side.
func (w *waiter) dial() gateway.Conn {
	s := w.server()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(context.Background(), &sdk.IOTransport{Reader: inR, Writer: outW})
		outW.Close()
	}()
	return &gatewaytest.Stream{Reader: outR, Writer: inW, OnClose: func() { inW.Close(); outR.Close(); <-ended }}
}

func (w *waiter) run(ctx context.Context, c gateway.Client) error {
	w.live.Add(1)
	defer w.live.Add(-1)
	return gateway.Serve(ctx, c, w.dial(), gateway.Config{Kernel: w.k, Server: "waits", Token: gatewaytest.Token,
		Log: slog.New(slog.DiscardHandler)})
}

// says sends texts over a connection of their own.
func (g *httpRig) says(t *testing.T, texts ...string) *net.TCPConn {
	c := g.dial(t)
	for _, text := range texts {
		_, _ = io.WriteString(c, text)
	}
	return c
}

// begins asks until a call begins: while clients that vanished are still on
// their way out, one is refused, or its session makes room for theirs. It knows
// that by the answer, however long it takes.
func (w *waiter) begins(t *testing.T, ask func() *net.TCPConn) *net.TCPConn {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		c := ask()
		if c == nil {
			continue
		}
		select {
		case <-w.begun:
			return c
		case <-turnedDown(c):
			c.Close()
		case <-time.After(time.Until(end)):
			c.Close()
		}
	}
	t.Fatal("no call begins")
	return nil
}

// turnedDown is closed when a connection says no, answers the call, or ends: a call
// that began waits.
func turnedDown(c *net.TCPConn) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for b := bufio.NewReader(c); ; {
			line, err := b.ReadString('\n')
			no := strings.HasPrefix(line, "HTTP/1.1 4") || strings.HasPrefix(line, "HTTP/1.1 5")
			if err != nil || no || line == "0\r\n" || strings.Contains(line, `"id":1,`) {
				return
			}
		}
	}()
	return over
}

// sits begins a session; nil where there is no room for one yet.
func (g *httpRig) sits(t *testing.T) heads {
	t.Helper()
	r := g.do(t, "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	status, line := allOf(t, r)
	switch {
	case status == http.StatusServiceUnavailable && strings.Contains(line, "busy: "):
		return nil
	case status != http.StatusOK || r.Header.Get(mcp.HeaderSession) == "":
		t.Fatalf("initialize: %d %s", status, line)
	}
	return heads{mcp.HeaderSession, r.Header.Get(mcp.HeaderSession)}
}

// TestHTTPVanish: clients vanish at each step of what they do, with a whole
// core and a real server behind them. A call of 2026-07-28 reaches the server's
// cancellation; a session goes when it is evicted; nothing is left.
func TestHTTPVanish(t *testing.T) {
	rounds := testrepeat.Times(10_000, 20)
	w := &waiter{k: &gatewaytest.Open{}, begun: make(chan struct{})}
	g := startHTTP(t, w.run, func(h *Handler) { h.MaxSessions = 32 })
	g.session(t, "2025-11-25")
	allOf(t, g.do(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+newMeta+`}}`, anew("tools/list", "")))
	goroutines, open := runtime.NumGoroutine(), files()

	call := raw(newCall("1", "wait"), anew("tools/call", "wait"))
	hello := raw(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	oldWait := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`
	for name, step := range map[string]func(*testing.T, ...string) *net.TCPConn{
		"asked": g.says, "in the handshake": g.says,
		"in the call": func(t *testing.T, texts ...string) *net.TCPConn {
			return w.begins(t, func() *net.TCPConn { return g.says(t, texts...) })
		},
	} {
		text := call
		if name == "in the handshake" {
			text = hello
		}
		t.Run(name, func(t *testing.T) {
			stop := make(chan struct{})
			if name != "in the call" {
				go func() {
					for {
						select {
						case <-w.begun:
						case <-stop:
							return
						}
					}
				}()
			}
			for range rounds {
				step(t, text).Close()
				if name == "in the call" {
					gatewaytest.Eventually(t, "the server was not told", func() bool { return w.waiting.Load() == 0 })
				}
			}
			gatewaytest.Eventually(t, "calls are left", func() bool { return w.waiting.Load() == 0 })
			close(stop)
		})
	}
	t.Run("in a session", func(t *testing.T) {
		for range rounds / 10 {
			w.begins(t, func() *net.TCPConn {
				h := g.sits(t)
				if h == nil {
					return nil
				}
				return g.says(t, raw(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, h), raw(oldWait, h))
			}).Close()
		}
	})
	if err := g.h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	active := w.k.Under.Load()
	if active != 0 || w.live.Load() != 0 || w.waiting.Load() != 0 {
		t.Errorf("%d acts, %d cores and %d calls are left", active, w.live.Load(), w.waiting.Load())
	}
	g.web.CloseClientConnections()
	gatewaytest.Eventually(t, "goroutines or descriptors are left",
		func() bool { return runtime.NumGoroutine() <= goroutines && files() <= open })
}
