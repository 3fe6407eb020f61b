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
	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// modelPrices has two models, one of which says what its cache costs.
func modelPrices(p *kernel.Policy) {
	read := int64(300_000)
	p.Limits = theTable()
	p.Prices = &budget.Prices{Version: "table-7", Models: map[string]budget.ModelPrice{
		"m":    {Input: 3_000_000, Output: 15_000_000, Cached: &budget.CachedPrice{Read: &read}},
		"dear": {Input: 30_000_000, Output: 150_000_000}}}
}

// asksModel is a request that takes at most 1000 tokens in and 100 out.
func (w *world) asksModel(model string) holdfast.Request {
	r := w.req("test/low", `{}`)
	r.Model = &holdfast.ModelUse{Model: model, Tokens: holdfast.Tokens{Input: 1000, Output: 100}}
	return r
}

func took(u *holdfast.ModelUse, err error) kernel.Act {
	return func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{}`), Model: u}, err
	}
}

// D9, D24: a model's price is reserved from what may be taken at most, and settled
// by what the provider says; where it says nothing, at the reservation.
func TestD24_a_model_is_charged_by_what_it_took(t *testing.T) {
	const reserved = 1000*3 + 100*15
	for name, c := range map[string]struct {
		took *holdfast.ModelUse
		err  error
		how  string
		want int64
	}{
		"complete": {took: &holdfast.ModelUse{How: "complete", Tokens: holdfast.Tokens{Input: 10, CacheRead: 100, CacheWrite: 20, Output: 5}}, how: "complete", want: 10*3 + 30 + 20*6 + 5*15},
		"nothing":  {how: "reserved", want: reserved},
		"free":     {took: &holdfast.ModelUse{How: "refused"}, how: "refused", want: 0},
		"failed":   {err: errors.New("it broke off"), how: "reserved", want: reserved},
		"partial, failed": {took: &holdfast.ModelUse{How: "partial", Tokens: holdfast.Tokens{Input: 10, Output: 7}},
			err: &holdfast.Error{Kind: holdfast.KindForward, Why: "it broke off"}, how: "partial", want: 10*3 + 7*15},
		"below zero": {took: &holdfast.ModelUse{How: "complete", Tokens: holdfast.Tokens{Input: -10}}, how: "reserved", want: reserved},
		"another":    {took: &holdfast.ModelUse{How: "complete", Answered: "dear", Tokens: holdfast.Tokens{Input: 10}}, how: "complete", want: 10 * 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", policy(modelPrices))
			_, err := w.k.Cross(t.Context(), w.asksModel("m"), took(c.took, c.err))
			if (err != nil) != (c.err != nil) {
				t.Fatal(err)
			}
			if got := w.spentOf(); got != c.want {
				t.Errorf("%d were charged, not %d", got, c.want)
			}
			es := w.entries(holdfast.Local)
			m := es[len(es)-1].Model
			if m == nil || m.Model != "m" || m.How != c.how || m.Micro != c.want || m.Prices != "table-7" {
				t.Errorf("the entry says %+v", m)
			}
		})
	}
}

// Of models that may answer instead the dearest is reserved, and the one that
// answers is charged.
func TestD24_other_models_may_answer(t *testing.T) {
	w := newWorld(t, "", policy(modelPrices))
	r := w.asksModel("m")
	r.Model.Others = []string{"dear"}
	_, err := w.k.Cross(t.Context(), r, func(context.Context) (holdfast.Output, error) {
		if got := w.spentOf(); got != 1000*30+100*150 {
			t.Errorf("%d are reserved", got)
		}
		return holdfast.Output{Model: &holdfast.ModelUse{How: "complete", Answered: "dear", Tokens: holdfast.Tokens{Input: 10}}}, nil
	})
	if got := w.spentOf(); err != nil || got != 300 {
		t.Errorf("%d were charged: %v", got, err)
	}
	r = w.asksModel("m")
	r.Model.Others = []string{"unknown"}
	w.refusedAs(r, holdfast.K3, holdfast.KindBudgetNotFound)
}

// ledger.md part 4: a model that nobody has priced is refused, once anything is
// priced or a budget of money was written down; else its tokens alone are counted.
func TestPart4_a_model_without_a_price(t *testing.T) {
	w := newWorld(t, "", policy(modelPrices))
	e := w.refusedAs(w.asksModel("other"), holdfast.K3, holdfast.KindBudgetNotFound)
	if !strings.Contains(e.Why, `no price for model "other"`) {
		t.Error(e.Why)
	}
	w = newWorld(t, "", policy(func(p *kernel.Policy) { p.Limits = theTable() }))
	w.passes(w.asksModel("other"))
	es := w.entries(holdfast.Local)
	if m := es[len(es)-1].Model; m == nil || m.Prices != "" || m.Micro != 0 || m.Input != 1000 {
		t.Errorf("%+v", m)
	}
	w = newWorld(t, "", policy(func(p *kernel.Policy) {
		p.Limits = append(theTable(), budget.Limit{Scope: budget.Agent, Resource: holdfast.MoneyMicro, Amount: 1, Source: "holdfast.yaml:3"})
	}))
	w.refusedAs(w.asksModel("other"), holdfast.K3, holdfast.KindBudgetNotFound)
}

// What was spent is summed by agent, intent and model, as the ledger's entries say,
// also of crossings that a restart closes, and stands after it.
func TestSpendSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	w := reopen(t, dir, "", policy(modelPrices))
	for range 3 {
		if _, err := w.k.Cross(t.Context(), w.asksModel("m"), took(&holdfast.ModelUse{How: "complete", Tokens: holdfast.Tokens{Input: 10, CacheRead: 4, CacheWriteLong: 2, Output: 1}}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	r := w.asksModel("dear")
	r.Sub = &holdfast.SubAgent{ID: "explore", Session: "s"}
	if _, err := w.k.Cross(t.Context(), r, took(nil, nil)); err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	go w.k.Cross(context.Background(), w.asksModel("m"), func(ctx context.Context) (holdfast.Output, error) {
		close(began)
		<-ctx.Done()
		select {} // the process ends here
	})
	<-began
	w = reopen(t, dir, "", policy(modelPrices))
	if _, err := w.k.Recover(0); err != nil {
		t.Fatal(err)
	}
	var day, month []spend.Sum
	if err := w.store.View(t.Context(), func(tx kernel.Tx) (err error) {
		day, month, err = spend.Read(tx, w.now())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []spend.Sum{
		{Tenant: holdfast.Local, Agent: "alice/explore", Owner: "alice", Model: "dear", Calls: 1, Estimated: 1, Input: 1000, Output: 100, Micro: 45_000},
		{Tenant: holdfast.Local, Agent: "alice", Model: "m", Calls: 4, Estimated: 1, Input: 1030, CacheRead: 12, CacheWrite: 6, Output: 103, Micro: 3*(30+2+12+15) + 4500},
	}
	if len(day) != 2 || len(month) != 2 || day[0] != want[0] || day[1] != want[1] || month[1] != want[1] {
		t.Errorf("%+v\n%+v\nnot\n%+v", day, month, want)
	}
	sum := int64(0)
	for _, e := range w.entries(holdfast.Local) {
		if e.Model != nil && e.Outcome != ledger.Denied {
			sum += e.Model.Micro
		}
	}
	if got := day[0].Micro + day[1].Micro; got != sum || got != w.spentOf() {
		t.Errorf("the sums are %d, the entries' %d, the counter's %d", got, sum, w.spentOf())
	}
	if err := w.store.View(t.Context(), func(tx kernel.Tx) (err error) {
		day, _, err = spend.Read(tx, w.now().AddDate(0, 0, 7))
		return err
	}); err != nil || len(day) != 0 {
		t.Errorf("a week later the day has %+v, %v", day, err)
	}
}

// The dearest of all tenants comes first.
func TestSpendOfAllTenants(t *testing.T) {
	who := holdfast.Identity{Principal: "user:a", Agent: "a", Session: "s", TokenID: "j", Roles: []string{"agent"}, Expires: time.Now().Add(time.Hour)}
	w := newWorld(t, "", policy(modelPrices), func(c *kernel.Config, _ *world) { c.Verifier = verifierFunc(func() holdfast.Identity { return who }) })
	for i, tenant := range []string{"b", "a", "b", "a"} {
		who.Tenant, who.Agent = tenant, string(rune('w'+i))
		if _, err := w.k.Cross(t.Context(), w.asksModel("m"), took(&holdfast.ModelUse{How: "complete", Tokens: holdfast.Tokens{Output: int64(10 * i)}}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.store.View(t.Context(), func(tx kernel.Tx) error {
		day, month, err := spend.Read(tx, w.now())
		for _, list := range [][]spend.Sum{day, month} {
			got := ""
			for _, s := range list {
				got += s.Tenant + s.Agent + " "
			}
			if got != "az by ax bw " {
				t.Errorf("%s", got)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// The names that a host gives those within its agent take no other agent's row.
func TestSpendOfManyWithin(t *testing.T) {
	w := newWorld(t, "", policy(modelPrices))
	day := w.now().UTC()
	place := "day" + string('0'+rune(day.Weekday()))
	w.putRow(fmt.Appendf(nil, `{"period":%q,"rows":500}`, day.Format("2006-01-02")), "spend_period",
		holdfast.Local, place)
	for _, id := range []string{"a", "b", ""} {
		r := w.asksModel("m")
		r.Sub = &holdfast.SubAgent{ID: id}
		w.passes(r)
	}
	if err := w.store.View(t.Context(), func(tx kernel.Tx) error {
		day, month, err := spend.Read(tx, day)
		if len(month) != 3 || month[0].Owner+month[1].Owner+month[2].Owner != "alicealice" {
			t.Errorf("the month has %+v", month)
		}
		day = slices.DeleteFunc(day, func(s spend.Sum) bool { return s.Model == "" })
		if len(day) != 1 || day[0].Agent != "alice" || day[0].Owner != "" || day[0].Calls != 3 {
			t.Errorf("the day has %+v", day)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
