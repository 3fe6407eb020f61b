package kernel_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// site is the contract of an allowed domain, as configuration makes one.
func site(name string, change ...func(*holdfast.Contract)) holdfast.Contract {
	c := holdfast.Contract{Boundary: "egress/" + name, Risk: holdfast.Medium, ReadRisk: holdfast.Low, Source: "holdfast.yaml:1",
		Consumes: map[holdfast.Resource]int64{holdfast.HTTPRequests: 1},
		Refusals: holdfast.Refusals{Rate: holdfast.KindRateLimit, Amount: holdfast.KindBudgetExceeded, Record: holdfast.KindLogging}}
	for _, f := range change {
		f(&c)
	}
	return c
}

// outward is a policy with one domain, a rate of 3 a minute there, and budgets.
func outward(w ...holdfast.Contract) option {
	return policy(func(p *kernel.Policy) {
		p.Contracts = append(append([]holdfast.Contract{site("api.example.com")}, p.Contracts...), w...)
		p.Rates = []budget.RateLimit{{Scope: budget.Tenant, Boundary: "egress/api.example.com", PerMinute: 3, Source: "holdfast.yaml:1"}}
		p.Limits = nil
		for r, n := range map[holdfast.Resource]int64{holdfast.HTTPRequests: 100, holdfast.BytesOut: 1000, holdfast.LLMTokens: 1000, holdfast.Messages: 5} {
			p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Resource: r, Amount: n, Window: 24 * time.Hour, Source: "test"})
		}
	})
}

func (w *world) get(name string, denials ...holdfast.Opinion) holdfast.Request {
	req := w.req("egress/"+name, `{"method":"GET","path":"/v1/x"}`)
	req.Denials, req.ReadsOnly = denials, true
	req.Noted = []byte(`{"method":"GET","host":"` + name + `","path":"/v1/x"}`)
	return req
}

func no(g holdfast.Gate, kind holdfast.Kind) holdfast.Opinion {
	return holdfast.Opinion{Gate: g, Kind: kind, Why: "because of " + string(kind), Hint: "list it"}
}

func (w *world) last() *ledger.Entry {
	w.t.Helper()
	es := w.entries(holdfast.Local)
	if len(es) == 0 {
		w.t.Fatal("nothing is recorded")
	}
	return es[len(es)-1]
}

// The pipeline of 003 3.1 is domain, redaction, rate, budget, logging: of what a
// door and the kernel find together the first in that order is the answer, and it
// is the one entry's.
func TestEgress_Order(t *testing.T) {
	blocked, redaction := no(holdfast.K2, holdfast.KindDomainBlocked), no(holdfast.K6, holdfast.KindRedaction)
	malformed := no(holdfast.K1, holdfast.KindValidation)
	spent := func(w *world) {
		for range 3 {
			w.passes(w.get("api.example.com"))
		}
	}
	cases := []struct {
		name, host string
		denials    []holdfast.Opinion
		before     func(*world)
		gate       holdfast.Gate
		kind       holdfast.Kind
	}{
		{"unlisted", "evil.example", []holdfast.Opinion{blocked}, nil, holdfast.K2, holdfast.KindDomainBlocked},
		{"no_host", "unknown", []holdfast.Opinion{malformed}, nil, holdfast.K1, holdfast.KindValidation},
		{"path_of_a_listed_one", "api.example.com", []holdfast.Opinion{blocked}, nil, holdfast.K2, holdfast.KindDomainBlocked},
		{"domain_before_redaction", "api.example.com", []holdfast.Opinion{redaction, blocked}, nil, holdfast.K2, holdfast.KindDomainBlocked},
		{"form_before_domain", "evil.example", []holdfast.Opinion{blocked, malformed}, nil, holdfast.K1, holdfast.KindValidation},
		{"redaction_before_rate", "api.example.com", []holdfast.Opinion{redaction}, spent, holdfast.K6, holdfast.KindRedaction},
		{"rate", "api.example.com", nil, spent, holdfast.K3, holdfast.KindRateLimit},
		{"domain_before_rate", "api.example.com", []holdfast.Opinion{blocked}, spent, holdfast.K2, holdfast.KindDomainBlocked},
		{"first_of_a_gate", "api.example.com", []holdfast.Opinion{no(holdfast.K2, holdfast.KindMisdirected), blocked}, nil, holdfast.K2, holdfast.KindMisdirected},
		{"what_the_door_says_of_K3", "api.example.com", []holdfast.Opinion{no(holdfast.K3, holdfast.KindBounds)}, nil, holdfast.K3, holdfast.KindBounds},
		{"a_gate_no_door_has", "api.example.com", []holdfast.Opinion{no(holdfast.K7, holdfast.KindApprovalTimeout)}, nil, holdfast.K1, holdfast.KindApprovalTimeout},
		{"no_kind", "api.example.com", []holdfast.Opinion{{Gate: holdfast.K2, Why: "x"}}, nil, holdfast.K2, holdfast.KindInternal},
		{"nothing_but_its_being_there", "api.example.com", []holdfast.Opinion{{}}, nil, holdfast.K1, holdfast.KindInternal},
		{"said_to_allow", "api.example.com", []holdfast.Opinion{{Gate: holdfast.K2, Verdict: holdfast.Allow, Kind: holdfast.KindDomainBlocked, Why: "x"}}, nil, holdfast.K2, holdfast.KindDomainBlocked},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "", outward())
			if c.before != nil {
				c.before(w)
			}
			n := len(w.entries(holdfast.Local))
			req := w.get(c.host, c.denials...)
			checked, err := w.k.Check(t.Context(), req)
			if err != nil || checked.Verdict != holdfast.Deny || checked.Deciding().Kind != c.kind {
				t.Fatalf("a check says %+v %v", checked, err)
			}
			w.refused(req, c.gate, c.kind)
			es := w.entries(holdfast.Local)
			e := es[len(es)-1]
			if len(es) != n+1 || e.Outcome != ledger.Denied || e.BeginSeq != nil || e.ErrorKind != c.kind || e.Gate == nil || *e.Gate != c.gate || e.Boundary != "egress/"+c.host {
				t.Fatalf("%d entries, the last is %+v", len(es)-n, e)
			}
			if parts := w.parts(); !strings.Contains(parts[len(parts)-1], `"path":"/v1/x"`) {
				t.Errorf("what was asked is not kept: %q", parts)
			}
		})
	}
}

