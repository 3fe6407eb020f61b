package streamable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// TestHTTPManyClients: clients of several identities, each with sessions and
// without, call, cancel, listen, vanish and come back at random, with ids that
// collide; nobody gets what is another's, and nothing is left.
func TestHTTPManyClients(t *testing.T) {
	rounds := testrepeat.Times(300, 10)
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.pace.beat = 5 * time.Millisecond })
	go drain(t.Context(), s)
	var wg sync.WaitGroup
	for c := range 24 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 7))
			who := heads{"X-Who", fmt.Sprintf("w%d", c%6)}
			session := g.session(t, "2025-11-25", who)
			for i := range rounds {
				mark := fmt.Sprintf("c%d-%d", c, i)
				switch r.IntN(8) {
				case 0:
					g.vanish(t, r, newCall("1", "wait"), append(anew("tools/call", "wait"), who...))
				case 1:
					g.vanish(t, r, fmt.Sprintf(oldCall, "wait"), append(heads{"X-Who", who[1]}, session...))
					// The id stays in flight, so the session is left to itself.
					allOf(t, g.do(t, "DELETE", "", session, who))
					session = g.session(t, "2025-11-25", who)
				case 2:
					g.do(t, "GET", "", session, who).Body.Close()
				case 3, 4, 5:
					g.echo(t, mark, true, anew("tools/call", "t"), who)
				default:
					g.echo(t, mark, false, session, who)
				}
			}
			allOf(t, g.do(t, "DELETE", "", session, who))
		})
	}
	wg.Wait()
	gatewaytest.Eventually(t, "exchanges or bytes are left", func() bool {
		g.h.mu.Lock()
		defer g.h.mu.Unlock()
		return g.h.open == 0 && len(g.h.own) == 0 && len(g.h.sessions) == 0 && g.h.meter.kept() == 0 && g.h.reading.Load() == 0
	})
	for _, seat := range g.h.seats() {
		gatewaytest.Eventually(t, "requests are left", func() bool {
			seat.client.mu.Lock()
			defer seat.client.mu.Unlock()
			for _, a := range seat.client.asked {
				if a.x != nil {
					return false
				}
			}
			return true
		})
	}
}

// echo makes a call that must get its own arguments back.
func (g *httpRig) echo(t *testing.T, mark string, stateless bool, hs ...heads) {
	t.Helper()
	meta := ""
	if stateless {
		meta = "," + newMeta
	}
	body := `{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"t","arguments":{"mark":"` + mark + `"}` + meta + `}}`
	status, line := allOf(t, g.do(t, "POST", body, hs...))
	if status != 200 || !strings.Contains(line, `"mark":"`+mark+`"`) || !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":"1","result"`) {
		t.Errorf("%s got %d %s", mark, status, line)
	}
}

// vanish sends a request and goes before its answer.
func (g *httpRig) vanish(t *testing.T, r *rand.Rand, body string, hs heads) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(10))*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", g.url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "*/*")
	for i := 0; i+1 < len(hs); i += 2 {
		req.Header.Set(hs[i], hs[i+1])
	}
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
		<-ctx.Done()
		resp.Body.Close()
	}
}

// drain takes what a script tells of its calls.
func drain(ctx context.Context, s *script) {
	for {
		select {
		case <-s.waiting:
		case <-s.released:
		case <-ctx.Done():
			return
		}
	}
}
