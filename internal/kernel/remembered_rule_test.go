package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

const month = 30 * 24 * time.Hour

// wish is the statement of a person who wants that choice remembered of a
// review.
func (w *world) wish(id string, c review.Choice, change ...func(*operator.Statement)) operator.Signed {
	w.t.Helper()
	r, err := w.k.Review(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	rule, err := review.RuleOf(&r, c)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := rule.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	s := operator.Statement{Act: operator.Remember, Subject: id, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce,
		Value: text, Until: w.now().Add(month), Reviewer: "bob"}
	for _, f := range change {
		f(&s)
	}
	return w.sign(s)
}

// remember holds a request, approves it, and remembers the choice.
func (w *world) remember(boundary, args string, c review.Choice) review.Remembered {
	w.t.Helper()
	h := w.held(w.req(boundary, args))
	w.approve(h.Review)
	m, err := w.k.Remember(w.wish(h.Review, c))
	if err != nil {
		w.t.Fatal(err)
	}
	w.passes(w.req(boundary, args)) // by the approval
	return m
}

var inWork = review.Choice{Under: map[string]string{"path": "/srv/tree"}, Any: []string{"text"}}

const inWorkArgs = `{"path":"/srv/tree/a","text":"x"}`

// named fails unless err is a refusal of that kind and name.
func refusedAs(t testing.TB, err error, kind holdfast.Kind, name string) *holdfast.Error {
	t.Helper()
	wants(t, err, kind)
	e := err.(*holdfast.Error)
	if e.Rule != name {
		t.Fatalf("%s is refused as %q, not %q: %s", kind, e.Rule, name, e.Why)
	}
	return e
}

// What is remembered acts without a question, is counted, and says by which
// rule it acted; what is beside it is put to a person as before.
func TestD11_remembered_rule_acts(t *testing.T) {
	w := newWorld(t, "")
	m := w.remember("test/high", inWorkArgs, inWork)
	for i := range 3 {
		out := w.passes(w.req("test/high", fmt.Sprintf(`{"text":"%d","path":"/srv/tree/sub/%d"}`, i, i)))
		if op := out.Opinions[6]; op.Rule != "remembered/"+m.ID || op.State != "HUMAN_APPROVED" {
			t.Fatalf("%+v", op)
		}
	}
	w.held(w.req("test/high", `{"text":"1","path":"/tmp/other"}`))
	w.held(w.req("test/high", `{"text":"1","path":"/srv/tree/../x"}`))
	dave := w.req("test/high", `{"text":"1","path":"/srv/tree/a"}`)
	dave.Token = w.who("dave")
	w.held(dave)
	same := w.req("test/high", `{"text":"1","path":"/srv/tree/a"}`)
	same.Token = w.who("alice", func(id *holdfast.Identity) { id.Principal = "user:mallory" })
	w.held(same)

	es := w.entries(holdfast.Local)
	last := es[len(es)-1]
	if last.Review != "remembered/"+m.ID || last.Reviewer != "bob" || last.Approved == nil || !*last.Approved || last.Outcome != ledger.Done {
		t.Fatalf("%+v", last)
	}
	list, err := w.k.Remembered(t.Context(), holdfast.Local)
	if err != nil || len(list) != 1 || list[0].Uses != 3 || list[0].Ended != "" || list[0].LastUse.IsZero() || list[0].Reviewer != "bob" {
		t.Fatalf("%+v %v", list, err)
	}
	e := w.events(holdfast.Local, "policy_remembered")
	if len(e) != 1 || e[0].Who != "bob" || e[0].Subject != m.ID || !strings.Contains(string(e[0].Data), "/srv/tree, or a path below it") {
		t.Fatalf("%+v", e)
	}
	w.store.Close()
	w = reopen(t, w.dir, "") // a rule survives a restart
	w.passes(w.req("test/high", `{"text":"again","path":"/srv/tree/a"}`))
	verifyStore(t, w)
}

// Each way in which a rule ends; what it let pass is then put to a person, who
// is told.
func TestD11_remembered_rule_ends(t *testing.T) {
	cases := []struct {
		name, says string
		end        func(t *testing.T, w *world, m review.Remembered)
	}{
		{"expired", "expired", func(_ *testing.T, w *world, _ review.Remembered) { w.advance(month + time.Second) }},
		{"forgotten", "forgotten by bob", func(t *testing.T, w *world, m review.Remembered) {
			got, err := w.k.Forget(w.sign(operator.Statement{Act: operator.Forget, Subject: m.ID}))
			if err != nil || got.Ended == "" || got.Uses != 1 {
				t.Fatal(got, err)
			}
			_, err = w.k.Forget(w.sign(operator.Statement{Act: operator.Forget, Subject: m.ID}))
			refusedAs(t, err, holdfast.KindConflict, "review/forgotten")
			if len(w.events(holdfast.Local, "policy_forgotten")) != 1 {
				t.Fatal("it is not recorded")
			}
		}},
		{"contract_changed", "contract changed", func(t *testing.T, w *world, _ review.Remembered) {
			p := *w.policy
			p.Version = strings.Repeat("2", 64)
			p.Contracts = append([]holdfast.Contract{}, p.Contracts...)
			for i := range p.Contracts {
				if p.Contracts[i].Boundary == "test/high" {
					p.Contracts[i].Timeout = time.Minute
				}
			}
			if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
				t.Fatal(err)
			}
		}},
		{"irreversible_now", "contract changed", func(t *testing.T, w *world, _ review.Remembered) {
			p := *w.policy
			p.Version = strings.Repeat("2", 64)
			p.Contracts = append([]holdfast.Contract{}, p.Contracts...)
			for i := range p.Contracts {
				p.Contracts[i].Irreversible = p.Contracts[i].Boundary == "test/high"
			}
			if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "")
			m := w.remember("test/high", inWorkArgs, inWork)
			w.passes(w.req("test/high", `{"text":"y","path":"/srv/tree/b"}`))
			c.end(t, w, m)
			h := w.held(w.req("test/high", `{"text":"z","path":"/srv/tree/c"}`))
			r, _ := w.k.Review(t.Context(), h.Review)
			if !strings.Contains(r.Why, m.ID) || !strings.Contains(r.Why, c.says) {
				t.Fatalf("the reviewer reads %q", r.Why)
			}
			list, err := w.k.Remembered(t.Context(), "")
			if err != nil || len(list) != 1 || !strings.Contains(list[0].Ended, c.says) {
				t.Fatalf("%+v %v", list, err)
			}
		})
	}
	t.Run("another_policy_is_no_end", func(t *testing.T) {
		w := newWorld(t, "")
		w.remember("test/high", inWorkArgs, inWork)
		p := *w.policy
		p.Version = strings.Repeat("2", 64)
		if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
			t.Fatal(err)
		}
		w.passes(w.req("test/high", `{"text":"y","path":"/srv/tree/b"}`))
	})
}

