package streamable

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/remote"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHTTPVanishFarAway: with HTTP on both sides, a stream that is closed here
// ends the call over there, many at once and one after another.
func TestHTTPVanishFarAway(t *testing.T) {
	rounds := testrepeat.Times(1000, 20)
	w := &waiter{k: &gatewaytest.Open{}, begun: make(chan struct{}, 1<<16)}
	far := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return w.server() },
		&sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
	defer far.Close()
	g := startHTTP(t, func(ctx context.Context, c gateway.Client) error {
		conn, err := remote.Dial(ctx, remote.Config{Name: "waits", URL: far.URL + "/mcp"})
		if err != nil {
			return err
		}
		return gateway.Serve(ctx, c, conn, gateway.Config{Kernel: w.k, Server: "waits", Token: gatewaytest.Token,
			MaxInFlight: 256, Log: slog.New(slog.DiscardHandler)})
	})
	call := raw(newCall("1", "wait"), anew("tools/call", "wait"))
	drained := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); w.waiting.Load() > 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		}
		if n := w.waiting.Load(); n > 0 {
			t.Fatalf("%d calls go on over there", n)
		}
	}
	var all []*net.TCPConn
	for range 100 {
		c := g.dial(t)
		_, _ = io.WriteString(c, call)
		all = append(all, c)
	}
	for range all {
		select {
		case <-w.begun:
		case <-time.After(time.Minute):
			t.Fatal("the calls do not begin")
		}
	}
	for _, c := range all {
		c.Close()
	}
	drained()
	for range rounds {
		c := g.dial(t)
		_, _ = io.WriteString(c, call)
		c.Close()
	}
	drained()
	if status, line := allOf(t, g.do(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+newMeta+`}}`, anew("tools/list", ""))); status != 200 {
		t.Errorf("after all that: %d %s", status, line)
	}
}
