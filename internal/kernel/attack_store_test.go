package kernel_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// An approval that was used is put back by hand under the id of a crossing that
// never began: the person's word was for one act.
func TestAttackStore_used_approval_under_another_crossing(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	w.approve(h.Review)
	w.passes(w.req("test/high", `{}`))
	w.edit(h.Review, func(r *review.Review) {
		r.State, r.Crossing = review.Approved, uuid4()
	})
	w.noAct(w.req("test/high", `{}`), "one approval, twice")
}

// A genuine approval is given to another agent, another principal or another
// boundary by changing its row.
func TestAttackStore_approval_moved_to_another(t *testing.T) {
	t.Run("agent", func(t *testing.T) {
		w := newWorld(t, "")
		h := w.held(w.req("test/high", `{}`))
		w.approve(h.Review)
		w.edit(h.Review, func(r *review.Review) { r.Agent, r.Principal = "eve", "user:eve" })
		req := w.req("test/high", `{}`)
		req.Token = w.who("eve")
		w.noAct(req, "another agent")
	})
	t.Run("boundary", func(t *testing.T) {
		w := newWorld(t, "", func(c *kernel.Config, _ *world) {
			c.Policy.Contracts = append(c.Policy.Contracts, holdfast.Contract{Boundary: "test/high2", Risk: holdfast.High, Source: "test"})
		})
		h := w.held(w.req("test/high", `{}`))
		w.approve(h.Review)
		w.edit(h.Review, func(r *review.Review) { r.Boundary = "test/high2" })
		w.noAct(w.req("test/high2", `{}`), "another boundary")
	})
}

// An approval that has expired is made to last by changing its row.
func TestAttackStore_expired_approval_made_to_last(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	w.approve(h.Review)
	w.advance(review.Lifetime + time.Hour)
	w.edit(h.Review, func(r *review.Review) { r.Decided, r.Expires = w.now(), w.now().Add(review.Lifetime) })
	w.noAct(w.req("test/high", `{}`), "an approval of yesterday")
}

// A rule that a person has forgotten is brought back by changing its row. The
// rule's own word is genuine; that it was forgotten is the row's word alone.
func TestAttackStore_forgotten_rule_brought_back(t *testing.T) {
	w := newWorld(t, "")
	m := w.remember("test/high", inWorkArgs, inWork)
	before := w.mustRow("remembered_rule", m.ID)
	if _, err := w.k.Forget(w.sign(operator.Statement{Act: operator.Forget, Subject: m.ID})); err != nil {
		t.Fatal(err)
	}
	w.held(w.req("test/high", `{"path":"/srv/tree/b","text":"x"}`))
	w.putRow(before, "remembered_rule", m.ID)
	w.noAct(w.req("test/high", `{"path":"/srv/tree/c","text":"x"}`), "a rule that was forgotten")
}

// Whoever shows no token fills no ledger: all of them together are refused
// unrecorded after the first few of a minute.
func TestAttack_nobody_floods_the_ledger(t *testing.T) {
	w := newWorld(t, "")
	const few, tries = 60, 200
	before := len(w.entries(holdfast.Unverified))
	for range tries {
		w.noAct(holdfast.Request{Boundary: "test/high", Payload: []byte(`{}`)}, "nobody")
	}
	if n := len(w.entries(holdfast.Unverified)) - before; n != few {
		t.Errorf("%d refusals are recorded, not %d", n, few)
	}
	w.advance(time.Minute)
	if _, err := w.k.Sweep(); err != nil {
		t.Fatal(err)
	}
	if n := len(w.events(holdfast.Unverified, "denials_summarised")); n != 1 {
		t.Errorf("%d summaries of what was not recorded", n)
	}
}

// Who is turned away before there is a crossing is in the same event as who is
// refused unrecorded, and in none twice.
func TestAttack_those_turned_away_are_summed_up(t *testing.T) {
	w := newWorld(t, "")
	tok := w.who("mallory")
	w.k.TurnedAway(t.Context(), tok, 7)
	w.noAct(holdfast.Request{Boundary: "nowhere", Payload: []byte(`{}`), Token: tok}, "no such boundary")
	w.k.TurnedAway(t.Context(), tok, 5)
	w.k.TurnedAway(t.Context(), tok, 0)
	w.k.TurnedAway(t.Context(), tok, -3)
	w.k.TurnedAway(t.Context(), holdfast.NewSecret("no token"), 2)
	w.advance(time.Minute)
	for range 2 {
		if _, err := w.k.Sweep(); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, want := range map[string]string{holdfast.Local: "mallory 1 12", holdfast.Unverified: "- 0 2"} {
		var got []string
		for _, e := range w.events(tenant, "denials_summarised") {
			var n struct{ Recorded, Unrecorded int }
			if err := json.Unmarshal(e.Data, &n); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(e.Subject, " ", n.Recorded, " ", n.Unrecorded))
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: the ledger says %q, want %q", tenant, got, want)
		}
	}
}
