package dissimilar_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

func canonicalJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := dissimilar.Canonical(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// approvals are begins that no approval covers.
func approvals() map[string]func(*book) int64 {
	approved := func(change ...func(*ledger.Begin)) func(*book) int64 {
		return func(b *book) int64 { _, seq := b.approved("rv_a", change...); return seq }
	}
	return map[string]func(*book) int64{
		"used_twice": func(b *book) int64 {
			b.approved("rv_a")
			_, seq := b.whole(high(b.id(), "rv_a"))
			return seq
		},
		"of_another_crossing": approved(func(g *ledger.Begin) { g.ID = "01a1fcf0-0000-7000-8000-00000000eeee" }),
		"of_another_payload": approved(func(g *ledger.Begin) {
			g.ExactHash, g.Key = sha([]byte(`{"n": 1}`)), sha([]byte(text))
		}),
		"of_another_agent":     approved(func(g *ledger.Begin) { g.Agent = "eve" }),
		"of_another_boundary":  approved(func(g *ledger.Begin) { g.Boundary = "mcp/fs/delete" }),
		"of_another_principal": approved(func(g *ledger.Begin) { g.Caller = "user:mallory" }),
		"of_another_policy":    approved(func(g *ledger.Begin) { g.Governs = sha([]byte("new")) }),
		"by_another_reviewer":  approved(func(g *ledger.Begin) { g.Reviewer = "carol" }),
		"after_a_day": func(b *book) int64 {
			id := b.id()
			b.propose("rv_a", id, text)
			b.decide("rv_a", id, answer("rv_a"))
			b.now = b.now.Add(24*time.Hour + 2*time.Second)
			_, seq := b.whole(high(id, "rv_a"))
			return seq
		},
		"that_nobody_gave": func(b *book) int64 {
			id := b.id()
			b.propose("rv_a", id, text)
			_, seq := b.whole(high(id, "rv_a"))
			return seq
		},
		"of_an_escape_attempt": func(b *book) int64 {
			id := b.id()
			b.event("review_proposed", "user:alice", "rv_a", id, map[string]any{"about": "escape", "agent": "ada", "boundary": "mcp/fs/write",
				"exact_hash": sha([]byte(text)), "preview_hash": sha([]byte(text)), "policy": policy}, part(text))
			b.decide("rv_a", id, answer("rv_a"))
			_, seq := b.whole(high(id, "rv_a"))
			return seq
		},
		"of_no_review": func(b *book) int64 { _, seq := b.whole(high(b.id(), "rv_none")); return seq },
		"that_was_a_rejection": func(b *book) int64 {
			id := b.id()
			b.propose("rv_a", id, text)
			s := answer("rv_a")
			s.Act = operator.Reject
			b.decide("rv_a", id, s)
			_, seq := b.whole(high(id, "rv_a"))
			return seq
		},
		"that_was_voided": func(b *book) int64 {
			id := b.id()
			b.propose("rv_a", id, text)
			b.decide("rv_a", id, answer("rv_a"))
			b.event("review_voided", "holdfast", "rv_a", id, map[string]any{"why": "policy"}, nil)
			_, seq := b.whole(high(id, "rv_a"))
			return seq
		},
		"of_another_preview": func(b *book) int64 {
			return b.event("review_proposed", "user:alice", "rv_a", b.id(), map[string]any{"agent": "ada", "preview_hash": sha([]byte("a"))}, part("b"))
		},
		"rule_of_nobody": func(b *book) int64 { _, seq := b.whole(byRule("rr_none")); return seq },
		"rule_of_another_agent": func(b *book) int64 {
			id, _ := b.remember("", func(_ *operator.Statement, rule map[string]any) { rule["agent"] = "eve" })
			_, seq := b.whole(byRule(id))
			return seq
		},
		"rule_of_other_arguments": func(b *book) int64 {
			id, _ := b.remember("", func(_ *operator.Statement, rule map[string]any) { rule["exact_hash"] = sha([]byte("z")) })
			_, seq := b.whole(byRule(id))
			return seq
		},
		"rule_that_expired": func(b *book) int64 {
			id, _ := b.remember("", func(s *operator.Statement, _ map[string]any) { s.Until = b.now.Add(time.Minute) })
			b.now = b.now.Add(time.Hour)
			_, seq := b.whole(byRule(id))
			return seq
		},
		"rule_for_a_year": func(b *book) int64 {
			id, _ := b.remember("", func(s *operator.Statement, _ map[string]any) { s.Until = b.now.Add(365 * 24 * time.Hour) })
			_, seq := b.whole(byRule(id))
			return seq
		},
		"rule_that_was_forgotten": func(b *book) int64 {
			id, _ := b.remember("", nil)
			b.event("policy_forgotten", "bob", id, "", word(b.sign(operator.Statement{Act: operator.Forget, Subject: id, Tenant: "acme"}), nil), nil)
			_, seq := b.whole(byRule(id))
			return seq
		},
	}
}

// people are events that no operator signed as they stand.
func people() map[string]func(*book) int64 {
	asked := func(answer func(*book, *operator.Statement)) func(*book) int64 {
		return func(b *book) int64 {
			id := b.id()
			b.propose("rv_p", id, text)
			s := operator.Statement{Act: operator.Approve, Subject: "rv_p", Exact: sha([]byte(text)), PreviewHash: sha([]byte(text)), Policy: policy, Nonce: "n"}
			answer(b, &s)
			return b.decide("rv_p", id, s)
		}
	}
	event := func(name, subject string, s operator.Statement, data map[string]any) func(*book) int64 {
		return func(b *book) int64 {
			s.Tenant = "acme"
			return b.event(name, "bob", subject, "", word(b.sign(s), data), nil)
		}
	}
	return map[string]func(*book) int64{
		"answered_by_who_asked":   asked(func(_ *book, s *operator.Statement) { s.Reviewer = "alice" }),
		"answered_by_the_agent":   asked(func(_ *book, s *operator.Statement) { s.Reviewer = "agent:Ada" }),
		"answer_to_other_payload": asked(func(_ *book, s *operator.Statement) { s.Exact = sha([]byte("z")) }),
		"answer_to_other_preview": asked(func(_ *book, s *operator.Statement) { s.PreviewHash = sha([]byte("z")) }),
		"answer_to_other_policy":  asked(func(_ *book, s *operator.Statement) { s.Policy = sha([]byte("z")) }),
		"answer_to_other_review":  asked(func(_ *book, s *operator.Statement) { s.Subject = "rv_q" }),
		"answer_of_last_week":     asked(func(b *book, s *operator.Statement) { s.At = b.now.Add(-7 * 24 * time.Hour) }),
		"answer_of_tomorrow":      asked(func(b *book, s *operator.Statement) { s.At = b.now.Add(24 * time.Hour) }),
		"answer_to_nothing":       func(b *book) int64 { return b.decide("rv_none", b.id(), answer("rv_none")) },
		"signed_by_a_stranger": func(b *book) int64 {
			id := b.id()
			b.propose("rv_p", id, text)
			signed := b.sign(answer("rv_p"))
			_, stranger, _ := ed25519.GenerateKey(rand.Reader)
			signed.Signature = ed25519.Sign(stranger, append([]byte("holdfast-operator-v1\n"), signed.Statement...))
			return b.event("review_decided", "bob", "rv_p", id, word(signed, map[string]any{"decision": "approved"}), nil)
		},
		"not_signed_at_all": func(b *book) int64 {
			id := b.id()
			b.propose("rv_p", id, text)
			return b.event("review_decided", "bob", "rv_p", id, map[string]any{"decision": "approved"}, nil)
		},
		"rejection_recorded_as_approval": func(b *book) int64 {
			id := b.id()
			b.propose("rv_p", id, text)
			s := answer("rv_p")
			s.Act = operator.Reject
			return b.event("review_decided", "bob", "rv_p", id, word(b.sign(s), map[string]any{"decision": "approved"}), nil)
		},
		"one_statement_twice": func(b *book) int64 {
			s := answer("rv_p")
			s.ID = uuid.NewString()
			id := b.id()
			b.propose("rv_p", id, text)
			b.decide("rv_p", id, s)
			b.propose("rv_p", id, text)
			return b.decide("rv_p", id, s)
		},
		"resumed_by_another_act": event("resumed", "everything", operator.Statement{Act: operator.Unpause, Subject: "ada"}, nil),
		"trust_of_another_level": event("trust_level_changed", "ada", operator.Statement{Act: operator.Trust, Subject: "ada", Value: "medium"}, map[string]any{"level": "highest"}),
		"trust_of_another_agent": event("trust_level_changed", "ada", operator.Statement{Act: operator.Trust, Subject: "eve", Value: "baseline"}, map[string]any{"level": "baseline"}),
		"rule_under_another_name": func(b *book) int64 {
			_, seq := b.remember("rr_0123456789", nil)
			return seq
		},
	}
}
