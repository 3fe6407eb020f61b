package dissimilar_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

// ordinary fills a book with some of everything that is right.
func ordinary(b *book) {
	b.event("agent_first_seen", "user:alice", "ada", "", map[string]any{"level": "baseline"}, nil)
	b.whole()
	b.whole(drawing(40))
	b.whole(drawing(10))
	b.last = nil
	b.approved("rv_ordinary")
	b.denied(holdfast.K1, holdfast.KindValidation)
	b.denied(holdfast.K2, holdfast.KindPermission, func(e *ledger.Entry) { e.Required = []string{"spawn:x"} })
	g, seq := b.begin()
	b.end(g, seq, withheld)
}

func withheld(e *ledger.Entry) {
	e.Outcome, e.State, e.ErrorKind, e.ExitCode, e.Passed = ledger.Withheld, holdfast.Faulted, holdfast.KindEvalFailure, 1, ptr(false)
	e.Gate, e.Rule, e.Why, e.Result = ptr(holdfast.K8), "output_schema_conformance", "no", ptr("EvalGateFailure: no")
}

// used sets what was used before, as a reader of the counter sees it.
func used(n int64) func(*ledger.Entry) { return before(n) }

// keyed gives a begin an idempotency scope that is taken for a day.
func keyed(scope string) func(*ledger.Begin) {
	return func(g *ledger.Begin) { g.Scope, g.Until = sha([]byte(scope)), g.Timestamp.Add(24*time.Hour) }
}

func keep(e *ledger.Entry) { e.Until = e.CreatedAt.Add(24 * time.Hour) }

// replay writes the entry of a result that was given back.
func (b *book) replay(of, scope string, change ...func(*ledger.Entry)) int64 {
	at := b.tick()
	e := &ledger.Entry{ID: b.id(), TenantID: "acme", Correlation: uuid.NewString(), Timestamp: at, CreatedAt: b.tick(), Boundary: "mcp/fs/write",
		Caller: "user:alice", Roles: []string{"dev"}, Agent: "ada", Risk: "LOW", Policy: policy, State: holdfast.Idle, Outcome: ledger.Replayed,
		ReplayOf: of, Required: []string{"fs:write"}, Granted: []string{"fs:*", "goal:read"}, Valid: ptr(true), Authorized: ptr(true),
		WithinBudget: ptr(true), Passed: ptr(true), Opinions: allowed(), ExactHash: sha([]byte(text)), Key: ptr(sha([]byte(text))),
		Facts: ledger.Facts{TokenID: "jti-1", TokenExpires: start.Add(48 * time.Hour), Level: "baseline", Scope: sha([]byte(scope))}}
	return b.entry(e, change...)
}

func (b *book) remember(id string, change func(*operator.Statement, map[string]any)) (string, int64) {
	rule := map[string]any{"review": "rv_a", "tenant_id": "acme", "agent": "ada", "principal": "user:alice", "boundary": "mcp/fs/write",
		"contract": policy, "exact_hash": sha([]byte(text))}
	s := operator.Statement{Act: operator.Remember, Subject: "rv_a", Tenant: "acme", Exact: sha([]byte(text)), PreviewHash: sha([]byte(text)),
		Policy: policy, Nonce: "n", Until: b.now.Add(24 * time.Hour)}
	if change != nil {
		change(&s, rule)
	}
	s.Value = canonicalJSON(b.t, rule)
	signed := b.sign(s)
	if id == "" {
		id = "rr_" + sha(signed.Statement)[:10]
	}
	return id, b.event("policy_remembered", "bob", id, "", word(signed, nil), nil)
}

func byRule(id string) func(*ledger.Begin) {
	return func(g *ledger.Begin) {
		g.Risk, g.Approved, g.Review, g.Reviewer = "HIGH", ptr(true), "remembered/"+id, "bob"
	}
}

