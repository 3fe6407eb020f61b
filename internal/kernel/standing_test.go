package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// toNoon sets the clock to noon (UTC) of the next day, far from where windows end.
func (w *world) toNoon() {
	day := 24 * time.Hour
	w.advance(w.now().Truncate(day).Add(day + day/2).Sub(w.now()))
}

// standings is how the budgets stand, one line each, the tightest first.
func (w *world) standings(ask survey.Ask) []string {
	w.t.Helper()
	var out []string
	w.view(func(tx kernel.Tx) error {
		s, err := survey.Read(tx, w.policy, ask, w.now())
		for i := range s.Rows {
			out = append(out, stands(&s.Rows[i]))
		}
		return err
	})
	return out
}

func stands(s *survey.Standing) string {
	n := func(v *int64) string {
		if v == nil {
			return "?"
		}
		return fmt.Sprint(*v)
	}
	text := fmt.Sprintf("%s %s %s used %s reserved %s left %s of %d", s.Tenant, s.Whose(), s.Resource, n(s.Used), n(s.Reserved), n(s.Left), s.Limit)
	if s.Unknown != "" {
		text += ": " + s.Unknown
	}
	return text
}

func (w *world) wantStandings(ask survey.Ask, want ...string) {
	w.t.Helper()
	if got := w.standings(ask); !slices.Equal(got, want) {
		w.t.Errorf("%+v:\n%q, want\n%q", ask, got, want)
	}
}

func moneyAndTokens(p *kernel.Policy) {
	p.Limits = append(theTable(), budget.Limit{Scope: budget.Intent, Resource: holdfast.LLMTokens, Amount: 1000, Source: "test:1"},
		budget.Limit{Scope: budget.Agent, Match: "bob", Resource: holdfast.HTTPRequests, Amount: 10, Window: time.Hour, Source: "test:2"})
}

// D9: what is left of each budget is said before it refuses: of the tenant's day, a
// session, a chain, an intent and an agent, with what crossings in flight reserve.
func TestD9_how_budgets_stand(t *testing.T) {
	w := newWorld(t, "", policy(moneyAndTokens))
	w.toNoon()
	w.wantStandings(survey.Ask{}, "local each chain money_micro used 0 reserved 0 left 5000000 of 5000000",
		"local each session money_micro used 0 reserved 0 left 10000000 of 10000000",
		"local agent bob http_requests used 0 reserved 0 left 10 of 10", "local each intent llm_tokens used 0 reserved 0 left 1000 of 1000", "local tenant local money_micro used 0 reserved 0 left 50000000 of 50000000")
	w.passes(w.pays("ada", 4_000_000, chained("c1")))
	req := w.pays("bob", 1_000_000, func(id *holdfast.Identity) { id.Intent = "I-7" })
	req.Consumes[holdfast.LLMTokens], req.Consumes[holdfast.HTTPRequests] = 400, 1
	began, end := make(chan struct{}), make(chan struct{})
	gone := make(chan error, 1)
	go func() {
		_, err := w.k.Cross(context.Background(), req, func(context.Context) (holdfast.Output, error) {
			close(began)
			<-end
			return holdfast.Output{Body: []byte(`{}`), Used: map[holdfast.Resource]int64{holdfast.LLMTokens: 100}}, nil
		})
		gone <- err
	}()
	<-began
	all := []string{"local chain c1 money_micro used 4000000 reserved 0 left 1000000 of 5000000", "local session ada-s1 of ada money_micro used 4000000 reserved 0 left 6000000 of 10000000",
		"local intent I-7 llm_tokens used 0 reserved 400 left 600 of 1000", "local session bob-s1 of bob money_micro used 0 reserved 1000000 left 9000000 of 10000000",
		"local agent bob http_requests used 0 reserved 1 left 9 of 10", "local tenant local money_micro used 4000000 reserved 1000000 left 45000000 of 50000000"}
	w.wantStandings(survey.Ask{Live: true}, all...)
	of := func(agent string) []string {
		return w.standings(survey.Ask{Tenant: holdfast.Local, Agent: agent})
	}
	const iterations = "local each session iterations used 0 reserved 0 left 2 of 2"
	if got, want := of("bob"), []string{all[2], all[3], all[4], all[5], "local each chain money_micro used 0 reserved 0 left 5000000 of 5000000", iterations}; !slices.Equal(got, want) {
		t.Errorf("bob: %q, want %q", got, want)
	}
	if got, want := of("ada"), []string{all[0], all[1], all[5], iterations, "local each intent llm_tokens used 0 reserved 0 left 1000 of 1000"}; !slices.Equal(got, want) {
		t.Errorf("ada: %q, want %q", got, want)
	}
	close(end)
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	all[2] = "local intent I-7 llm_tokens used 100 reserved 0 left 900 of 1000"
	all[3] = "local session bob-s1 of bob money_micro used 1000000 reserved 0 left 9000000 of 10000000"
	if got := w.standings(survey.Ask{Live: true}); !slices.Contains(got, all[2]) || !slices.Contains(got, all[3]) {
		t.Errorf("%q", got)
	}
	// A day later all of the day's is there again; what has no window is not.
	w.advance(24 * time.Hour)
	for _, s := range w.standings(survey.Ask{}) {
		if s == "local tenant local money_micro used 0 reserved 0 left 50000000 of 50000000" {
			return
		}
	}
	t.Errorf("%q", w.standings(survey.Ask{}))
}

