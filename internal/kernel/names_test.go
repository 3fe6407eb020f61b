package kernel_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// never crosses with a hand that must not run, and gives the refusal.
func (w *world) never(req holdfast.Request) (*holdfast.Outcome, error) {
	w.t.Helper()
	return w.k.Cross(w.t.Context(), req, func(context.Context) (holdfast.Output, error) {
		w.t.Error("acted")
		return holdfast.Output{}, nil
	})
}

// What an agent is told has a name for each way in which an approval is not
// its to use.
func TestK7_D11_each_refusal_of_a_request_has_its_name(t *testing.T) {
	cases := []struct {
		name, rule string
		kind       holdfast.Kind
		says       string
		before     func(w *world) string // returns the review that is spoken of
	}{
		{"first", "review/opened", holdfast.KindHeld, "", func(*world) string { return "" }},
		{"identical_retry", "review/waiting", holdfast.KindHeld, "", func(w *world) string { w.held(w.req("test/high", `{"a":1}`)); return "" }},
		{"deferred", "review/deferred", holdfast.KindHeld, "", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			if _, err := w.k.Decide(w.say(operator.Defer, h.Review, "later")); err != nil {
				w.t.Fatal(err)
			}
			return ""
		}},
		{"changed_arguments", "review/other_arguments", holdfast.KindHeld, "is for other arguments", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":2,"secret":"between us"}`))
			w.approve(h.Review)
			return h.Review
		}},
		{"changed_policy", "review/policy_changed", holdfast.KindHeld, "the policy changed after review", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			w.approve(h.Review)
			p := *w.policy
			p.Version = strings.Repeat("2", 64)
			if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
				w.t.Fatal(err)
			}
			return h.Review
		}},
		{"expired_without_an_answer", "review/expired", holdfast.KindApprovalTimeout, "nobody answered review", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			w.advance(25 * time.Hour)
			return h.Review
		}},
		{"expired_unused", "review/unused", holdfast.KindApprovalTimeout, "was not used within", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			w.approve(h.Review)
			w.advance(25 * time.Hour)
			return h.Review
		}},
		{"expired_unused_after_it_was_deferred", "review/unused", holdfast.KindApprovalTimeout, "was not used within", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			if _, err := w.k.Decide(w.say(operator.Defer, h.Review, "later")); err != nil {
				w.t.Fatal(err)
			}
			w.approve(h.Review)
			w.advance(25 * time.Hour)
			if _, err := w.k.Sweep(); err != nil {
				w.t.Fatal(err)
			}
			return h.Review
		}},
		{"second_use", "review/used", holdfast.KindHeld, "was used already", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			w.approve(h.Review)
			w.passes(w.req("test/high", `{"a":1}`))
			return h.Review
		}},
		{"rejected", "review/rejected", holdfast.KindRejected, "rejected by bob: never", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			if _, err := w.k.Decide(w.say(operator.Reject, h.Review, "never")); err != nil {
				w.t.Fatal(err)
			}
			return ""
		}},
		{"changes", "review/changes_requested", holdfast.KindRejected, "bob asks for changes: into archive", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			if _, err := w.k.Decide(w.say(operator.Changes, h.Review, "into archive")); err != nil {
				w.t.Fatal(err)
			}
			return ""
		}},
		{"forged", "review/not_signed", holdfast.KindApprovalChannel, "carries no signature", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			if err := w.store.Update(w.t.Context(), func(tx kernel.Tx) error {
				r, err := tx.Review(h.Review)
				if err != nil {
					return err
				}
				r.State, r.Reviewer, r.Decided, r.Expires = review.Approved, "bob", w.now(), w.now().Add(review.Lifetime)
				return tx.PutReview(r, review.Pending)
			}); err != nil {
				w.t.Fatal(err)
			}
			return h.Review
		}},
		{"used_twice_in_the_store", "review/used", holdfast.KindHeld, "", func(w *world) string {
			h := w.held(w.req("test/high", `{"a":1}`))
			w.approve(h.Review)
			w.passes(w.req("test/high", `{"a":1}`))
			return ""
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "")
			about := c.before(w)
			_, err := w.never(w.req("test/high", `{"a":1}`))
			e := refusedAs(t, err, c.kind, c.rule)
			if !strings.Contains(e.Why, c.says) || !strings.Contains(e.Why, about) || strings.Contains(e.Why, "between us") {
				t.Fatalf("%q", e.Why)
			}
		})
	}
}

