package streamable

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
)

// TestPanicsOverHTTP ends one core, and the next request has a new one.
func TestPanicsOverHTTP(t *testing.T) {
	heard := make(chan string, 8)
	told := func(what, stack string) {
		if !strings.Contains(stack, "goroutine") {
			what += " without its stack"
		}
		heard <- what
	}
	var times atomic.Int32
	run := func(ctx context.Context, c gateway.Client) error {
		if times.Add(1) == 1 {
			panic("lost canary-hunter2")
		}
		server, _ := gatewaytest.Pair()
		return gateway.Serve(ctx, c, server, gateway.Config{
			Server: "fs", Kernel: &gatewaytest.Open{}, Token: gatewaytest.Token, Panicked: told,
		})
	}
	g := startHTTP(t, run, func(h *Handler) { h.Panicked = told })
	ping := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	r := g.do(t, http.MethodPost, ping)
	if r.StatusCode < 400 {
		t.Errorf("the first was answered %s", r.Status)
	}
	r.Body.Close()
	if n := len(heard); n != 1 || <-heard != "lost canary-hunter2" {
		t.Errorf("the hook heard %d panics", n)
	}
	gatewaytest.Eventually(t, "no second core was made", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50_000_000)
		defer cancel()
		q, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.url, strings.NewReader(ping))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		if r, err := http.DefaultClient.Do(q); err == nil {
			r.Body.Close()
		}
		return times.Load() > 1
	})
}
