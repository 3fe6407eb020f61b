package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpRig is a front behind a real listener.
type httpRig struct {
	h   *HTTP
	url string
	web *httptest.Server
}

// startHTTP serves run to everybody, under the name in the header X-Who.
func startHTTP(t *testing.T, run func(context.Context, Client) error, change ...func(*HTTP)) *httpRig {
	t.Helper()
	h := NewHTTP(context.Background(), HTTPConfig{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Enter: func(r *http.Request) (string, func(context.Context, Client) error, error) {
			return "who:" + r.Header.Get("X-Who"), run, nil
		},
	})
	for _, f := range change {
		f(h)
	}
	g := &httpRig{h: h, web: httptest.NewServer(h)}
	g.url = g.web.URL + "/mcp"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
		g.web.Close()
	})
	return g
}

// sumsRun runs the official server as a child for each core. What it says on
// its standard error comes by the channel.
func sumsRun(t *testing.T, k *table, versions string) (func(context.Context, Client) error, <-chan *gatewaytest.Peer) {
	said := make(chan *gatewaytest.Peer, 16)
	return func(ctx context.Context, c Client) error {
		server, says := spawn(t, versions)
		said <- says
		return Serve(ctx, c, server, Config{Kernel: k, Server: "sums", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Token: func(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("good"), nil }})
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
			k := newTable()
			k.risks["mcp/sums/forbidden"] = holdfast.Prohibited
			run, said := sumsRun(t, k, c.versions)
			web := startHTTP(t, run)
			g := &sdkRig{k: k}
			client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, g.options())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var err error
			g.session, err = client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: web.url}, &sdk.ClientSessionOptions{ProtocolVersion: c.version})
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
