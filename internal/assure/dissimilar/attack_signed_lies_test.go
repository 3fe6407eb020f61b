package dissimilar_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

func windowed(amount, window int64) func(*ledger.Begin) {
	return func(g *ledger.Begin) {
		d := tokens(amount)
		d.Key, d.Window = "acme/agent/ada/day", window
		g.Draws = append(g.Draws, d)
	}
}

// day is a whole crossing that draws on a daily counter.
func (b *book) day(amount, window, usedBefore int64) int64 {
	g, seq := b.begin(windowed(amount, window))
	b.end(g, seq, used(usedBefore))
	return seq
}

// liesThatVerify are ledgers whose trees and signatures hold and whose semantics lie.
func liesThatVerify() map[string]func(*book) {
	return map[string]func(*book){
		"K3_window_of_tomorrow_begun_today": func(b *book) {
			today := start.Truncate(24 * time.Hour).Unix()
			b.day(100, today, 0)
			b.day(100, today+86400, 0)
			b.day(100, today+2*86400, 0)
		},
		"K3_windows_a_second_long": func(b *book) {
			w := start.Truncate(24 * time.Hour).Unix()
			b.day(100, w, 0)
			b.day(100, w+1, 0)
			b.day(100, w+2, 0)
		},
		"K3_window_0_and_back": func(b *book) {
			w := start.Truncate(24 * time.Hour).Unix()
			b.day(100, w, 0)
			b.day(100, 0, 0)
			b.day(100, w, 0)
		},
		"K3_limit_raised_under_the_same_policy": func(b *book) {
			g, seq := b.begin(func(g *ledger.Begin) { d := tokens(900); d.Limit = 1000; g.Draws = append(g.Draws, d) })
			b.end(g, seq, used(50))
		},
		"K3_rate_raised_under_the_same_policy": func(b *book) {
			for i := range int64(6) {
				b.whole(func(g *ledger.Begin) {
					g.Rates = []ledger.Rate{{Key: "r", Limit: 3 + i, Window: 60_000_000, Name: "3 a minute"}}
				})
			}
		},
		"K2_clock_in_the_future_of_the_record": func(b *book) {
			b.whole(func(g *ledger.Begin) { g.Clock = g.Timestamp.Add(24 * time.Hour) })
		},
		"K3_clock_in_the_future_frees_a_rate": func(b *book) {
			for i := range 6 {
				b.whole(func(g *ledger.Begin) {
					g.Rates = []ledger.Rate{{Key: "r", Limit: 1, Window: 60_000_000, Name: "1 a minute"}}
					g.Clock = g.Timestamp.Add(time.Duration(i) * 2 * time.Minute)
				})
			}
		},
		"K7_rule_under_another_reviewers_name": func(b *book) {
			id, _ := b.remember("", nil)
			b.whole(byRule(id), func(g *ledger.Begin) { g.Reviewer = "carol" })
		},
		"K7_question_asked_again_under_its_name_by_another_agent": func(b *book) {
			id := b.id()
			b.propose("rv_q", id, text)
			id2 := b.id()
			b.event("review_proposed", "user:alice", "rv_q", id2, map[string]any{"agent": "eve", "boundary": "mcp/fs/delete",
				"exact_hash": sha([]byte(text)), "preview_hash": sha([]byte(text)), "policy": policy, "why": "HIGH"}, part(text))
			b.decide("rv_q", id2, answer("rv_q"))
			b.whole(high(id2, "rv_q"), func(g *ledger.Begin) { g.Agent, g.Boundary = "eve", "mcp/fs/delete" })
		},
		"K5_replay_gives_another_result": func(b *book) {
			g, seq := b.begin(keyed("kr"))
			b.end(g, seq, keep, func(e *ledger.Entry) { e.Result = ptr(`{"balance":1}`) })
			b.replay(g.ID, "kr", func(e *ledger.Entry) { e.Result = ptr(`{"balance":1000000}`) })
		},
		"halt_a_begin_between_halted_and_resumed": func(b *book) {
			b.event("halted", "carol", "", "", map[string]any{"why": "stop"}, nil)
			b.now = b.now.Add(time.Hour)
			b.whole(func(g *ledger.Begin) { g.Timestamp = b.now })
		},
		"halt_resumed_without_a_signature": func(b *book) {
			b.event("halted", "carol", "", "", map[string]any{"why": "stop"}, nil)
			b.event("resumed", "bob", "", "", map[string]any{"why": "fine"}, nil)
			b.whole()
		},
		"agent_trusted_without_a_signature": func(b *book) {
			b.event("trust_level_changed", "bob", "ada", "", map[string]any{"level": "highest"}, nil)
		},
		"agent_unpaused_without_a_signature": func(b *book) {
			b.event("agent_paused", "bob", "zed", "", nil, nil)
			b.event("agent_unpaused", "bob", "zed", "", nil, nil)
		},
		"operator_admitted_without_a_signature": func(b *book) {
			b.event("operator_admitted", "mallory", "mallory", "", map[string]any{"key": "x"}, nil)
		},
		"rule_forgotten_without_a_signature": func(b *book) {
			id, _ := b.remember("", nil)
			b.event("policy_forgotten", "bob", id, "", nil, nil)
		},
		"tool_accepted_without_a_signature": func(b *book) {
			b.event("policy_tool_accepted", "bob", "mcp/fs/write", "", nil, nil)
		},
		"erasure_signed_for_one_crossing_covers_another": func(b *book) {
			g1, s1 := b.begin()
			b.end(g1, s1, func(e *ledger.Entry) { e.Result = ptr("one") })
			g2, s2 := b.begin()
			at := b.end(g2, s2, func(e *ledger.Entry) { e.Result = ptr("two") })
			b.leaves["acme"][at].Part = nil
			s := operator.Statement{Act: operator.Erase, Subject: g1.ID, Tenant: "acme", Value: "output"}
			b.event("parts_erased", "bob", g1.ID, g1.ID, word(b.sign(s), map[string]any{"from": at, "to": at + 1, "parts": 1}), nil)
		},
		"erasure_statement_used_again_a_month_later": func(b *book) {
			g1, s1 := b.begin()
			a1 := b.end(g1, s1, func(e *ledger.Entry) { e.Result = ptr("one") })
			s := b.sign(operator.Statement{Act: operator.Erase, Subject: g1.ID, Tenant: "acme", Value: "output"})
			b.leaves["acme"][a1].Part = nil
			b.event("parts_erased", "bob", g1.ID, g1.ID, word(s, map[string]any{"from": a1, "to": a1 + 1, "parts": 1}), nil)
			g2, s2 := b.begin()
			a2 := b.end(g2, s2, func(e *ledger.Entry) { e.Result = ptr("two") })
			b.leaves["acme"][a2].Part = nil
			b.now = b.now.Add(30 * 24 * time.Hour)
			b.event("parts_erased", "bob", g1.ID, g1.ID, word(s, map[string]any{"from": a2, "to": a2 + 1, "parts": 1}), nil)
		},
		"child_of_nobody": func(b *book) { b.whole(func(g *ledger.Begin) { g.Parent = "01a1fcf0-0000-7000-8000-00000000dead" }) },
		"executed_though_it_never_began": func(b *book) {
			id := b.id()
			b.propose("rv_x", id, text)
			b.decide("rv_x", id, answer("rv_x"))
			b.event("review_executed", "holdfast", "rv_x", id, nil, nil)
			b.event("review_returned", "holdfast", "rv_x", id, nil, nil)
		},
	}
}

func TestAttackSignedLiesAreNamed(t *testing.T) {
	for name, lie := range liesThatVerify() {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			ordinary(b)
			lie(b)
			r, found := b.judge()
			if len(found) == 0 {
				t.Errorf("nobody noticed; backwards %d", r.Totals.Backwards)
				return
			}
			t.Log(found[0].String())
		})
	}
}
