package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/recount"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestAttack_goals_beside_a_critical_one: of a hundred goals that are submitted
// beside a critical one none begins after the pause, and what is admitted and
// what is refused is all of them.
func TestAttack_goals_beside_a_critical_one(t *testing.T) {
	w, _ := goalsWorld(t, t.TempDir(), "")
	var wg sync.WaitGroup
	var admitted, refused atomic.Int64
	for i := range 101 {
		kind := "maintenance"
		if i == 50 {
			kind = "exfiltrate_data"
		}
		req := holdfast.Request{Boundary: goalrule.Boundary, Payload: []byte(aGoal(fmt.Sprint("g", i), kind, "")), Token: w.who(fmt.Sprint("a", i))}
		wg.Add(1)
		go func() {
			defer wg.Done()
			switch _, err := w.k.Cross(context.Background(), req, ok); holdfast.KindOf(err) {
			case "":
				admitted.Add(1)
			case holdfast.KindGoalsPaused, holdfast.KindRule:
				refused.Add(1)
			default:
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if w.waiting() != 1 || admitted.Load()+refused.Load() != 101 {
		t.Fatalf("%d wait, %d admitted, %d refused", w.waiting(), admitted.Load(), refused.Load())
	}
	paused, begun := false, int64(0)
	w.leaves(holdfast.Local, func(l ledger.Stored) {
		switch l.Kind {
		case ledger.KindEvent:
			e, err := ledger.ParseEvent(l.Record)
			if err != nil {
				t.Fatal(err)
			}
			paused = paused || e.Name == "goals_paused"
		case ledger.KindBegin:
			begun++
			if paused {
				t.Error("a goal was begun after the pause")
			}
		}
	})
	if !paused || begun != admitted.Load() {
		t.Errorf("paused %v; %d begun, %d admitted", paused, begun, admitted.Load())
	}
}

// TestAttack_a_cooldown_under_other_names: the cooldown is the agent's, whatever
// kind, session, chain or intent it comes with, and however many come at once.
func TestAttack_a_cooldown_under_other_names(t *testing.T) {
	w := newWorld(t, "", listed(holdfast.Contract{Boundary: "test/cool", Risk: holdfast.Low, Cooldown: time.Hour, Source: "test:51"}))
	var wg sync.WaitGroup
	var passed atomic.Int64
	for i := range 24 {
		name := fmt.Sprint("n", i)
		req := holdfast.Request{Boundary: "test/cool", Payload: []byte(`{}`), IdempotencyKey: name, Token: w.who("loop", func(id *holdfast.Identity) {
			id.Kind, id.Session, id.Chain, id.Intent, id.Principal = name, name, name, name, "user:"+name
		})}
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := w.k.Cross(context.Background(), req, ok); err == nil {
				passed.Add(1)
			} else if k := holdfast.KindOf(err); k != holdfast.KindBounds && k != holdfast.KindPermission {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if passed.Load() != 1 {
		t.Errorf("%d passed", passed.Load())
	}
}

// TestAttack_not_one_micro_dollar_above: of many that pay an odd amount at once,
// from one chain and many sessions, as many pass as there is room for.
func TestAttack_not_one_micro_dollar_above(t *testing.T) {
	w := newWorld(t, "", limits(theTable()...))
	const each = 1_000_005 // four fit into 5,000,000 and five do not
	var wg sync.WaitGroup
	var passed atomic.Int64
	for i := range 24 {
		req := w.pays(fmt.Sprint("p", i), each, chained("c"), session(fmt.Sprint("s", i)))
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := w.k.Cross(context.Background(), req, ok); err == nil {
				passed.Add(1)
			} else if k := holdfast.KindOf(err); k != holdfast.KindBounds && k != holdfast.KindChainEnded {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if passed.Load() != 4 {
		t.Errorf("%d passed", passed.Load())
	}
	if c, err := recount.Check(t.Context(), w.store, nil); err != nil || len(c.Astray) != 0 {
		t.Errorf("%+v, %v", c.Astray, err)
	}
}

// TestAttack_prices_of_odd_values: members that the price is reckoned from, and
// that are no amount and no name, refuse and cost nothing.
func TestAttack_prices_of_odd_values(t *testing.T) {
	w := newWorld(t, "", policy(priced))
	for _, payload := range []string{
		`{"max_tokens":null,"model":"m"}`, `{"max_tokens":[],"model":"m"}`, `{"max_tokens":{},"model":"m"}`, `{"max_tokens":true,"model":"m"}`,
		`{"max_tokens":"","model":"m"}`, `{"max_tokens":1e-26,"model":"m"}`, `{"max_tokens":9223372036854775808,"model":"m"}`,
		`{"max_tokens":18446744073709551617,"model":"m"}`, `{"max_tokens":-9223372036854775808,"model":"m"}`,
		`{"max_tokens":1,"model":null}`, `{"max_tokens":1,"model":["m"]}`, `{"max_tokens":1,"model":"m "}`, `{"max_tokens":1,"model":"ｍ"}`,
		`{"max_tokens":1,"model":"m\u200b"}`, `{"max_tokens":1,"model":" m"}`,
	} {
		_, err := w.cross(w.req("test/llm", payload))
		if k := holdfast.KindOf(err); k != holdfast.KindValue && k != holdfast.KindBudgetNotFound {
			t.Errorf("%s: %v", payload, err)
		} else if strings.Contains(err.Error(), "from 0 to 1") {
			t.Errorf("%s: %q is of a score", payload, err)
		}
	}
	for _, payload := range []string{`{"max_tokens":NaN,"model":"m"}`, `{"max_tokens":1e400,"model":"m"}`, `{"max_tokens":9,"max_tokens":0,"model":"m"}`, `{"Max_tokens":9,"max_tokens":0,"model":"m"}`} {
		if _, err := w.cross(w.req("test/llm", payload)); err == nil {
			t.Errorf("%s passed", payload)
		}
	}
	if w.spentOf() != 0 {
		t.Errorf("%d was charged", w.spentOf())
	}
	// An amount that only overflows in money is not small.
	w.refusedAs(w.req("test/llm", `{"max_tokens":9007199254740992,"model":"m"}`), holdfast.K3, holdfast.KindBounds)
}
