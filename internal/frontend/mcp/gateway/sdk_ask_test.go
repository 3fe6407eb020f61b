package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestOfficialSDK_D11_holds: the official client opens the page, a person
// decides there, and the call that it repeats by itself, or that has waited, is
// made once.
func TestOfficialSDK_D11_holds(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for _, decision := range []string{"approve", "open only", "decline"} {
			t.Run(version+" "+decision, func(t *testing.T) {
				g := startSDK(t, version, "", func(g *sdkRig, c *gateway.Config) {
					gateway.WaitFor(gateway.MaxWait)(c)
					if decision == "open only" {
						gateway.WaitFor(100 * time.Millisecond)(c)
					}
					g.elicited = func(p *sdk.ElicitParams) string {
						if p.Mode != "url" || p.URL != "http://127.0.0.1:7411/review/r1" {
							t.Errorf("asked %+v", p)
						}
						if decision == "decline" {
							return "decline"
						}
						if decision == "approve" {
							time.AfterFunc(50*time.Millisecond, func() { g.k.Decide("r1", true) })
						}
						return "accept"
					}
				})
				r, said := g.call(t, "format", map[string]any{"disk": "/dev/sda"})
				if approved := decision == "approve"; r.IsError == approved || approved != (said == "formatted") || g.asked.Load() != 1 {
					t.Errorf("asked %d times: %+v %s", g.asked.Load(), r, said)
				}
			})
		}
	}
}

// TestOfficialSDK_questions: what a contract lets a server ask of its client, it
// learns in either way of asking, and nothing else.
func TestOfficialSDK_questions(t *testing.T) {
	lists := func(g *sdkRig, _ *gateway.Config) {
		g.k.ListContract(holdfast.Contract{Boundary: "client/sums/*", Risk: holdfast.Medium})
	}
	t.Run("2026-07-28", func(t *testing.T) {
		g := startSDK(t, "2026-07-28", "", lists)
		r, said := g.call(t, "goes_on", nil)
		if r.IsError || !strings.Contains(said, "half way") || !strings.Contains(said, `"action":"accept"`) || !strings.Contains(said, "file:///work") {
			t.Errorf("%+v %s", r, said)
		}
		got := map[string]int{}
		for _, r := range g.k.Requests() {
			got[r.Boundary]++
		}
		if got["client/sums/elicitation/create"] != 2 || got["client/sums/roots/list"] != 2 || got["mcp/sums/goes_on"] != 2 {
			t.Errorf("crossings: %v", got)
		}
	})
	t.Run("2025-11-25", func(t *testing.T) {
		g := startSDK(t, "2025-11-25", "", lists)
		if _, said := g.call(t, "asks", nil); said != "roots: <nil>; elicit: <nil>" {
			t.Errorf("asks: %s", said)
		}
		r, said := g.call(t, "goes_on", nil) // its SDK asks for it
		if r.IsError || !strings.Contains(said, "file:///work") {
			t.Errorf("%+v %s", r, said)
		}
	})
	t.Run("refused", func(t *testing.T) {
		g := startSDK(t, "2026-07-28", "")
		if r, said := g.call(t, "goes_on", nil); !r.IsError || g.asked.Load() != 0 {
			t.Errorf("%+v %s", r, said)
		}
	})
}
