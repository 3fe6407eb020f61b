package streamable

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
)

// httpRig is a front behind a real listener.
type httpRig struct {
	h   *Handler
	url string
	web *httptest.Server
}

// startHTTP serves run to everybody, under the name in the header X-Who.
func startHTTP(t *testing.T, run func(context.Context, gateway.Client) error, change ...func(*Handler)) *httpRig {
	t.Helper()
	h := NewHandler(context.Background(), Config{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Enter: func(r *http.Request) (string, func(context.Context, gateway.Client) error, error) {
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
