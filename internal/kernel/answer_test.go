package kernel_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// A question is counted against the rates of its contract, as its act would
// be, and keeps no act from its place.
func TestK7_D11_questions_take_the_rate(t *testing.T) {
	w := newWorld(t, "", listed(holdfast.Contract{Boundary: "test/highrate", Risk: holdfast.High, RatePerMinute: 3, Source: "test:90"},
		holdfast.Contract{Boundary: "test/highcool", Risk: holdfast.High, Cooldown: 48 * time.Hour, Source: "test:91"}))
	ask := func(n int) holdfast.Request { return w.req("test/highrate", fmt.Sprintf(`{"n":%d}`, n)) }
	first := w.held(ask(0))
	w.held(ask(1))
	w.held(ask(2))
	w.refused(ask(3), holdfast.K3, holdfast.KindBounds)
	if again := w.held(ask(0)); again.Review != first.Review {
		t.Fatal("asked again, it is another question")
	}
	w.approve(first.Review)
	w.passes(ask(0))
	w.advance(61 * time.Second)
	w.held(ask(3))
	// However long the cooldown, what was approved acts at once.
	w.approve(w.held(w.req("test/highcool", `{}`)).Review)
	w.passes(w.req("test/highcool", `{}`))
}

// However many questions one tenant's agents ask, the sweep finds what another
// asked before.
func TestK7_AC5_the_sweep_finds_every_tenant(t *testing.T) {
	w := newWorld(t, "")
	victim := w.held(w.req("test/high", `{"victim":1}`))
	w.advance(23 * time.Hour)
	// The store is filled past the kernel, which would take no thousand.
	err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		for i := range 1000 {
			r := review.Review{ID: fmt.Sprintf("rv_%010d", i), Crossing: uuid4(), State: review.Pending, Created: w.now(), Expires: w.now().Add(review.Lifetime),
				Binding: review.Binding{Tenant: "crowd", Agent: "mallory", Boundary: "test/high", Exact: fmt.Sprintf("%064d", i), Policy: w.policy.Version}}
			if err := tx.PutReview(r, review.None); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.advance(90 * time.Minute)
	if n, err := w.k.Sweep(); n != 1 || err != nil {
		t.Fatalf("%d expired, %v", n, err)
	}
	if r, err := w.k.Review(t.Context(), victim.Review); err != nil || r.State != review.Expired {
		t.Fatalf("%s after its end: %v", r.State, err)
	}
}

// What the reviewer sees shows itself: no white space hides it, and nothing in
// it hides or turns what is beside it.
func TestK7_INV2_the_preview_hides_nothing(t *testing.T) {
	w := newWorld(t, "")
	show := func(payload string) review.Review {
		t.Helper()
		r, err := w.k.Review(t.Context(), w.held(w.req("test/high", payload)).Review)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, c := range map[string]struct{ payload, want string }{
		"white_space":   {`{` + strings.Repeat(" ", 5000) + `"cmd":"rm -rf /"}`, `{"cmd":"rm -rf /"}`},
		"order":         {`{"z":1,"a":2}`, `{"a":2,"z":1}`},
		"direction":     {"{\"cmd\":\"ls \u202efdp.exe\u2066\"}", `{"cmd":"ls \u202efdp.exe\u2066"}`},
		"zero_width":    {"{\"cmd\":\"a\u200bb\ufeffc\u00add\"}", `{"cmd":"a\u200bb\ufeffc\u00add"}`},
		"other_spaces":  {"{\"cmd\":\"a\u00a0b\u2028c\u3000d\u2800e\"}", `{"cmd":"a\u00a0b\u2028c\u3000d\u2800e"}`},
		"fillers":       {"{\"cmd\":\"a\u3164b\u115fc\ufe0fd\"}", `{"cmd":"a\u3164b\u115fc\ufe0fd"}`},
		"delete":        {"{\"cmd\":\"a\u007fb\u009bc\"}", `{"cmd":"a\u007fb\u009bc"}`},
		"tags":          {"{\"cmd\":\"a\U000e0041\U0010fffd\"}", `{"cmd":"a\udb40\udc41\udbff\udffd"}`},
		"letters_stay":  {`{"cmd":"grüße 你好 😀"}`, `{"cmd":"grüße 你好 😀"}`},
		"spelled_stays": {`{"cmd":"\\u202e"}`, `{"cmd":"\\u202e"}`},
	} {
		if r := show(c.payload); r.Preview != c.want || r.Cut {
			t.Errorf("%s: %q, want %q", name, r.Preview, c.want)
		}
	}
}

// What is too long to be shown says so, and is approved only by a person who
// says that it was.
func TestK7_INV2_what_is_cut_is_approved_knowingly(t *testing.T) {
	w := newWorld(t, "")
	payload := `{"a":"` + strings.Repeat("é\u202e", 2000) + `","b":"rm"}`
	h := w.held(w.req("test/high", payload))
	r, err := w.k.Review(t.Context(), h.Review)
	if err != nil || !r.Cut {
		t.Fatalf("%v %v", r.Cut, err)
	}
	kept, mark, _ := strings.Cut(r.Preview, "... (")
	if want := fmt.Sprintf("%d of %d bytes shown)", len(kept), len(payload)+2000*(len(`\u202e`)-3)); mark != want || len(kept) < 4090 || len(kept) > 4096 {
		t.Fatalf("%q, want %q", mark, want)
	}
	answer := func(act, value string) error {
		_, err := w.k.Decide(w.sign(operator.Statement{Act: act, Subject: r.ID, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce, Value: value}))
		return err
	}
	for _, value := range []string{"", "yes", "Seen in part"} {
		err := answer(operator.Approve, value)
		wants(t, err, holdfast.KindPermission)
		if e := err.(*holdfast.Error); !strings.Contains(e.Hint, "--in-part") {
			t.Fatalf("%+v", e)
		}
	}
	if err := answer(operator.Approve, operator.InPart); err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("test/high", payload))
	// Nobody must look at all of it to refuse it.
	r, err = w.k.Review(t.Context(), w.held(w.req("test/high", payload)).Review)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer(operator.Reject, ""); err != nil {
		t.Fatal(err)
	}
}

// Who asked does not approve, however the name is written.
func TestK7_INV1_nobody_approves_what_they_asked(t *testing.T) {
	w := newWorld(t, "")
	req := w.req("test/high", `{}`)
	req.Token = w.who("bot", func(id *holdfast.Identity) { id.Principal = "user:alice" })
	h := w.held(req)
	r, err := w.k.Review(t.Context(), h.Review)
	if err != nil {
		t.Fatal(err)
	}
	approve := func(reviewer, tenant string) error {
		_, err := w.k.Decide(w.sign(operator.Statement{Act: operator.Approve, Subject: r.ID, Tenant: tenant, Exact: r.Exact, PreviewHash: r.PreviewHash,
			Policy: r.Policy, Nonce: r.Nonce, Reviewer: reviewer}))
		return err
	}
	for _, reviewer := range []string{"user:alice", "alice", "Alice", "ALICE", "user:Alice", "User:alice", "user: alice", "agent:alice", "operator:alice", "user:agent:alice", "bot", "agent:Bot"} {
		if err := approve(reviewer, ""); holdfast.KindOf(err) != holdfast.KindSelfApproval {
			t.Errorf("user:alice asked, %q: %v", reviewer, err)
		}
	}
	wants(t, approve("malice", "other"), holdfast.KindPermission)
	if err := approve("malice", holdfast.Local); err != nil {
		t.Fatal(err)
	}
}

// An answer to one person's question is not another's, though their agents
// bear one name; and neither takes the other's away.
func TestK7_INV1_an_approval_is_its_askers(t *testing.T) {
	w := newWorld(t, "")
	as := func(principal string) holdfast.Request {
		return holdfast.Request{Boundary: "test/high", Payload: []byte(`{}`), Token: w.who("bot", func(id *holdfast.Identity) { id.Principal = principal })}
	}
	alice := w.held(as("user:alice"))
	w.approve(alice.Review)
	dave := w.held(as("user:dave"))
	if dave.Review == alice.Review {
		t.Fatal("dave acts on what alice was allowed")
	}
	if again := w.held(as("user:dave")); again.Review != dave.Review {
		t.Fatal("dave's question is asked twice")
	}
	if _, err := w.k.Decide(w.say(operator.Reject, dave.Review, "not you")); err != nil {
		t.Fatal(err)
	}
	w.refused(as("user:dave"), holdfast.K7, holdfast.KindRejected)
	if out := w.passes(as("user:alice")); out.Crossing != alice.Crossing {
		t.Fatalf("%s, not the crossing that was held", out.Crossing)
	}
	verifyStore(t, w)
}

// A person's word is about one tenant's agent.
func TestD11_statements_name_their_tenant(t *testing.T) {
	w := newWorld(t, "")
	w.passes(w.req("test/low", `{}`)) // alice of tenant local
	err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		return tx.PutAgent(holdfast.Agent{Tenant: "other", Name: "alice", State: holdfast.AgentPaused, Principal: "x", First: w.now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	trust := func(at, said string) error {
		return w.k.Trust(at, w.sign(operator.Statement{Act: operator.Trust, Subject: "alice", Tenant: said, Value: "high"}))
	}
	unpause := func(at, said string) error {
		_, err := w.k.Unpause(at, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice", Tenant: said}))
		return err
	}
	for name, do := range map[string]func(at, said string) error{"trust": trust, "unpause": unpause} {
		for _, c := range [][2]string{{"other", ""}, {"other", holdfast.Local}, {holdfast.Local, "other"}, {"other", "Other"}} {
			if err := do(c[0], c[1]); holdfast.KindOf(err) != holdfast.KindPermission {
				t.Errorf("%s said of %q, done to %q: %v", name, c[1], c[0], err)
			}
		}
	}
	as, err := w.k.Agents(t.Context(), "other")
	if err != nil || len(as) != 1 || as[0].Level != holdfast.Baseline || as[0].State != holdfast.AgentPaused {
		t.Fatalf("%+v %v", as, err)
	}
	for _, err := range []error{trust("other", "other"), unpause("other", "other"), trust(holdfast.Local, ""), unpause(holdfast.Local, holdfast.Local)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A number that bounds nothing is no policy, and no observed boundary with one
// is crossed.
func TestK7_FP5_bounds_that_bound_nothing(t *testing.T) {
	w := newWorld(t, "")
	for name, change := range map[string]func(*holdfast.Contract){
		"threshold_NaN":      func(c *holdfast.Contract) { c.Threshold = number(math.NaN()) },
		"threshold_above":    func(c *holdfast.Contract) { c.Threshold = number(math.Nextafter(1, 2)) },
		"threshold_below":    func(c *holdfast.Contract) { c.Threshold = number(-0.01) },
		"threshold_infinite": func(c *holdfast.Contract) { c.Threshold = number(math.Inf(1)) },
		"timeout":            func(c *holdfast.Contract) { c.Timeout = -time.Nanosecond },
		"cooldown":           func(c *holdfast.Contract) { c.Cooldown = -time.Second },
		"rate":               func(c *holdfast.Contract) { c.RatePerMinute = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			c := holdfast.Contract{Boundary: "seen/" + name, Risk: holdfast.Low, Confidence: "declared", Source: "test:92"}
			change(&c)
			p := *w.policy
			p.Version = strings.Repeat("2", 64)
			p.Contracts = append(append([]holdfast.Contract{}, p.Contracts...), c)
			err := w.k.SetPolicy(&p, "user:carol")
			if err == nil || !strings.Contains(err.Error(), "test:92") {
				t.Fatalf("in force: %v", err)
			}
			if _, err := w.tools.Observe(t.Context(), []holdfast.Contract{c}); err != nil {
				t.Fatal(err)
			}
			req := w.req(c.Boundary, `{}`)
			req.Confidence = number(1)
			w.refused(req, holdfast.K7, holdfast.KindValue)
		})
	}
	if err := w.store.Poisoned(); err != nil {
		t.Fatal(err)
	}
}

// The entry of what was held and never began says what a person answered, if
// one did, whatever came after.
func TestK7_AC6_the_entry_keeps_the_answer(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		act  string
		want *bool
	}{{operator.Approve, &yes}, {operator.Reject, &no}, {operator.Changes, &no}, {operator.Defer, nil}, {"", nil}} {
		for _, then := range []string{"swept", "told", "policy"} {
			t.Run(c.act+"_"+then, func(t *testing.T) {
				w := newWorld(t, "")
				h := w.held(w.req("test/high", `{}`))
				if c.act != "" {
					if _, err := w.k.Decide(w.say(c.act, h.Review, "so")); err != nil {
						t.Fatal(err)
					}
				}
				switch then {
				case "swept":
					w.advance(25 * time.Hour)
					if _, err := w.k.Sweep(); err != nil {
						t.Fatal(err)
					}
				case "told":
					w.advance(25 * time.Hour)
					_, _ = w.cross(w.req("test/high", `{}`))
				case "policy":
					p := *w.policy
					p.Version = strings.Repeat("2", 64)
					if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
						t.Fatal(err)
					}
					_, _ = w.cross(w.req("test/high", `{}`))
				}
				var found *ledger.Entry
				for _, e := range w.entries(holdfast.Local) {
					if e.ID == h.Crossing {
						found = e
					}
				}
				switch {
				case found == nil:
					t.Fatal("no entry")
				case (found.Approved == nil) != (c.want == nil), found.Approved != nil && *found.Approved != *c.want:
					t.Fatalf("approved %v, want %v", found.Approved, c.want)
				case (found.Reviewer == "bob") != (c.act != ""):
					t.Fatalf("reviewer %q", found.Reviewer)
				}
			})
		}
	}
}

// A clock that goes back leaves the newest question the one that answers.
func TestK7_D11_a_clock_that_goes_back(t *testing.T) {
	w := newWorld(t, "")
	old := w.held(w.req("test/high", `{}`))
	w.approve(old.Review)
	w.passes(w.req("test/high", `{}`))
	w.advance(-time.Hour)
	h := w.held(w.req("test/high", `{}`))
	if again := w.held(w.req("test/high", `{}`)); again.Review != h.Review {
		t.Fatal("the same request is another question")
	}
	w.approve(h.Review)
	if out := w.passes(w.req("test/high", `{}`)); out.Crossing != h.Crossing {
		t.Fatal("another crossing than the one that was held")
	}
}