// What begins anew says when, who says so and what exceeding it brings; what people
// have granted is part of the limit.
func TestD41_standing_says_what_follows(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	w.toNoon()
	w.passes(w.pays("ada", 10_000_000))
	w.refusedAs(w.pays("ada", 1), holdfast.K3, holdfast.KindBounds)
	w.approve(w.spentReview(1).ID)
	w.view(func(tx kernel.Tx) error {
		s, err := survey.Read(tx, w.policy, survey.Ask{Agent: "ada"}, w.now())
		if err != nil || s.Policy != w.policy.Version || s.More != 0 {
			return fmt.Errorf("%+v, %w", s, err)
		}
		for _, r := range s.Rows {
			switch {
			case r.Scope == budget.Session && r.Resource == holdfast.MoneyMicro:
				if r.Limit != 20_000_000 || r.Granted != 10_000_000 || *r.Left != 10_000_000 || r.Exceed != budget.PauseAgent || !r.Ends.IsZero() {
					t.Errorf("%+v", r)
				}
			case r.Scope == budget.Tenant:
				if day := w.now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour); !r.Ends.Equal(day) || r.Exceed != budget.BlockTenant || r.Source != "built in" {
					t.Errorf("%+v, the day ends %s", r, day)
				}
			}
		}
		return nil
	})
}

// The iterations of a session are those of the kind that its agent is of.
func TestD41_standing_of_iterations(t *testing.T) {
	w := newWorld(t, "")
	r := w.req("agent/step", `{}`)
	r.Token = w.who("ada", builder)
	w.passes(r)
	w.passes(w.req("agent/step", `{}`))
	got := w.standings(survey.Ask{Live: true})
	if want := []string{"local session alice-s1 of alice iterations used 1 reserved 0 left 1 of 2", "local session ada-s1 of ada iterations used 1 reserved 0 left 4 of 5"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Tenants stand apart, and an agent that nobody saw is named.
func TestStandingsOfOthers(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	w.toNoon()
	w.passes(w.pays("ada", 1))
	err := w.store.View(t.Context(), func(tx kernel.Tx) error {
		_, err := survey.Read(tx, w.policy, survey.Ask{Agent: "nobody"}, w.now())
		return err
	})
	if holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Errorf("%v", err)
	}
	for _, s := range w.standings(survey.Ask{Tenant: "acme"}) {
		if !strings.HasPrefix(s, "acme ") || !strings.Contains(s, "used 0 reserved 0") {
			t.Errorf("%q", s)
		}
	}
}

// spoiled reads a store of which something cannot be read.
type spoiled struct {
	kernel.Tx
	counters bool // none can be listed
	open     bool // a begin is not readable
	damaged  bool
}

var errSpoiled = errors.New("the disk says no")

func (s spoiled) Counters(prefix string, fn func(string, budget.Counter) error) error {
	if s.counters {
		return errSpoiled
	}
	return s.Tx.Counters(prefix, func(key string, c budget.Counter) error {
		if s.damaged {
			c.Used = -1
		}
		return fn(key, c)
	})
}

func (s spoiled) Open(fn func(ledger.Stored) error) error {
	if s.open {
		return errSpoiled
	}
	return s.Tx.Open(fn)
}

// D41: a counter that cannot be read is unknown, which is neither spent nor free; it
// comes before all that is known.
func TestD41_unreadable_counters_stand_unknown(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	w.toNoon()
	w.passes(w.pays("ada", 1_000_000))
	for name, c := range map[string]struct {
		as   spoiled
		want string
	}{
		"counters": {spoiled{counters: true}, "used ? reserved ? left ? of 50000000: the counter cannot be read"},
		"damaged":  {spoiled{damaged: true}, "used ? reserved ? left ? of 50000000: the counter is damaged"},
		"begins":   {spoiled{open: true}, "used ? reserved ? left 49000000 of 50000000: what is reserved cannot be read"},
	} {
		w.view(func(tx kernel.Tx) error {
			c.as.Tx = tx
			for _, live := range []bool{true, false} {
				s, err := survey.Read(c.as, w.policy, survey.Ask{Live: live}, w.now())
				if err != nil {
					return err
				}
				found := false
				for i := range s.Rows {
					if i > 0 && s.Rows[i].Left == nil && s.Rows[i-1].Left != nil {
						t.Errorf("%s: what is unknown comes after what is known", name)
					}
					found = found || stands(&s.Rows[i]) == "local tenant local money_micro "+c.want
				}
				if !found {
					t.Errorf("%s, live %t: %+v", name, live, s.Rows)
				}
			}
			return nil
		})
	}
}
