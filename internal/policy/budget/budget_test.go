package budget

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func TestFits(t *testing.T) {
	const top = math.MaxInt64
	cases := []struct {
		name                string
		used, amount, limit int64
		want                holdfast.Kind
	}{
		{"K3_AC1_within", 50, 10, 100, ""},
		{"K3_AC1_to_the_edge", 50, 50, 100, ""},
		{"K3_AC1_nothing_of_nothing", 0, 0, 0, ""},
		{"K3_AC2_FP2_one_too_many", 50, 51, 100, holdfast.KindBounds},
		{"K3_AC2_document_figures", 50, 60, 100, holdfast.KindBounds},
		{"K3_FP2_limit_lowered_below_usage", 80, 1, 50, holdfast.KindBounds},
		{"K3_FP3_INV2_negative_budget", 0, 0, -1, holdfast.KindInvalidBudget},
		{"K3_FP5_negative_usage", -1, 1, 100, holdfast.KindUsageTracking},
		{"K3_FP6_negative_amount", 50, -1, 100, holdfast.KindValue},
		{"K3_FP6_most_negative_amount", 50, math.MinInt64, 100, holdfast.KindValue},
		{"K3_FP7_alone_too_much", 0, 101, 100, holdfast.KindBounds},
		{"K3_FP8_overflow", 1, top, top, holdfast.KindOverflow},
		{"K3_FP8_no_overflow_at_the_edge", 0, top, top, ""},
		{"K3_FP8_both_vast", top, top, top, holdfast.KindOverflow},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Fits(Draw{Amount: c.amount, Limit: c.limit}, Counter{Used: c.used})
			var kind holdfast.Kind
			if got != nil {
				kind = got.Kind
			}
			if kind != c.want {
				t.Fatalf("%d + %d of %d: %q, want %q", c.used, c.amount, c.limit, kind, c.want)
			}
		})
	}
}

// A limit of a boundary has a counter of its own, which only what crosses there
// draws on, and covers no resource elsewhere.
func TestLimitOfABoundary(t *testing.T) {
	limits := []Limit{
		{Scope: Tenant, Resource: holdfast.BytesOut, Amount: 1000},
		{Scope: Tenant, Resource: holdfast.BytesOut, Boundary: "egress/files.example.com", Amount: 10},
		{Scope: Agent, Resource: "messages", Boundary: "egress/*", Amount: 5},
	}
	plan := func(boundary string, uses map[holdfast.Resource]int64) ([]Draw, *Refusal) {
		ds, _, no := Plan(limits, nil, Ask{Who: holdfast.Identity{Tenant: "local", Agent: "a"}, Boundary: boundary, Consumes: uses, Now: time.Unix(0, 0)})
		return ds, no
	}
	out := map[holdfast.Resource]int64{holdfast.BytesOut: 3}
	if ds, no := plan("egress/api.example.com", out); no != nil || len(ds) != 1 || ds[0].Limit != 1000 {
		t.Fatal(ds, no)
	}
	ds, no := plan("egress/files.example.com", out)
	if no != nil || len(ds) != 2 || ds[0].Key == ds[1].Key || ds[1].Limit != 10 || ds[1].Name != "bytes_out per tenant at egress/files.example.com" {
		t.Fatal(ds, no)
	}
	messages := map[holdfast.Resource]int64{"messages": 1}
	one, no := plan("egress/a.example.com", messages)
	two, also := plan("egress/b.example.com", messages)
	if no != nil || also != nil || len(one) != 1 || one[0].Key != two[0].Key {
		t.Fatal("a pattern's counter is not shared", one, two)
	}
	if _, no := plan("mcp/mail/send", messages); no == nil || no.Kind != holdfast.KindBudgetNotFound {
		t.Fatal("a limit covers what crosses elsewhere", no)
	}
}

// What fits keeps the counter at or below its limit and never lowers it,
// whatever the numbers are; what does not fit says why.
func TestK3_INV1_INV3_property_what_fits_stays_below(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	number := func() int64 {
		switch r.IntN(5) {
		case 0:
			return math.MaxInt64 - r.Int64N(4)
		case 1:
			return -r.Int64N(5)
		case 2:
			return math.MinInt64 + r.Int64N(4)
		}
		return r.Int64N(200)
	}
	for range 200_000 {
		d, c := Draw{Amount: number(), Limit: number()}, Counter{Used: number()}
		no := Fits(d, c)
		if no == nil {
			sum := c.Used + d.Amount
			if sum < c.Used || sum > d.Limit || d.Limit < 0 || d.Amount < 0 || c.Used < 0 {
				t.Fatalf("%+v on %+v fits", d, c)
			}
			continue
		}
		if no.Kind == "" || no.Draw != d || no.Counter != c {
			t.Fatalf("%+v on %+v: %+v", d, c, no)
		}
		if d.Limit >= 0 && d.Amount >= 0 && c.Used >= 0 && d.Amount <= d.Limit && c.Used <= d.Limit-d.Amount {
			t.Fatalf("%+v on %+v is refused: %v", d, c, no.Kind)
		}
	}
}

