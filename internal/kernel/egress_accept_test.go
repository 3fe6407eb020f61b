package kernel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// What 003 3.1 accepts of egress and the kernel alone decides, in its own figures.
func TestEgress_Accept_ofTheKernel(t *testing.T) {
	hundred := func(c *kernel.Config, w *world) {
		p := *c.Policy
		p.Rates = []budget.RateLimit{{Scope: budget.Tenant, Boundary: "egress/api.example.com", PerMinute: 100, Source: "t"}}
		p.Limits = []budget.Limit{{Scope: budget.Tenant, Resource: holdfast.HTTPRequests, Amount: 1000, Source: "t"},
			{Scope: budget.Session, Resource: holdfast.LLMTokens, Amount: 1000, Source: "t"}}
		c.Policy, w.policy = &p, &p
	}
	tokens := func(w *world, n int64) holdfast.Request {
		req := w.get("api.example.com")
		req.Consumes = map[holdfast.Resource]int64{holdfast.LLMTokens: n}
		return req
	}
	t.Run("2_not_listed", func(t *testing.T) {
		w := newWorld(t, "", outward())
		w.refused(w.get("random.example.com", no(holdfast.K2, holdfast.KindDomainBlocked)), holdfast.K2, holdfast.KindDomainBlocked)
	})
	t.Run("5_the_101st_of_100", func(t *testing.T) {
		w := newWorld(t, "", outward(), hundred)
		for range 100 {
			w.passes(w.get("api.example.com"))
		}
		w.refused(w.get("api.example.com"), holdfast.K3, holdfast.KindRateLimit)
	})
	t.Run("6_200_of_100_left", func(t *testing.T) {
		w := newWorld(t, "", outward(), hundred)
		w.passes(tokens(w, 900))
		e := w.refused(tokens(w, 200), holdfast.K3, holdfast.KindBudgetExceeded)
		if want := "llm_tokens per session (t): 200 asked, 100 of 1000 left"; e.Why != want {
			t.Errorf("%q, want %q", e.Why, want)
		}
		w.passes(tokens(w, 100))
		w.refused(tokens(w, 1), holdfast.K3, holdfast.KindBudgetExceeded)
	})
	t.Run("7_as_many_entries_as_requests", func(t *testing.T) {
		w := newWorld(t, "", outward(), hundred)
		const n = 30
		for i := range n {
			if i%3 == 0 {
				w.refused(w.get("api.example.com", no(holdfast.K2, holdfast.KindDomainBlocked)), holdfast.K2, holdfast.KindDomainBlocked)
				continue
			}
			w.passes(w.get("api.example.com"))
		}
		done, denied := 0, 0
		for _, e := range w.entries(holdfast.Local) {
			switch {
			case e.Boundary != "egress/api.example.com":
				t.Errorf("%+v", e)
			case e.Outcome == ledger.Done && e.BeginSeq != nil:
				done++
			case e.Outcome == ledger.Denied:
				denied++
			}
		}
		if done != 2*n/3 || denied != n/3 {
			t.Errorf("%d done and %d denied of %d", done, denied, n)
		}
	})
	t.Run("9_tenants_do_not_meet", func(t *testing.T) {
		var who holdfast.Identity
		w := newWorld(t, "", outward(), func(c *kernel.Config, w *world) {
			p := *c.Policy
			p.Limits = []budget.Limit{{Scope: budget.Tenant, Resource: holdfast.HTTPRequests, Amount: 2, Source: "t"}}
			c.Policy, w.policy = &p, &p
			c.Verifier = verifierFunc(func() holdfast.Identity { return who })
		})
		for i, tenant := range []string{"a", "b", "a/b", "A"} {
			who = holdfast.Identity{Tenant: tenant, Principal: "user:x", Roles: []string{"agent"}, Agent: "x", Session: "s", TokenID: fmt.Sprint(i), Expires: w.now().Add(time.Hour)}
			w.passes(w.get("api.example.com"))
			w.passes(w.get("api.example.com"))
			w.refused(w.get("api.example.com"), holdfast.K3, holdfast.KindBudgetExceeded)
		}
	})
	t.Run("10_no_record_no_request", func(t *testing.T) {
		b := &broken{}
		w := newWorld(t, "", outward(), breakable(b))
		b.update.Store(true)
		w.refused(w.get("api.example.com"), holdfast.K6, holdfast.KindLogging) // its hand is never called
		b.update.Store(false)
		w.passes(w.get("api.example.com"))
	})
}