// A tool that changes ends what was remembered of it, and nothing is remembered
// of a changed one.
func TestD11_D37_remembered_rule_is_for_the_tool_as_it_was(t *testing.T) {
	w := newWorld(t, "")
	w.observe(tool("write", "aaaa", holdfast.High))
	w.remember("mcp/srv/write", inWorkArgs, inWork)
	more := `{"path":"/srv/tree/b","text":"y"}`
	w.passes(w.req("mcp/srv/write", more))
	w.observe(tool("write", "bbbb", holdfast.High))
	h := w.held(w.req("mcp/srv/write", more))
	w.approve(h.Review)
	_, err := w.k.Remember(w.wish(h.Review, inWork))
	refusedAs(t, err, holdfast.KindConflict, "review/never_remembered")
	w.passes(w.req("mcp/srv/write", more)) // once, by the approval
	w.held(w.req("mcp/srv/write", more))
}

// What somebody writes into the store is no rule: not another rule, not a
// longer time, not one signed by another key, and not one under another id.
func TestD11_changed_rows_are_no_rule(t *testing.T) {
	change := func(w *world, id string, by func([]byte) []byte) {
		w.t.Helper()
		w.putRow(by(w.mustRow("remembered_rule", id)), "remembered_rule", id)
	}
	type row struct {
		Word operator.Signed `json:"word"`
	}
	edit := func(t *testing.T, b []byte, f func(*row)) []byte {
		var r row
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		f(&r)
		out, _ := json.Marshal(r)
		return out
	}
	replace := func(a, b string) func(*row) {
		return func(r *row) { r.Word.Statement = []byte(strings.ReplaceAll(string(r.Word.Statement), a, b)) }
	}
	cases := map[string]func(*row){
		"another_path":   replace("/srv/tree", "/tmp"),
		"another_agent":  replace("alice", "dave"),
		"another_time":   replace(`"until":"20`, `"until":"21`),
		"no_signature":   func(r *row) { r.Word.Signature = nil },
		"bad_signature":  func(r *row) { r.Word.Signature[5] ^= 1 },
		"no_word_at_all": func(r *row) { r.Word = operator.Signed{} },
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			m := w.remember("test/high", inWorkArgs, inWork)
			change(w, m.ID, func(b []byte) []byte { return edit(t, b, f) })
			w.held(w.req("test/high", `{"text":"y","path":"/srv/tree/b"}`))
			list, err := w.k.Remembered(t.Context(), "")
			if err != nil || len(list) != 1 || list[0].Ended == "" {
				t.Fatalf("%+v %v", list, err)
			}
		})
	}
	t.Run("garbage", func(t *testing.T) {
		w := newWorld(t, "")
		m := w.remember("test/high", inWorkArgs, inWork)
		change(w, m.ID, func([]byte) []byte { return []byte("{") })
		w.held(w.req("test/high", `{"text":"y","path":"/srv/tree/b"}`))
	})
	t.Run("moved_to_another_caller", func(t *testing.T) {
		w := newWorld(t, "")
		m := w.remember("test/high", inWorkArgs, inWork)
		// The list of dave's rules gets alice's.
		other := w.req("test/high", `{"path":"/tmp/dave","text":"x"}`)
		other.Token = w.who("dave")
		h := w.held(other)
		if _, err := w.k.Decide(w.say(operator.Approve, h.Review, "")); err != nil {
			t.Fatal(err)
		}
		mine, err := w.k.Remember(w.wish(h.Review, review.Choice{Exact: true}))
		if err != nil {
			t.Fatal(err)
		}
		var row []byte
		change(w, m.ID, func(b []byte) []byte { row = b; return b })
		change(w, mine.ID, func([]byte) []byte { return row })
		again := w.req("test/high", `{"path":"/srv/tree/b","text":"x"}`)
		again.Token = w.who("dave")
		w.held(again)
	})
}

