package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Invariant 1: nothing but the very approval lets the request act; each
// refusal has its name.
func TestK7_INV1_INV2_INV5_decisions_that_are_refused(t *testing.T) {
	hex64 := strings.Repeat("ab", 32)
	cases := []struct {
		name   string
		change func(*world, *operator.Statement)
		after  func(*operator.Signed)
		kind   holdfast.Kind
	}{
		{"other_payload", func(_ *world, s *operator.Statement) { s.Exact = hex64 }, nil, holdfast.KindConflict},
		{"other_preview", func(_ *world, s *operator.Statement) { s.PreviewHash = hex64 }, nil, holdfast.KindConflict},
		{"other_policy", func(_ *world, s *operator.Statement) { s.Policy = hex64 }, nil, holdfast.KindConflict},
		{"wrong_nonce", func(_ *world, s *operator.Statement) { s.Nonce = strings.Repeat("0", 32) }, nil, holdfast.KindConflict},
		{"unknown_review", func(_ *world, s *operator.Statement) { s.Subject = "rv_0000000000" }, nil, holdfast.KindNotFound},
		{"self_approval_principal", func(_ *world, s *operator.Statement) { s.Reviewer = "user:alice" }, nil, holdfast.KindSelfApproval},
		{"self_approval_agent", func(_ *world, s *operator.Statement) { s.Reviewer = "alice" }, nil, holdfast.KindSelfApproval},
		{"signature_changed", nil, func(s *operator.Signed) { s.Signature[3] ^= 1 }, holdfast.KindPermission},
		{"statement_changed", nil, func(s *operator.Signed) {
			s.Statement = []byte(strings.Replace(string(s.Statement), "fine", "evil", 1))
		}, holdfast.KindPermission},
		{"no_signature", nil, func(s *operator.Signed) { s.Signature = nil }, holdfast.KindPermission},
		{"nothing", nil, func(s *operator.Signed) { *s = operator.Signed{} }, holdfast.KindPermission},
	}
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	statement := func() operator.Statement {
		r, err := w.k.Review(t.Context(), h.Review)
		if err != nil {
			t.Fatal(err)
		}
		return operator.Statement{Act: operator.Approve, Subject: r.ID, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce, Reason: "fine", Reviewer: "bob"}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := statement()
			if c.change != nil {
				c.change(w, &s)
			}
			signed := w.sign(s)
			if c.after != nil {
				c.after(&signed)
			}
			_, err := w.k.Decide(signed)
			wants(t, err, c.kind)
		})
	}
	t.Run("old_statement", func(t *testing.T) {
		signed := w.sign(statement())
		w.advance(operator.MaxAge + time.Second)
		_, err := w.k.Decide(signed)
		wants(t, err, holdfast.KindPermission)
	})
	t.Run("other_runtime", func(t *testing.T) {
		s := statement()
		s.At, s.ID, s.Runtime = w.now(), uuid4(), uuid4()
		person, _ := keys()
		signed, err := operator.Sign(person, s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.k.Decide(signed)
		wants(t, err, holdfast.KindPermission)
	})
	t.Run("unknown_key", func(t *testing.T) {
		sealed, _, err := operator.New(holdfast.NewSecret("another battery staple"), operator.Options{WorkFactor: 15})
		if err != nil {
			t.Fatal(err)
		}
		stranger, err := operator.Open(sealed, holdfast.NewSecret("another battery staple"))
		if err != nil {
			t.Fatal(err)
		}
		s := statement()
		s.At, s.ID, s.Runtime = w.now(), uuid4(), runtimeID
		signed, err := operator.Sign(stranger, s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.k.Decide(signed)
		wants(t, err, holdfast.KindPermission)
	})
	t.Run("another_act", func(t *testing.T) {
		_, err := w.k.Decide(w.sign(operator.Statement{Act: operator.Resume}))
		wants(t, err, holdfast.KindUsage)
	})
	// After all that it still waits, and nothing is recorded as decided.
	w.held(w.req("test/high", `{}`))
	if n := len(w.events(holdfast.Local, "review_decided")); n != 0 {
		t.Fatalf("%d decisions", n)
	}
	t.Run("same_statement_twice", func(t *testing.T) {
		signed := w.sign(statement())
		if _, err := w.k.Decide(signed); err != nil {
			t.Fatal(err)
		}
		_, err := w.k.Decide(signed)
		wants(t, err, holdfast.KindConflict)
	})
	t.Run("INV2_decided_is_decided", func(t *testing.T) {
		for _, act := range []string{operator.Reject, operator.Approve, operator.Defer, operator.Changes} {
			_, err := w.k.Decide(w.say(act, h.Review, "again"))
			wants(t, err, holdfast.KindConflict)
		}
	})
	t.Run("too_late", func(t *testing.T) {
		late := w.held(w.req("test/high", `{"late":1}`))
		w.advance(24*time.Hour + time.Second)
		_, err := w.k.Decide(w.say(operator.Approve, late.Review, ""))
		wants(t, err, holdfast.KindConflict)
	})
}

func TestK7_no_operator_key(t *testing.T) {
	w := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Operator = nil })
	h := w.held(w.req("test/high", `{}`))
	_, err := w.k.Decide(w.say(operator.Approve, h.Review, ""))
	wants(t, err, holdfast.KindPermission)
}