// forgeries are ledgers whose tree and signatures are right and in which one
// leaf is not what the gates can have done. Each returns that leaf.
func forgeries() map[dissimilar.Check]map[string]func(*book) int64 {
	end := func(change ...func(*ledger.Entry)) func(*book) int64 {
		return func(b *book) int64 { g, seq := b.begin(); return b.end(g, seq, change...) }
	}
	begin := func(change ...func(*ledger.Begin)) func(*book) int64 {
		return func(b *book) int64 { _, seq := b.whole(change...); return seq }
	}
	last := func(change func(*ledger.Entry)) func(*book) int64 {
		return func(b *book) int64 { g, seq := b.begin(drawing(1)); b.last = change; return b.end(g, seq, used(90)) }
	}
	return map[dissimilar.Check]map[string]func(*book) int64{
		dissimilar.Order: {
			"entry_of_another_caller":   end(func(e *ledger.Entry) { e.Caller = "user:carol" }),
			"entry_of_another_boundary": end(func(e *ledger.Entry) { e.Boundary = "mcp/fs/read" }),
			"entry_of_another_payload":  end(func(e *ledger.Entry) { e.ExactHash = sha([]byte("other")) }),
			"entry_with_other_amounts": func(b *book) int64 {
				g, seq := b.begin(drawing(5))
				return b.end(g, seq, used(50), func(e *ledger.Entry) { e.Uses[0].Draw.Amount, e.Uses[0].Used = 4, ptr(int64(5)) })
			},
		},
		dissimilar.Times: {
			"ended_before_it_was_asked": end(func(e *ledger.Entry) { e.CreatedAt, e.DurationUS = e.Timestamp.Add(-time.Hour), 0 }),
			"another_duration":          end(func(e *ledger.Entry) { e.DurationUS++ }),
		},
		dissimilar.State: {
			"done_and_faulted_without_a_kind": end(func(e *ledger.Entry) { e.State, e.ExitCode = holdfast.Faulted, 1 }),
			"idle_with_an_error":              end(func(e *ledger.Entry) { e.ErrorKind = holdfast.KindOperation }),
			"fault_with_exit_code_0": end(func(e *ledger.Entry) {
				e.State, e.Outcome, e.ErrorKind = holdfast.Faulted, ledger.Failed, holdfast.KindOperation
			}),
			"denied_though_it_began": end(func(e *ledger.Entry) {
				e.Outcome, e.State, e.ErrorKind, e.ExitCode = ledger.Denied, holdfast.Faulted, "X", 1
			}),
			"replay_of_without_replay": end(func(e *ledger.Entry) { e.ReplayOf = "x" }),
			"still_active":             end(func(e *ledger.Entry) { e.State = holdfast.Active }),
		},
		dissimilar.Opinions: {
			"done_though_k8_denied":  end(func(e *ledger.Entry) { e.Opinions[7].Verdict = holdfast.Deny }),
			"done_without_k7":        end(func(e *ledger.Entry) { e.Opinions = append(e.Opinions[:6], e.Opinions[7]) }),
			"done_without_opinions":  end(func(e *ledger.Entry) { e.Opinions = nil }),
			"asked_in_another_order": end(func(e *ledger.Entry) { e.Opinions[0], e.Opinions[1] = e.Opinions[1], e.Opinions[0] }),
			"column_against_opinion": func(b *book) int64 {
				return b.denied(holdfast.K3, holdfast.KindBudgetNotFound, func(e *ledger.Entry) { e.WithinBudget = ptr(true) })
			},
			"denied_though_all_allow": func(b *book) int64 {
				return b.denied(holdfast.K4, holdfast.KindValue, func(e *ledger.Entry) { e.Opinions[3].Verdict = holdfast.Allow })
			},
		},
		dissimilar.Paused: {
			"begun_beneath_who_is_paused": func(b *book) int64 {
				b.event("subagent_first_seen", "user:alice", "ada/plan", "", map[string]any{"owner": "ada", "parent": "ada"}, nil)
				b.event("subagent_first_seen", "user:alice", "ada/deep", "", map[string]any{"owner": "ada", "parent": "ada/plan"}, nil)
				b.whole(within("deep"))
				b.event("agent_paused", "carol", "ada/plan", "", nil, nil)
				b.whole()
				b.whole(within("other"))
				g, seq := b.begin(within("deep"))
				b.end(g, seq)
				return seq
			},
			"begun_within_who_is_paused": func(b *book) int64 {
				b.event("agent_paused", "carol", "ada", "", nil, nil)
				g, seq := b.begin(within("other"))
				b.event("agent_unpaused", "bob", "ada", "", word(b.sign(operator.Statement{Act: operator.Unpause, Subject: "ada", Tenant: "acme"}), nil), nil)
				b.end(g, seq)
				return seq
			},
			"begun_while_paused": func(b *book) int64 {
				b.event("agent_paused", "carol", "ada", "", nil, nil)
				g, seq := b.begin()
				b.event("agent_unpaused", "bob", "ada", "", word(b.sign(operator.Statement{Act: operator.Unpause, Subject: "ada", Tenant: "acme"}), nil), nil)
				b.end(g, seq)
				return seq
			},
		},
		dissimilar.Escape: attempts(),
		dissimilar.K1Valid: {
			"begun_though_not_valid": end(func(e *ledger.Entry) { e.Valid, e.Opinions[0].Verdict = ptr(false), holdfast.Deny }),
			"asked_on_after_k1": func(b *book) int64 {
				return b.denied(holdfast.K2, holdfast.KindRoleNotFound, func(e *ledger.Entry) {
					e.Valid, e.Opinions[0].Verdict, e.Opinions[0].Kind = ptr(false), holdfast.Deny, holdfast.KindRoleNotFound
				})
			},
		},
		dissimilar.K2Subset: {
			"permission_not_granted":       begin(func(g *ledger.Begin) { g.Required = []string{"fs:write", "goal:write"} }),
			"nothing_granted":              begin(func(g *ledger.Begin) { g.Granted = nil }),
			"wildcard_of_another_scheme":   begin(func(g *ledger.Begin) { g.Granted = []string{"f:*", "fs2:*"} }),
			"wildcard_asked_not_granted":   begin(func(g *ledger.Begin) { g.Required, g.Granted = []string{"fs:*"}, []string{"fs:write"} }),
			"star_alone_grants_nothing":    begin(func(g *ledger.Begin) { g.Granted = []string{"*", "*:*"} }),
			"denied_though_it_was_granted": func(b *book) int64 { return b.denied(holdfast.K2, holdfast.KindPermission) },
			"replayed_without_permission": func(b *book) int64 {
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep)
				return b.replay(g.ID, "k", func(e *ledger.Entry) { e.Granted = []string{} })
			},
		},
		dissimilar.K2Level: {
			"baseline_spawns": begin(func(g *ledger.Begin) { g.Required, g.Granted = []string{"spawn:x"}, []string{"spawn:*"} }),
			"level_nobody_gave": func(b *book) int64 {
				b.now = b.now.Add(time.Hour)
				_, seq := b.whole(func(g *ledger.Begin) { g.Level = "highest" })
				return seq
			},
			"level_taken_before": func(b *book) int64 {
				b.level("high")
				b.now = b.now.Add(time.Hour)
				b.level("baseline")
				b.now = b.now.Add(time.Hour)
				_, seq := b.whole(func(g *ledger.Begin) {
					g.Level, g.Required, g.Granted = "high", []string{"spawn:x"}, []string{"spawn:*"}
				})
				return seq
			},
		},
		dissimilar.K2Token: {
			"expired_token": begin(func(g *ledger.Begin) { g.TokenExpires = start.Add(-time.Hour) }),
			"revoked_token": func(b *book) int64 {
				b.event("token_revoked", "carol", "jti-2", "", nil, nil)
				_, seq := b.whole(func(g *ledger.Begin) { g.TokenID = "jti-2" })
				return seq
			},
			"refused_as_revoked_that_nobody_revoked": func(b *book) int64 { return b.denied(holdfast.K2, holdfast.KindRevokedToken) },
		},
		dissimilar.K2Roles: {
			"more_than_before_for_the_same_role": begin(func(g *ledger.Begin) { g.Granted = []string{"fs:*", "goal:*"} }),
		},
		dissimilar.K3Room: {
			"taken_over_the_limit": func(b *book) int64 {
				g, seq := b.begin(drawing(51))
				b.end(g, seq, used(49))
				return seq
			},
			"more_than_there_is": begin(drawing(101)),
			"negative_amount":    begin(func(g *ledger.Begin) { d := tokens(-1); g.Draws = append(g.Draws, d) }),
			"sum_overflows": begin(func(g *ledger.Begin) {
				d := tokens(1<<63 - 1)
				d.Limit = 1<<63 - 1
				g.Draws = append(g.Draws, d)
			}),
			"two_reservations_in_flight": func(b *book) int64 {
				g1, s1 := b.begin(drawing(30))
				g2, s2 := b.begin(drawing(30))
				b.end(g1, s1, used(50))
				b.end(g2, s2, used(50))
				return s2
			},
			"within_against_its_own_sum": func(b *book) int64 {
				return b.denied(holdfast.K4, holdfast.KindValue, func(e *ledger.Entry) { e.Uses = []ledger.Use{{Draw: tokens(60), Before: 50}} })
			},
			"refused_though_there_was_room": func(b *book) int64 {
				return b.denied(holdfast.K3, holdfast.KindBounds, func(e *ledger.Entry) {
					e.Opinions[2].Rule, e.Uses = "llm_tokens per agent", []ledger.Use{{Draw: tokens(10), Before: 50}}
				})
			},
			"refused_outside_though_there_was_room": func(b *book) int64 {
				return b.denied(holdfast.K3, holdfast.KindBudgetExceeded, func(e *ledger.Entry) {
					e.Opinions[2].Rule, e.Uses = "llm_tokens per agent", []ledger.Use{{Draw: tokens(10), Before: 50}}
				})
			},
			"nothing_settled": func(b *book) int64 {
				g, seq := b.begin(drawing(1))
				return b.end(g, seq, used(50), func(e *ledger.Entry) { e.Uses[0].Used = nil })
			},
			"used_without_begin": func(b *book) int64 {
				return b.denied(holdfast.K4, holdfast.KindValue, func(e *ledger.Entry) { e.Uses = []ledger.Use{{Draw: tokens(1), Before: 50, Used: ptr(int64(1))}} })
			},
		},
		dissimilar.K3Before: {
			"usage_that_never_was": func(b *book) int64 {
				b.now = b.now.Add(time.Hour)
				g, seq := b.begin(drawing(1))
				return b.end(g, seq, used(7))
			},
			"zero_when_fifty_are_used": func(b *book) int64 {
				b.now = b.now.Add(time.Hour)
				g, seq := b.begin(drawing(1))
				return b.end(g, seq, used(0))
			},
		},
		dissimilar.K3Columns: {
			"a_looser_limit":      last(func(e *ledger.Entry) { e.BudgetLimit = ptr(int64(1000)) }),
			"less_asked":          last(func(e *ledger.Entry) { e.Requested = ptr(int64(0)) }),
			"resource_of_nothing": end(func(e *ledger.Entry) { e.ResourceType = ptr("llm_tokens") }),
		},
		dissimilar.K3Rate: {
			"fourth_of_three_a_minute": func(b *book) int64 {
				var seq int64
				for range 4 {
					_, seq = b.whole(func(g *ledger.Begin) {
						g.Rates = []ledger.Rate{{Key: "r", Limit: 3, Window: 60_000_000, Name: "3 a minute"}}
					})
				}
				return seq
			},
		},
		dissimilar.K4Flow: {
			"correlation_of_another_tenant": func(b *book) int64 {
				g, _ := b.whole()
				_, seq := b.whole(func(o *ledger.Begin) { o.TenantID, o.Correlation = "beta", g.Correlation })
				return seq
			},
			"child_in_another_flow": func(b *book) int64 {
				p, at := b.begin()
				_, seq := b.whole(func(g *ledger.Begin) { g.Parent = p.ID })
				b.end(p, at)
				return seq
			},
		},
		dissimilar.K5Key: {
			"key_of_another_payload": func(b *book) int64 {
				_, seq := b.approved("rv_key", func(g *ledger.Begin) { g.Key = sha([]byte(`{"n":2}`)) })
				return seq
			},
		},
		dissimilar.K5Pair: {
			"one_payload_two_keys": begin(func(g *ledger.Begin) { g.Key = sha([]byte("x")) }),
		},
		dissimilar.K5Replay: {
			"replay_of_nothing": func(b *book) int64 { return b.replay("01a1fcf0-0000-7000-8000-00000000ffff", "k") },
			"replay_of_another_crossing": func(b *book) int64 {
				other, _ := b.whole()
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep)
				return b.replay(other.ID, "k")
			},
			"replay_of_another_key": func(b *book) int64 {
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep)
				return b.replay(g.ID, "other")
			},
			"replay_before_it_settled": func(b *book) int64 {
				g, at := b.begin(keyed("k"))
				seq := b.replay(g.ID, "k")
				b.end(g, at, keep)
				return seq
			},
			"replay_of_another_payload": func(b *book) int64 {
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep)
				return b.replay(g.ID, "k", func(e *ledger.Entry) { e.ExactHash, e.Key = sha([]byte("y")), ptr(sha([]byte("y"))) })
			},
			"replay_to_another_agent": func(b *book) int64 {
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep)
				return b.replay(g.ID, "k", func(e *ledger.Entry) { e.Agent = "eve" })
			},
			"replay_to_another_principal": func(b *book) int64 {
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep)
				return b.replay(g.ID, "k", func(e *ledger.Entry) { e.Caller = "user:eve" })
			},
			"replay_after_a_day": func(b *book) int64 {
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep)
				b.now = b.now.Add(25 * time.Hour)
				return b.replay(g.ID, "k")
			},
			"replay_gives_a_refused_output": func(b *book) int64 {
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep, withheld)
				return b.replay(g.ID, "k")
			},
			"replay_that_is_charged": func(b *book) int64 {
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep)
				return b.replay(g.ID, "k", func(e *ledger.Entry) { e.Uses = []ledger.Use{{Draw: tokens(1), Before: 50}} })
			},
			"done_twice_with_one_key": func(b *book) int64 {
				g, seq := b.begin(keyed("k"))
				b.end(g, seq, keep)
				_, again := b.whole(keyed("k"))
				return again
			},
			"two_at_once_with_one_key": func(b *book) int64 {
				g, at := b.begin(keyed("k"))
				_, seq := b.whole(keyed("k"))
				b.end(g, at, keep)
				return seq
			},
			"mismatch_with_nobody": func(b *book) int64 {
				return b.denied(holdfast.K5, holdfast.KindMismatch, func(e *ledger.Entry) { e.Scope = sha([]byte("k")) })
			},
		},
		dissimilar.K7Threshold: {
			"high_without_a_person":      begin(func(g *ledger.Begin) { g.Risk = "HIGH" }),
			"prohibited_without_anybody": begin(func(g *ledger.Begin) { g.Risk = "PROHIBITED" }),
			"prohibited_and_approved": func(b *book) int64 {
				_, seq := b.approved("rv_p", func(g *ledger.Begin) { g.Risk = "PROHIBITED" })
				return seq
			},
			"no_such_risk":                begin(func(g *ledger.Begin) { g.Risk = "NONE" }),
			"confidence_below":            begin(func(g *ledger.Begin) { g.Confidence, g.Threshold = ptr(0.7499999999999999), ptr(0.75) }),
			"confidence_above_one":        begin(func(g *ledger.Begin) { g.Confidence = ptr(1.5) }),
			"threshold_below_zero":        begin(func(g *ledger.Begin) { g.Confidence, g.Threshold = ptr(0.1), ptr(-0.5) }),
			"held_though_nobody_is_asked": heldForNothing,
		},
		dissimilar.K7Approval: approvals(),
		dissimilar.K7Person:   people(),
		dissimilar.K8Result: {
			"refused_and_given":        end(func(e *ledger.Entry) { e.Passed = ptr(false) }),
			"refused_with_exit_0":      end(withheld, func(e *ledger.Entry) { e.ExitCode = 0 }),
			"refused_and_idle":         end(withheld, func(e *ledger.Entry) { e.State, e.ErrorKind = holdfast.Idle, "" }),
			"withheld_though_passed":   end(withheld, func(e *ledger.Entry) { e.Passed = ptr(true) }),
			"withheld_by_another":      end(withheld, func(e *ledger.Entry) { e.Gate = ptr(holdfast.K3) }),
			"withheld_without_a_name":  end(withheld, func(e *ledger.Entry) { e.Rule = "" }),
			"withheld_with_its_output": end(withheld, func(e *ledger.Entry) { e.Result = ptr(`{"secret":"output"}`) }),
			"done_and_never_asked":     end(func(e *ledger.Entry) { e.Passed = nil }),
			"failed_as_refused": end(func(e *ledger.Entry) {
				e.Outcome, e.State, e.ErrorKind, e.ExitCode, e.Passed = ledger.Failed, holdfast.Faulted, holdfast.KindOperation, 1, ptr(false)
			}),
		},
	}
}