func everybody() holdfast.Identity {
	return holdfast.Identity{Tenant: "org", Tier: "gold", Intent: "I-1", Kind: "builder", Agent: "ada", Session: "s1", Chain: "c1"}
}

// Every scope of D9 has a counter of its own; a change of its value, and of
// nothing else, makes another counter: but the tenant's, which all have in them,
// and a session's agent, whose it is.
func TestK3_D9_every_scope_counts(t *testing.T) {
	change := map[Scope]func(*holdfast.Identity){
		Tenant:  func(i *holdfast.Identity) { i.Tenant = "x" },
		Tier:    func(i *holdfast.Identity) { i.Tier = "x" },
		Intent:  func(i *holdfast.Identity) { i.Intent = "x" },
		Kind:    func(i *holdfast.Identity) { i.Kind = "x" },
		Agent:   func(i *holdfast.Identity) { i.Agent = "x" },
		Session: func(i *holdfast.Identity) { i.Session = "x" },
		Chain:   func(i *holdfast.Identity) { i.Chain = "x" },
	}
	for scope := range change {
		limits := []Limit{{Scope: scope, Resource: holdfast.LLMTokens, Amount: 9}}
		plan := func(who holdfast.Identity) string {
			ds, _, no := Plan(limits, nil, Ask{Who: who, Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 1}, Now: time.Unix(0, 0)})
			if no != nil || len(ds) != 1 {
				t.Fatalf("%s: %+v %+v", scope, ds, no)
			}
			return ds[0].Key
		}
		base := plan(everybody())
		for other, fn := range change {
			who := everybody()
			fn(&who)
			moved := plan(who) != base
			if want := other == scope || other == Tenant || scope == Session && other == Agent; moved != want {
				t.Errorf("scope %s, another %s: counter moved %v, want %v", scope, other, moved, want)
			}
		}
		if scope == Tenant {
			continue
		}
		empty := holdfast.Identity{Tenant: "org"}
		_, _, no := Plan(limits, nil, Ask{Who: empty, Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 1}, Now: time.Unix(0, 0)})
		if no == nil || no.Kind != holdfast.KindBudgetNotFound {
			t.Errorf("scope %s without a value is covered: %+v", scope, no)
		}
	}
}

// No value can reach into another's counter: keys differ wherever values do.
func TestK3_INV4_AC4_property_keys_never_meet(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	pieces := []string{"a", "/", "%2F", "..", "agent", "tenant", "llm_tokens", "86400", "", "é", "%", "\x00", "rate"}
	word := func() string {
		s := ""
		for range 1 + r.IntN(3) {
			s += pieces[r.IntN(len(pieces))]
		}
		return s
	}
	seen := map[string][2]string{}
	for range 20_000 {
		who := holdfast.Identity{Tenant: word(), Agent: word()}
		if who.Tenant == "" || who.Agent == "" {
			continue
		}
		ds, _, no := Plan([]Limit{{Scope: Agent, Resource: holdfast.LLMTokens, Amount: 1}}, nil,
			Ask{Who: who, Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 1}, Now: time.Unix(0, 0)})
		if no != nil {
			t.Fatal(no)
		}
		pair := [2]string{who.Tenant, who.Agent}
		if old, ok := seen[ds[0].Key]; ok && old != pair {
			t.Fatalf("%q and %q share the counter %q", old, pair, ds[0].Key)
		}
		seen[ds[0].Key] = pair
	}
}