// A bad token, a halt and a pause stand above what the door found: it learns no
// more than anybody else.
func TestEgress_Order_of_the_kernels_own(t *testing.T) {
	blocked := no(holdfast.K2, holdfast.KindDomainBlocked)
	w := newWorld(t, "", outward())
	req := w.get("evil.example", blocked)
	req.Token = holdfast.NewSecret("nonsense")
	w.refused(req, holdfast.K2, holdfast.KindJWTDecode)
	req = w.get("evil.example", blocked)
	req.Payload = []byte(`{`)
	w.refused(req, holdfast.K1, holdfast.KindSchemaNotFound)
	if err := w.latch.Set("bob", "stop", w.now()); err != nil {
		t.Fatal(err)
	}
	w.refused(w.get("evil.example", blocked), holdfast.GateHalt, holdfast.KindHalted)
	if err := w.latch.Clear(); err != nil {
		t.Fatal(err)
	}
}

// Whatever a door says in whatever order, it lets nothing through that would not
// pass without it, and nothing that it names at all.
func TestEgress_property_a_door_only_denies(t *testing.T) {
	w := newWorld(t, "", outward(), unflooded)
	r := rand.New(rand.NewPCG(3, 1))
	boundaries := []string{"egress/api.example.com", "egress/evil.example", "test/low", "test/high", "test/never", "egress/*", "", "test/replay"}
	kinds := []holdfast.Kind{"", holdfast.KindDomainBlocked, holdfast.KindHeld, holdfast.KindApprovalTimeout, holdfast.KindProhibited, "wat"}
	for range testrepeat.Times(300, 80) {
		req := w.req(boundaries[r.IntN(len(boundaries))], `{"method":"GET"}`)
		for range 1 + r.IntN(3) {
			req.Denials = append(req.Denials, holdfast.Opinion{Gate: holdfast.Gate(r.IntN(14) - 3), Verdict: holdfast.Verdict(r.IntN(4)),
				Kind: kinds[r.IntN(len(kinds))], Why: strings.Repeat("x", r.IntN(2000))})
		}
		req.ReadsOnly = r.IntN(2) == 0
		out, err := w.never(req)
		if err == nil || out.Verdict != holdfast.Deny || out.Output != nil || out.Review != "" {
			t.Fatalf("%+v: %+v, %v", req.Denials, out, err)
		}
	}
}

// unflooded lets the clock run, so that refusals are each recorded.
func unflooded(c *kernel.Config, w *world) {
	now := c.Now
	c.Now = func() time.Time { w.advance(time.Second); return now() }
}