// Another agent's approval is named to nobody else.
func TestK7_D11_other_arguments_leak_nothing(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{"a":1}`))
	w.approve(h.Review)
	for _, who := range []holdfast.Secret{w.who("dave"), w.who("alice", func(id *holdfast.Identity) { id.Principal = "user:mallory" })} {
		req := w.req("test/high", `{"a":2}`)
		req.Token = who
		_, err := w.never(req)
		if e := refusedAs(t, err, holdfast.KindHeld, "review/opened"); strings.Contains(e.Why, h.Review) {
			t.Fatalf("%q", e.Why)
		}
	}
}

// An approval that somebody puts back to unused in the store acts no second
// time: its crossing has begun, and the ledger says so.
func TestK7_D11_a_used_approval_that_is_put_back(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	w.approve(h.Review)
	w.passes(w.req("test/high", `{}`))
	if err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		r, err := tx.Review(h.Review)
		if err != nil {
			return err
		}
		r.State = review.Approved
		return tx.PutReview(r, review.Used)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.never(w.req("test/high", `{}`)); err == nil {
		t.Fatal("it acted twice")
	}
}

// What a person is told has a name for each answer that is not taken.
func TestK7_D11_each_refusal_of_an_answer_has_its_name(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	r, _ := w.k.Review(t.Context(), h.Review)
	other := strings.Repeat("ab", 32)
	approval := func(f func(*operator.Statement)) operator.Signed {
		s := operator.Statement{Act: operator.Approve, Subject: r.ID, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce}
		if f != nil {
			f(&s)
		}
		return w.sign(s)
	}
	refuse := func(kind holdfast.Kind, rule string, said operator.Signed) {
		t.Helper()
		_, err := w.k.Decide(said)
		refusedAs(t, err, kind, rule)
	}
	refuse(holdfast.KindConflict, "review/other_arguments", approval(func(s *operator.Statement) { s.Exact = other }))
	refuse(holdfast.KindConflict, "review/other_preview", approval(func(s *operator.Statement) { s.PreviewHash = other }))
	refuse(holdfast.KindConflict, "review/policy_changed", approval(func(s *operator.Statement) { s.Policy = other }))
	refuse(holdfast.KindConflict, "review/other_question", approval(func(s *operator.Statement) { s.Nonce = "00" }))
	refuse(holdfast.KindPermission, "review/other_tenant", approval(func(s *operator.Statement) { s.Tenant = "acme" }))
	refuse(holdfast.KindNotFound, "review/none", approval(func(s *operator.Statement) { s.Subject = "rv_0" }))
	refuse(holdfast.KindSelfApproval, "review/self_approval", approval(func(s *operator.Statement) { s.Reviewer = "Alice" }))
	refuse(holdfast.KindValue, "statement/secret", approval(func(s *operator.Statement) { s.Reason = "ask jane.canary@example.org" }))
	once := approval(nil)
	if _, err := w.k.Decide(once); err != nil {
		t.Fatal(err)
	}
	refuse(holdfast.KindConflict, "statement/replayed", once)
	refuse(holdfast.KindConflict, "review/decided", approval(nil))
	w.passes(w.req("test/high", `{}`))
	refuse(holdfast.KindConflict, "review/used", approval(nil))

	late := w.held(w.req("test/high", `{"late":1}`))
	w.advance(25 * time.Hour)
	refuse(holdfast.KindConflict, "review/expired", w.say(operator.Approve, late.Review, ""))
	if _, err := w.k.Sweep(); err != nil {
		t.Fatal(err)
	}
	refuse(holdfast.KindConflict, "review/expired", w.say(operator.Approve, late.Review, ""))

	w.observe(tool("pay", "aaaa", holdfast.High))
	drifted := w.held(w.req("mcp/srv/pay", `{}`))
	w.observe(tool("pay", "bbbb", holdfast.High))
	refuse(holdfast.KindConflict, "review/tool_changed", w.say(operator.Approve, drifted.Review, ""))
	w.held(w.req("mcp/srv/pay", `{}`))
	refuse(holdfast.KindConflict, "review/voided", w.say(operator.Approve, drifted.Review, ""))
}

// Two people answer at once, and sixty-four identical retries come while they
// do and after: one answer counts, and where it is yes exactly one act is made.
func TestK7_D11_two_reviewers_and_many_retries_make_one_act(t *testing.T) {
	for round := range testrepeat.Times(6, 3) {
		w := newWorld(t, "")
		h := w.held(w.req("test/high", `{}`))
		word := []string{operator.Approve, operator.Approve}
		if round%3 == 2 {
			word[1] = operator.Reject
		}
		var acts, yes atomic.Int64
		var agreed atomic.Bool
		var wg sync.WaitGroup
		start := make(chan struct{})
		for _, act := range word {
			said := w.say(act, h.Review, "at once")
			wg.Add(1)
			go func() {
				defer wg.Done()
				<-start
				switch _, err := w.k.Decide(said); {
				case err == nil:
					yes.Add(1)
					agreed.Store(act == operator.Approve)
				case holdfast.KindOf(err) != holdfast.KindConflict:
					t.Error(err)
				}
			}()
		}
		for i := range testrepeat.Times(64, 24) {
			req := w.req("test/high", `{}`)
			wg.Add(1)
			go func() {
				defer wg.Done()
				<-start
				for range 1 + i%4 { // some ask again at once, as a client would
					_, err := w.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
						acts.Add(1)
						return ok(ctx)
					})
					switch holdfast.KindOf(err) {
					case "", holdfast.KindHeld, holdfast.KindConflict, holdfast.KindApprovalUsed, holdfast.KindRejected:
					default:
						t.Error(err)
					}
				}
			}()
		}
		close(start)
		wg.Wait()
		if agreed.Load() && acts.Load() == 0 {
			w.k.Cross(t.Context(), w.req("test/high", `{}`), func(ctx context.Context) (holdfast.Output, error) {
				acts.Add(1)
				return ok(ctx)
			})
		}
		want := int64(0)
		if agreed.Load() {
			want = 1
		}
		if yes.Load() != 1 || acts.Load() != want || len(w.events(holdfast.Local, "review_executed")) != int(want) || len(w.events(holdfast.Local, "review_returned")) != int(want) {
			t.Fatalf("round %d: %d answers counted, %d acts, want %d", round, yes.Load(), acts.Load(), want)
		}
		verifyStore(t, w)
	}
}

// What became of a review is told from the ledger: that it was approved and
// never ran is another thing than that it ran and never returned.
func TestK7_D11_life_of_a_review(t *testing.T) {
	life := func(w *world, id string) (string, string) {
		w.t.Helper()
		steps, err := w.k.Life(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		r, _ := w.k.Review(w.t.Context(), id)
		var names []string
		for i, s := range steps {
			names = append(names, s.Event)
			if i > 0 && !s.At.After(steps[i-1].At) {
				w.t.Fatalf("%+v", steps)
			}
		}
		return strings.Join(names, " "), review.Fate(r.State, steps)
	}
	check := func(w *world, id, wantLife, wantFate string) {
		w.t.Helper()
		if l, f := life(w, id); l != wantLife || f != wantFate {
			w.t.Fatalf("%q, %q", l, f)
		}
	}
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	check(w, h.Review, "proposed", "pending")
	w.approve(h.Review)
	check(w, h.Review, "proposed decided", "approved, not run yet")
	w.passes(w.req("test/high", `{}`))
	check(w, h.Review, "proposed decided executed returned", "ran: done")

	// A lease that its caller never gave back.
	lost := w.held(w.req("test/high", `{"lost":1}`))
	w.approve(lost.Review)
	x, _, err := w.k.Enter(t.Context(), w.req("test/high", `{"lost":1}`), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	<-x.Context().Done()
	for len(w.k.Flights()) > 0 {
		time.Sleep(time.Millisecond)
	}
	check(w, lost.Review, "proposed decided executed", "ran, never returned")

	// A crash between the begin and the end.
	crashed := w.held(w.req("test/high", `{"crash":1}`))
	w.approve(crashed.Review)
	if _, _, err := w.k.Enter(t.Context(), w.req("test/high", `{"crash":1}`), time.Minute); err != nil {
		t.Fatal(err)
	}
	w.store.Close()
	w = reopen(t, w.dir, "")
	check(w, crashed.Review, "proposed decided executed", "ran, never returned")
	for _, e := range w.entries(holdfast.Local) {
		if e.ID == crashed.Crossing && e.Outcome != ledger.Unknown {
			t.Fatalf("%+v", e)
		}
	}

	unused := w.held(w.req("test/high", `{"unused":1}`))
	w.approve(unused.Review)
	w.advance(25 * time.Hour)
	if _, err := w.k.Sweep(); err != nil {
		t.Fatal(err)
	}
	check(w, unused.Review, "proposed decided expired", "approved, never ran")
}