func TestPlanRefuses(t *testing.T) {
	one := func(n int64) map[holdfast.Resource]int64 {
		return map[holdfast.Resource]int64{holdfast.LLMTokens: n}
	}
	cases := []struct {
		name   string
		limits []Limit
		ask    map[holdfast.Resource]int64
		want   holdfast.Kind
	}{
		{"K3_FP1_no_budget_at_all", nil, one(1), holdfast.KindBudgetNotFound},
		{"K3_FP1_budget_of_another_resource", []Limit{{Scope: Agent, Resource: holdfast.CPUMillis, Amount: 5}}, one(1), holdfast.KindBudgetNotFound},
		{"K3_FP1_budget_of_another_agent", []Limit{{Scope: Agent, Match: "bob", Resource: holdfast.LLMTokens, Amount: 5}}, one(1), holdfast.KindBudgetNotFound},
		{"K3_FP1_unknown_scope", []Limit{{Scope: "galaxy", Resource: holdfast.LLMTokens, Amount: 5}}, one(1), holdfast.KindBudgetNotFound},
		{"K3_FP3_negative_budget", []Limit{{Scope: Agent, Resource: holdfast.LLMTokens, Amount: -5}}, one(1), holdfast.KindInvalidBudget},
		{"K3_FP3_one_of_two_negative", []Limit{{Scope: Agent, Resource: holdfast.LLMTokens, Amount: 5}, {Scope: Tenant, Resource: holdfast.LLMTokens, Amount: -5}}, one(1), holdfast.KindInvalidBudget},
		{"K3_FP6_negative_amount", []Limit{{Scope: Agent, Resource: holdfast.LLMTokens, Amount: 5}}, one(-1), holdfast.KindValue},
		{"K3_FP6_negative_without_budget", nil, one(-1), holdfast.KindValue},
		{"zero_draws_nothing", nil, one(0), ""},
		{"own_limit_matches", []Limit{{Scope: Agent, Match: "ada", Resource: holdfast.LLMTokens, Amount: 5}}, one(1), ""},
		{"star_matches", []Limit{{Scope: Agent, Match: "*", Resource: holdfast.LLMTokens, Amount: 5}}, one(1), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ds, rs, no := Plan(c.limits, []RateLimit{{Scope: Agent, PerMinute: 5}}, Ask{Who: everybody(), Consumes: c.ask, Now: time.Unix(0, 0)})
			if c.want == "" {
				if no != nil {
					t.Fatalf("%+v", no)
				}
				return
			}
			if no == nil || no.Kind != c.want || ds != nil || rs != nil {
				t.Fatalf("%+v, want %v", no, c.want)
			}
		})
	}
}

// Windows start at a multiple of their length, so that a day is a UTC day.
func TestK3_AC7_windows(t *testing.T) {
	day := 24 * time.Hour
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	midnight := at("2026-11-21T00:00:00Z").Unix()
	for _, s := range []string{"2026-11-21T00:00:00Z", "2026-11-21T12:34:56Z", "2026-11-21T23:59:59.999999999Z", "2026-11-21T00:30:00+00:00", "2026-11-20T23:30:00-01:00"} {
		if got := WindowStart(day, at(s)); got != midnight {
			t.Errorf("%s: the day began at %d, want %d", s, got, midnight)
		}
	}
	if got := WindowStart(day, at("2026-11-20T23:59:59.999999999Z")); got != midnight-86400 {
		t.Errorf("the last instant of a day belongs to the next: %d", got)
	}
	if WindowStart(0, at("2026-11-21T12:00:00Z")) != 0 {
		t.Error("a window of zero has a start: it would reset")
	}
	r := rand.New(rand.NewPCG(7, 7))
	for range 10_000 {
		now, w := time.Unix(r.Int64N(4e9), r.Int64N(1e9)), time.Duration(1+r.Int64N(1e6))*time.Second
		start := time.Unix(WindowStart(w, now), 0)
		if start.After(now) || !start.Add(w).After(now) || start.Unix()%int64(w/time.Second) != 0 {
			t.Fatalf("window %v at %v starts %v", w, now, start)
		}
	}
}

// The plan of the same ask is the same, in the same order, so that two
// crossings never take counters the other way round.
func TestPlanIsDeterministic(t *testing.T) {
	limits := []Limit{{Scope: Agent, Resource: holdfast.LLMTokens, Amount: 5}, {Scope: Tenant, Resource: holdfast.LLMTokens, Amount: 5},
		{Scope: Tenant, Resource: holdfast.CPUMillis, Amount: 5}, {Scope: Tenant, Resource: holdfast.FileWrites, Amount: 5}}
	ask := Ask{Who: everybody(), Now: time.Unix(0, 0), Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 1, holdfast.CPUMillis: 1, holdfast.FileWrites: 1}}
	first, _, _ := Plan(limits, nil, ask)
	for range 100 {
		ds, _, _ := Plan(limits, nil, ask)
		for i := range ds {
			if ds[i] != first[i] {
				t.Fatalf("%+v, then %+v", first, ds)
			}
		}
	}
}

func TestRatesAndBoundaries(t *testing.T) {
	cases := []struct {
		pattern, boundary string
		want              bool
	}{
		{"", "a/b", true}, {"*", "a/b", true}, {"a/*", "a/b", true}, {"a/*", "ab", false},
		{"a/b", "a/b", true}, {"a/b", "a/bc", false}, {"A/b", "a/b", false},
	}
	for _, c := range cases {
		_, rs, no := Plan(nil, []RateLimit{{Scope: Agent, Boundary: c.pattern, PerMinute: 3, Cooldown: time.Second}}, Ask{Who: everybody(), Boundary: c.boundary, Now: time.Unix(0, 0)})
		if no != nil || (len(rs) == 2) != c.want {
			t.Errorf("%q on %q: %d rates, want matched %v", c.pattern, c.boundary, len(rs), c.want)
		}
		if len(rs) == 2 && (rs[0].Limit != 3 || rs[0].Window != time.Minute || rs[1].Limit != 1 || rs[1].Window != time.Second || rs[0].Key == rs[1].Key) {
			t.Errorf("%+v", rs)
		}
	}
}