// A rule signed by a key that no longer counts is none.
func TestD11_rules_of_a_removed_key_end(t *testing.T) {
	gone := atomic.Bool{}
	w := newWorld(t, "", func(c *kernel.Config, _ *world) {
		c.Operator = func() []operator.Public {
			if gone.Load() {
				return nil
			}
			_, pub := keys()
			return []operator.Public{pub}
		}
	})
	w.remember("test/high", inWorkArgs, inWork)
	w.passes(w.req("test/high", `{"text":"y","path":"/srv/tree/b"}`))
	gone.Store(true)
	w.held(w.req("test/high", `{"text":"y","path":"/srv/tree/b"}`))
}

// Every wish that makes no rule, by its name.
func TestD11_wishes_that_are_refused(t *testing.T) {
	w := newWorld(t, "rules:\n  - {id: ask, on: request, boundary: test/*, when: has(args.ask), severity: hold, message: asked each time}\n",
		listed(holdfast.Contract{Boundary: "t/gone", Risk: holdfast.High, Irreversible: true, Source: "test:90"}))
	h := w.held(w.req("test/high", inWorkArgs))
	refuse := func(name string, kind holdfast.Kind, rule string, said operator.Signed) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			_, err := w.k.Remember(said)
			refusedAs(t, err, kind, rule)
		})
	}
	refuse("not_approved_yet", holdfast.KindConflict, "review/not_approved", w.wish(h.Review, inWork))
	w.approve(h.Review)
	change := func(f func(*operator.Statement)) operator.Signed { return w.wish(h.Review, inWork, f) }
	value := func(a, b string) operator.Signed {
		return change(func(s *operator.Statement) { s.Value = strings.Replace(s.Value, a, b, 1) })
	}
	other := strings.Repeat("ab", 32)
	refuse("other_arguments", holdfast.KindConflict, "review/other_arguments", change(func(s *operator.Statement) { s.Exact = other }))
	refuse("other_preview", holdfast.KindConflict, "review/other_preview", change(func(s *operator.Statement) { s.PreviewHash = other }))
	refuse("other_policy", holdfast.KindConflict, "review/policy_changed", change(func(s *operator.Statement) { s.Policy = other }))
	refuse("other_nonce", holdfast.KindConflict, "review/other_question", change(func(s *operator.Statement) { s.Nonce = "0" }))
	refuse("no_such_review", holdfast.KindNotFound, "review/none", change(func(s *operator.Statement) { s.Subject = "rv_0" }))
	refuse("self", holdfast.KindSelfApproval, "review/self_approval", change(func(s *operator.Statement) { s.Reviewer = "Alice." }))
	refuse("too_long", holdfast.KindConflict, "review/too_long", change(func(s *operator.Statement) { s.Until = w.now().Add(91 * 24 * time.Hour) }))
	refuse("another_agent", holdfast.KindConflict, "review/no_rule", value(`"agent":"alice"`, `"agent":"dave"`))
	refuse("another_principal", holdfast.KindConflict, "review/no_rule", value(`user:alice`, `user:dave`))
	refuse("another_boundary", holdfast.KindConflict, "review/no_rule", value(`test/high`, `test/never`))
	refuse("another_tenant", holdfast.KindConflict, "review/no_rule", value(`"tenant_id":"local"`, `"tenant_id":"other"`))
	refuse("another_contract", holdfast.KindConflict, "review/no_rule", change(func(s *operator.Statement) {
		r, _ := review.ParseRule(s.Value)
		r.Contract = other
		s.Value, _ = r.Encode()
	}))
	refuse("another_type", holdfast.KindConflict, "review/no_rule", value(`"value":"string"`, `"value":"number"`))
	refuse("another_place", holdfast.KindConflict, "review/no_rule", value(`/srv/tree`, `/var/tree`))
	refuse("no_rule", holdfast.KindValue, "review/no_rule", change(func(s *operator.Statement) { s.Value = "everything" }))
	refuse("fewer_members", holdfast.KindConflict, "review/no_rule", change(func(s *operator.Statement) {
		r, _ := review.ParseRule(s.Value)
		r.Members = r.Members[:1]
		s.Value, _ = r.Encode()
	}))
	t.Run("another_act", func(t *testing.T) {
		_, err := w.k.Remember(w.say(operator.Approve, h.Review, ""))
		wants(t, err, holdfast.KindUsage)
	})
	t.Run("the_same_words_twice", func(t *testing.T) {
		said := w.wish(h.Review, inWork)
		if _, err := w.k.Remember(said); err != nil {
			t.Fatal(err)
		}
		_, err := w.k.Remember(said)
		refusedAs(t, err, holdfast.KindConflict, "statement/replayed")
	})
	irreversible := w.held(w.req("t/gone", inWorkArgs))
	w.approve(irreversible.Review)
	refuse("irreversible", holdfast.KindConflict, "review/never_remembered", w.wish(irreversible.Review, inWork))
	both := w.held(w.req("test/high", `{"ask":1,"path":"/srv/tree/a","text":"x"}`))
	w.approve(both.Review)
	refuse("asked_by_the_constitution", holdfast.KindConflict, "review/asked_by_a_rule", w.wish(both.Review, inWork))
	long := w.held(w.req("test/high", `{"text":"`+strings.Repeat("y", 5000)+`"}`))
	r, _ := w.k.Review(t.Context(), long.Review)
	r.Cut = false
	if _, err := review.RuleOf(&r, review.Choice{}); err == nil {
		t.Fatal("what is shown in part has a shape")
	}
	w.advance(25 * time.Hour)
	refuse("too_late", holdfast.KindConflict, "review/not_approved", w.wish(h.Review, inWork))
	t.Run("forget_what_is_not_there", func(t *testing.T) {
		_, err := w.k.Forget(w.sign(operator.Statement{Act: operator.Forget, Subject: "rr_0"}))
		refusedAs(t, err, holdfast.KindNotFound, "review/no_such_rule")
	})
}