// What was approved is one request: other arguments, boundary, agent or a
// second time are held anew.
func TestK7_INV1_an_approval_is_for_one_request(t *testing.T) {
	w := newWorld(t, "", listed(holdfast.Contract{Boundary: "test/high2", Risk: holdfast.High, Source: "test:80"}))
	h := w.held(w.req("test/high", `{"path":"/tmp/a"}`))
	w.approve(h.Review)
	dave := w.req("test/high", `{"path":"/tmp/a"}`)
	dave.Token = w.who("dave")
	for name, req := range map[string]holdfast.Request{"args": w.req("test/high", `{"path":"/tmp/b"}`), "more_args": w.req("test/high", `{"path":"/tmp/a","x":1}`),
		"boundary": w.req("test/high2", `{"path":"/tmp/a"}`), "agent": dave} {
		if out := w.held(req); out.Review == h.Review {
			t.Errorf("%s: the same review", name)
		}
	}
	// A fresh token and another spelling of the same payload are the same.
	w.passes(w.req("test/high", ` { "path" : "/tmp/a" } `))
	if out := w.held(w.req("test/high", `{"path":"/tmp/a"}`)); out.Review == h.Review {
		t.Fatal("used twice")
	}
}

// A policy that changes voids what was approved or asked under the old one,
// and the request can be asked, and approved, under the new.
func TestK7_D11_policy_change(t *testing.T) {
	for _, approved := range []bool{true, false} {
		t.Run(fmt.Sprintf("approved_%v", approved), func(t *testing.T) {
			w := newWorld(t, "")
			h := w.held(w.req("test/high", `{}`))
			if approved {
				w.approve(h.Review)
			}
			p := *w.policy
			p.Version = strings.Repeat("2", 64)
			if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
				t.Fatal(err)
			}
			if !approved {
				_, err := w.k.Decide(w.say(operator.Approve, h.Review, ""))
				wants(t, err, holdfast.KindConflict)
			}
			again := w.held(w.req("test/high", `{}`))
			if again.Review == h.Review {
				t.Fatal("attached to a question of the old policy, which nobody can approve")
			}
			w.approve(again.Review)
			w.passes(w.req("test/high", `{}`))
			es := w.entries(holdfast.Local)
			if len(es) != 2 || es[0].ID != h.Crossing || es[0].Outcome != ledger.Denied || len(w.events(holdfast.Local, "review_voided")) != 1 {
				t.Fatalf("%+v", es)
			}
		})
	}
}

// After an approval every gate is asked again (D11).
func TestK7_D11_every_gate_again(t *testing.T) {
	w := newWorld(t, "", listed(holdfast.Contract{Boundary: "t/costly", Risk: holdfast.High, Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 30}, Source: "test:81"}))
	tok, id := w.minted("alice")
	req := w.req("t/costly", `{}`)
	req.Token = tok
	h := w.held(req)
	if w.used(w.plan(holdfast.LLMTokens, 1)[0]) != 0 {
		t.Fatal("a hold keeps a reservation")
	}
	w.approve(h.Review)
	for range 4 {
		w.passes(w.req("test/cost", `{}`))
	}
	w.refused(req, holdfast.K3, holdfast.KindBounds)
	if err := w.k.Revoke(holdfast.Local, id.TokenID, "user:carol", ""); err != nil {
		t.Fatal(err)
	}
	w.refused(req, holdfast.K2, holdfast.KindRevokedToken)
	if _, err := w.k.Pause(holdfast.Local, "alice", "user:carol", ""); err != nil {
		t.Fatal(err)
	}
	w.refused(w.req("t/costly", `{}`), holdfast.GateHalt, holdfast.KindPaused)
	// None of that used the approval up.
	if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice"})); err != nil {
		t.Fatal(err)
	}
	w.advance(24 * time.Hour) // the approval is over as well as the day's budget
	w.refused(w.req("t/costly", `{}`), holdfast.K7, holdfast.KindApprovalTimeout)
}
