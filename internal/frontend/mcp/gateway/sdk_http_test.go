package gateway_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/streamable"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// sumsRun runs the official server as a child for each core. What it says on
// its standard error comes by the channel.
func sumsRun(
	t *testing.T, k *gateway.Table, versions string,
) (func(context.Context, gateway.Client) error, <-chan *gatewaytest.Peer) {
	said := make(chan *gatewaytest.Peer, 16)
	return func(ctx context.Context, c gateway.Client) error {
		server, says := spawn(t, versions)
		said <- says
		return gateway.Serve(ctx, c, server, gateway.Config{
			Kernel: k, Server: "sums", Token: gateway.GoodToken, Log: slog.New(slog.DiscardHandler),
		})
	}, said
}

// TestHTTP_OfficialSDK runs the official client unchanged over HTTP, at the
// stateless protocol, at each before it, and where it falls back.
func TestHTTP_OfficialSDK(t *testing.T) {
	for _, c := range []struct{ name, version, versions, want string }{
		{"2026-07-28", "2026-07-28", "", "2026-07-28"},
		{"2025-11-25", "2025-11-25", "", "2025-11-25"},
		{"2025-06-18", "2025-06-18", "", "2025-06-18"},
		{"2025-03-26", "2025-03-26", "", "2025-03-26"},
		{"old server", "2026-07-28", "2025-11-25", "2025-11-25"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := gateway.NewTable()
			k.SetRisk("mcp/sums/forbidden", holdfast.Prohibited)
			run, said := sumsRun(t, k, c.versions)
			web := serveHTTP(t, run)
			g := &sdkRig{k: k}
			client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, g.options())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var err error
			g.session, err = client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: web}, &sdk.ClientSessionOptions{ProtocolVersion: c.version})
			if err != nil {
				t.Fatalf("connect: %v", err)
			}
			defer g.session.Close()
			if v := g.session.InitializeResult().ProtocolVersion; v != c.want {
				t.Errorf("speaks %s", v)
			}
			for len(said) > 0 {
				g.stderr = <-said // the last core's
			}
			g.sees(t)
			g.calls(t)
			g.holds(t)
			g.asks(t, c.want)
			g.cancels(t)
		})
	}
}

// serveHTTP serves run to everybody, and returns the address.
func serveHTTP(t *testing.T, run func(context.Context, gateway.Client) error) string {
	t.Helper()
	h := streamable.NewHandler(context.Background(), streamable.Config{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Enter: func(*http.Request) (string, func(context.Context, gateway.Client) error, error) {
			return "who", run, nil
		},
	})
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return web.URL + "/mcp"
}