// D25c: what only reads has the risk of reading, where the contract has one.
func TestEgress_D25c_risk_of_reading(t *testing.T) {
	cases := []struct {
		name       string
		risk, read holdfast.Risk
		reads      bool
		want       holdfast.Risk
	}{
		{"read", holdfast.Medium, holdfast.Low, true, holdfast.Low},
		{"write", holdfast.Medium, holdfast.Low, false, holdfast.Medium},
		{"read_without_a_risk_of_its_own", holdfast.Medium, 0, true, holdfast.Medium},
		{"read_where_writing_is_high", holdfast.High, holdfast.Low, true, holdfast.Low},
		{"write_high", holdfast.High, holdfast.Low, false, holdfast.High},
		{"read_high_too", holdfast.High, 0, true, holdfast.High},
		{"reading_is_worse", holdfast.Low, holdfast.High, true, holdfast.High},
		{"prohibited", 0, holdfast.Low, true, holdfast.Prohibited},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "", outward(site("x.example", func(s *holdfast.Contract) { s.Risk, s.ReadRisk = c.risk, c.read })))
			req := w.get("x.example")
			req.ReadsOnly = c.reads
			switch c.want {
			case holdfast.Prohibited:
				w.refused(req, holdfast.K7, holdfast.KindProhibited)
			case holdfast.High:
				h := w.held(req)
				r, err := w.k.Review(t.Context(), h.Review)
				if err != nil || r.Risk != holdfast.High || r.State != review.Pending {
					t.Fatalf("%+v %v", r, err)
				}
				w.approve(h.Review)
				w.passes(req)
			default:
				w.passes(req)
			}
			if got := w.last().Risk; got != c.want.String() {
				t.Errorf("recorded as %s", got)
			}
		})
	}
}

// The document's names of what egress refuses, and nothing else of them: a
// budget that is missing or broken keeps its own.
func TestEgress_Error_names(t *testing.T) {
	w := newWorld(t, "", outward(site("none.example", func(c *holdfast.Contract) { c.Consumes = map[holdfast.Resource]int64{"widgets": 1} })))
	req := w.get("api.example.com")
	req.Consumes = map[holdfast.Resource]int64{holdfast.LLMTokens: 1001}
	w.refused(req, holdfast.K3, holdfast.KindBudgetExceeded)
	req.Consumes[holdfast.LLMTokens] = -1
	w.refused(req, holdfast.K3, holdfast.KindValue)
	w.refused(w.get("none.example"), holdfast.K3, holdfast.KindBudgetNotFound)
	for range 3 {
		w.passes(w.get("api.example.com"))
	}
	e := w.refused(w.get("api.example.com"), holdfast.K3, holdfast.KindRateLimit)
	if !strings.Contains(e.Hint, "room again") || !strings.Contains(e.Why, "3 a minute per tenant") {
		t.Errorf("%q, %q", e.Why, e.Hint)
	}
	w.refused(w.req("test/unfunded", `{}`), holdfast.K3, holdfast.KindBudgetNotFound)

	for _, step := range []string{"begin", "poisoned"} {
		b := &broken{}
		w := newWorld(t, "", outward(), breakable(b))
		if step == "poisoned" {
			w.mu.Lock()
			w.fault = func(string) error { return errGone }
			w.mu.Unlock()
			if err := w.k.Record(kernel.Event{Tenant: holdfast.Local, Name: "x"}); err == nil {
				t.Fatal("the ledger is not poisoned")
			}
		} else {
			b.update.Store(true)
		}
		e := w.refused(w.get("api.example.com"), holdfast.K6, holdfast.KindLogging)
		if e.Hint == "" {
			t.Error("no hint")
		}
		if _, err := w.never(w.req("test/low", `{}`)); holdfast.KindOf(err) != holdfast.KindWALWrite {
			t.Errorf("elsewhere it is %v", err)
		}
	}
}