// What was masked in the preview is bound to nothing, and stays out of the
// rule, the store and the ledger.
func TestD11_masked_members_are_never_pinned(t *testing.T) {
	w := newWorld(t, "")
	const canary = "AKIAIOSFODNN7CANARYX"
	h := w.held(w.req("test/high", `{"key":"`+canary+`","path":"/srv/tree/a"}`))
	w.approve(h.Review)
	r, _ := w.k.Review(t.Context(), h.Review)
	if _, err := review.RuleOf(&r, review.Choice{Under: map[string]string{"path": "/srv/tree"}}); err == nil {
		t.Fatal("a masked value was pinned")
	}
	m, err := w.k.Remember(w.wish(h.Review, review.Choice{Under: map[string]string{"path": "/srv/tree"}, Any: []string{"key"}}))
	if err != nil {
		t.Fatal(err)
	}
	w.nowhere(canary)
	w.passes(w.req("test/high", `{"key":"another","path":"/srv/tree/b"}`))
	if m.Words == nil {
		t.Fatal("no words")
	}
}

// A rejection of exactly this request stands above a rule; a denial of another
// gate stands above everything; and a question of the constitution is put to a
// person each time.
func TestD11_rules_stand_below_a_rejection_and_the_constitution(t *testing.T) {
	w := newWorld(t, "rules:\n  - {id: no, on: request, boundary: test/high, when: has(args.n) && args.n == 5, message: bad}\n  - {id: look, on: request, boundary: test/high, when: has(args.n) && args.n == 7, severity: hold, message: look}\n")
	h := w.held(w.req("test/high", `{"path":"/srv/tree/bad","text":"x"}`))
	if _, err := w.k.Decide(w.say(operator.Reject, h.Review, "not this one")); err != nil {
		t.Fatal(err)
	}
	w.remember("test/high", inWorkArgs, inWork)
	w.passes(w.req("test/high", `{"path":"/srv/tree/good","text":"x"}`))
	e := w.refused(w.req("test/high", `{"path":"/srv/tree/bad","text":"x"}`), holdfast.K7, holdfast.KindRejected)
	if e.Rule != "review/rejected" {
		t.Fatal(e.Rule)
	}
	// The rule covers these two; the constitution does not.
	w.remember("test/high", `{"n":1,"text":"x"}`, review.Choice{Any: []string{"n", "text"}})
	w.refused(w.req("test/high", `{"n":5,"text":"x"}`), holdfast.K8, holdfast.KindRule)
	asked := w.held(w.req("test/high", `{"n":7,"text":"x"}`))
	w.held(w.req("test/high", `{"n":7,"text":"x"}`))
	r, err := w.k.Review(t.Context(), asked.Review)
	if err != nil || r.Why != "look" || len(r.Gates) != 1 || r.Gates[0] != holdfast.K8 {
		t.Fatalf("%+v %v", r, err)
	}
	list, _ := w.k.Remembered(t.Context(), "")
	if list[0].Uses != 0 {
		t.Fatal("a rule that let nothing pass was counted")
	}
}

// What waits when a rule is made acts by the rule, and nobody is asked about it
// any more; who awaits its answer learns that.
func TestD11_a_rule_answers_what_waits(t *testing.T) {
	w := newWorld(t, "")
	waits := w.req("test/high", `{"path":"/srv/tree/b","text":"y"}`)
	h := w.held(waits)
	w.remember("test/high", inWorkArgs, inWork)
	answers := w.awaited(t.Context(), h.Review, 1)
	w.passes(waits)
	if err := <-answers; err != nil {
		t.Fatal(err)
	}
	if r, _ := w.k.Review(t.Context(), h.Review); r.State != review.Voided {
		t.Fatalf("it is %s", r.State)
	}
	_, err := w.k.Decide(w.say(operator.Approve, h.Review, ""))
	refusedAs(t, err, holdfast.KindConflict, "review/voided")
}
