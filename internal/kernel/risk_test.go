package kernel_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func pattern(t *testing.T, match string, risk holdfast.Risk, agents ...string) review.Pattern {
	t.Helper()
	p, err := review.NewPattern(match)
	if err != nil {
		t.Fatal(err)
	}
	p.Risk, p.Agents, p.Source = risk, agents, "risks:1"
	return p
}

// The table of spec 001, layer 2: LOW acts, MEDIUM acts and is recorded, HIGH is
// suggested only, PROHIBITED is blocked and alerts. Finding 5.2.14: an unknown
// action keeps the risk of its contract, and has none without one.
func TestSpec001_Layer2_risk_table(t *testing.T) {
	w := newWorld(t, "", func(cfg *kernel.Config, w *world) {
		w.policy.Contracts = append(w.policy.Contracts,
			holdfast.Contract{Boundary: "shop/raise", Risk: holdfast.Low, Source: "test:1"},
			holdfast.Contract{Boundary: "shop/from", Risk: holdfast.High, RiskFrom: "patterns", Source: "test:2"},
			holdfast.Contract{Boundary: "shop/undone", Risk: holdfast.High, RiskFrom: "patterns", Irreversible: true, Source: "test:3"},
			holdfast.Contract{Boundary: "shop/never", Risk: holdfast.Prohibited, RiskFrom: "patterns", Source: "test:4"},
			holdfast.Contract{Boundary: "shop/*", Risk: holdfast.Medium, Source: "test:5"})
		w.policy.Risks = []review.Pattern{
			pattern(t, `delete.*customer`, holdfast.Prohibited), pattern(t, `refund`, holdfast.High), pattern(t, `refund`, holdfast.Low, "alice"),
			pattern(t, `publish`, holdfast.High), pattern(t, `update`, holdfast.Medium), pattern(t, `list|draft`, holdfast.Low)}
	})
	for _, c := range []struct {
		boundary, action string
		want             holdfast.Verdict
	}{
		{"shop/raise", "list the orders", holdfast.Allow},
		{"shop/raise", "update a page", holdfast.Allow},
		{"shop/raise", "publish it", holdfast.Hold},
		{"shop/raise", "Delete this CUSTOMER", holdfast.Deny},
		{"shop/raise", "refund", holdfast.Allow}, // alice's own pattern before everybody's
		{"shop/raise", "think", holdfast.Allow},
		{"shop/raise", strings.Repeat("think ", 12_000), holdfast.Hold},
		{"shop/from", "draft", holdfast.Allow},
		{"shop/from", "think", holdfast.Hold},
		{"shop/from", "delete customer", holdfast.Deny},
		{"shop/undone", "draft", holdfast.Hold},
		{"shop/never", "draft", holdfast.Deny},
		{"shop/delete_customer", "", holdfast.Deny},
		{"elsewhere/x", "draft", holdfast.Deny},
	} {
		out, err := w.cross(w.req(c.boundary, `{"action":"`+c.action+`"}`))
		if out.Verdict != c.want {
			t.Errorf("%s %.20s: %v, want %v (%v)", c.boundary, c.action, out.Verdict, c.want, err)
		}
	}
	// An action that is no text has been read by no pattern.
	for _, action := range []string{`["delete customer"]`, `{"verb":"delete","what":"customer"}`, `1`, `true`} {
		for _, boundary := range []string{"shop/raise", "shop/from"} {
			out, err := w.cross(w.req(boundary, `{"action":`+action+`}`))
			if out.Verdict != holdfast.Hold {
				t.Errorf("%s %s: %v, want Hold (%v)", boundary, action, out.Verdict, err)
			}
		}
	}
	alerts := 0
	w.mu.Lock()
	for _, n := range w.notices {
		if n.Event == "prohibited_tried" && n.Level == "error" {
			alerts++
		}
	}
	w.mu.Unlock()
	if alerts != 4 {
		t.Errorf("%d alerts of what is prohibited, want 4", alerts)
	}
	seen, err := w.tools.Observe(t.Context(), []holdfast.Contract{{Boundary: "shop/delete_customer",
		Risk: holdfast.Medium, Pin: strings.Repeat("a", 64), Source: "tools"},
		{Boundary: "shop/list", Risk: holdfast.Medium, Pin: strings.Repeat("b", 64), Source: "tools"}})
	if err != nil || len(seen) != 2 || seen[0].Risk != holdfast.Prohibited || seen[1].Risk != holdfast.Medium {
		t.Errorf("listed as %+v (%v)", seen, err)
	}
}