// A domain's rate is of its tenant: all its agents together, no other tenant's,
// and no other domain's, in any sixty seconds.
func TestEgress_D24_rate_is_the_tenants(t *testing.T) {
	var who holdfast.Identity
	w := newWorld(t, "", outward(site("other.example")), func(c *kernel.Config, _ *world) {
		c.Verifier = verifierFunc(func() holdfast.Identity { return who })
	})
	as := func(agent, tenant, host string) holdfast.Request {
		who = holdfast.Identity{Tenant: tenant, Principal: "user:" + agent, Roles: []string{"agent"}, Agent: agent, Session: "s", TokenID: agent, Expires: w.now().Add(time.Hour)}
		return w.get(host)
	}
	w.passes(as("alice", holdfast.Local, "api.example.com"))
	w.advance(30 * time.Second)
	w.passes(as("bob", holdfast.Local, "api.example.com"))
	w.passes(as("carol", holdfast.Local, "api.example.com"))
	w.refused(as("dave", holdfast.Local, "api.example.com"), holdfast.K3, holdfast.KindRateLimit)
	w.passes(as("dave", holdfast.Local, "other.example"))
	w.passes(as("dave", "acme", "api.example.com"))
	w.advance(29 * time.Second)
	w.refused(as("dave", holdfast.Local, "api.example.com"), holdfast.K3, holdfast.KindRateLimit)
	w.advance(2 * time.Second) // the first is over a minute old, the others are not
	w.passes(as("dave", holdfast.Local, "api.example.com"))
	w.refused(as("alice", holdfast.Local, "api.example.com"), holdfast.K3, holdfast.KindRateLimit)
}

// The name of a row with a star or a port is crossed as it stands, by a door that
// found the row; no name that an agent gives passes as a pattern, and none passes
// for a row.
func TestEgress_D22_names_of_rows(t *testing.T) {
	rows := []holdfast.Contract{site("*.example.org"), site("example.net:8443"), site("[2001:db8::1]"), site("*.example.net:8443")}
	w := newWorld(t, "", outward(rows...))
	for _, r := range rows {
		out := w.passes(w.get(strings.TrimPrefix(r.Boundary, "egress/")))
		if e := w.last(); e.Boundary != r.Boundary || out.Boundary != r.Boundary {
			t.Errorf("%q is recorded as %q", r.Boundary, e.Boundary)
		}
		if c, ok := w.k.Listed(r.Boundary); !ok || c.Boundary != r.Boundary {
			t.Errorf("%q is not listed", r.Boundary)
		}
	}
	for _, name := range []string{"a.example.org", "*", "*.example.orgx", "*.EXAMPLE.org", "x.*.example.org", "", "example.net", "example.net:*", "*.example.net", "*.example.org/x", "**"} {
		w.refused(w.get(name), holdfast.K1, holdfast.KindSchemaNotFound)
	}

	// A pattern of configuration is one, and a name that looks like it is not.
	w = newWorld(t, "", outward(holdfast.Contract{Boundary: "egress/*", Risk: holdfast.Low, Source: "p"}, site("*.example.org", func(c *holdfast.Contract) { c.Risk, c.ReadRisk = 0, 0 })))
	w.passes(w.get("anything.example"))
	w.passes(w.get("a.example.org"))
	w.refused(w.get("*.example.org"), holdfast.K7, holdfast.KindProhibited)
	for _, name := range []string{"*", "*.example.com", "*.EXAMPLE.org", "*.example.org:1", "a*", "?", "a b", "../x", "a//b", "", "x/*"} {
		w.refused(w.get(name), holdfast.K1, holdfast.KindSchemaNotFound)
		if _, listed := w.k.Listed("egress/" + name); listed {
			t.Errorf("%q is listed", name)
		}
	}
	if !slices.Contains([]string{"anything.example"}, strings.TrimPrefix(w.entries(holdfast.Local)[0].Boundary, "egress/")) {
		t.Error("a pattern's name is recorded instead of the host")
	}
}

// What the door notes of a request is kept redacted, and only where the act gave
// nothing to keep; too much of it is nothing.
func TestEgress_D13_noted(t *testing.T) {
	const key = "AKIA" + "QYLPMN5HHHFPZAM2"
	w := newWorld(t, "", outward())
	note := func(n string) string {
		req := w.get("evil.example", no(holdfast.K2, holdfast.KindDomainBlocked))
		req.Noted = []byte(n)
		w.refused(req, holdfast.K2, holdfast.KindDomainBlocked)
		ps := w.parts()
		return ps[len(ps)-1]
	}
	if got := note(`{"method":"GET","host":"evil.example","path":"/?k=` + key + `"}`); strings.Contains(got, key) || json.NewDecoder(strings.NewReader(got)).Decode(new(holdfast.Exchange)) != nil || !strings.Contains(got, "evil.example") {
		t.Errorf("kept as %s", got)
	}
	if got := note(`{"x":"` + strings.Repeat("y", 2000) + `"}`); !strings.HasPrefix(got, "DomainBlockedError") {
		t.Errorf("kept as %.60s", got)
	}
	req := w.get("api.example.com")
	if _, err := w.k.Cross(t.Context(), req, func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{"status":200}`)}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if ps := w.parts(); ps[len(ps)-1] != `{"status":200}` {
		t.Errorf("kept as %s", ps[len(ps)-1])
	}
}