func (b *book) level(to string) {
	b.event("trust_level_changed", "bob", "ada", "", word(b.sign(operator.Statement{Act: operator.Trust, Subject: "ada", Tenant: "acme", Value: to}), map[string]any{"level": to}), nil)
}

func heldForNothing(b *book) int64 {
	id := b.id()
	b.propose("rv_h", id, text)
	b.decide("rv_h", id, func() operator.Statement { s := answer("rv_h"); s.Act = operator.Reject; return s }())
	return b.denied(holdfast.K8, holdfast.KindRejected, func(e *ledger.Entry) {
		e.ID, e.Review, e.Reviewer, e.Approved = id, "rv_h", "bob", ptr(false)
		e.Opinions[6].Verdict, e.Opinions[7].Verdict, e.Passed = holdfast.Hold, holdfast.Allow, nil
		e.Confidence, e.Threshold = ptr(0.9), ptr(0.5)
	})
}

func TestForgeriesAreNamed(t *testing.T) {
	for check, cases := range forgeries() {
		for name, forge := range cases {
			t.Run(fmt.Sprintf("%s/%s", gateOf(check), name), func(t *testing.T) {
				b := newBook(t)
				ordinary(b)
				at := forge(b)
				b.whole()
				_, found := b.judge()
				if len(found) == 0 {
					t.Fatal("nobody noticed")
				}
				named := false
				// The forged crossing may be wrong in its begin and its entry.
				crossing := b.leaves["acme"][min(at, int64(len(b.leaves["acme"])-1))].Crossing
				for _, f := range found {
					if f.Seq != at && f.Crossing != crossing {
						t.Errorf("another leaf than %d is named: %s", at, f.String())
					}
					named = named || f.Check == check.String()
				}
				if !named {
					t.Errorf("not by %q: %s", check, found[0].String())
				}
			})
		}
	}
}

func gateOf(c dissimilar.Check) string { return fmt.Sprintf("check%d", c) }

func TestWhatIsRightIsRight(t *testing.T) {
	b := newBook(t)
	ordinary(b)
	g, seq := b.begin(keyed("k"))
	b.end(g, seq, keep)
	b.replay(g.ID, "k")
	b.now = b.now.Add(25 * time.Hour)
	b.whole(keyed("k"), func(g *ledger.Begin) { g.TokenExpires = b.now.Add(time.Hour) })
	id, _ := b.remember("", nil)
	b.whole(byRule(id), func(g *ledger.Begin) { g.TokenExpires = b.now.Add(time.Hour) })
	r, found := b.judge()
	for _, f := range found {
		t.Error(f.String())
	}
	if r.Totals.Begins == 0 || r.Wrong != 0 {
		t.Errorf("%+v", r)
	}
}

// within makes a begin one of who asks within its agent.
func within(id string) func(*ledger.Begin) {
	return func(g *ledger.Begin) { g.Owner, g.Agent = g.Agent, g.Agent+"/"+id }
}
