package kernel_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

func number(v float64) *float64 { return &v }

// Confidence against the threshold of the risk, or the contract's own (D37).
func TestK7_AC1_AC2_AC8_FP1_FP5_thresholds(t *testing.T) {
	strict, lax, none := 0.85, 0.0, 1.0
	w := newWorld(t, "", listed(
		holdfast.Contract{Boundary: "t/low", Risk: holdfast.Low, Confidence: "declared", Source: "test:60"},
		holdfast.Contract{Boundary: "t/modify", Risk: holdfast.Medium, Confidence: "declared", Operation: "goal:modify", Threshold: &strict, Source: "test:61"},
		holdfast.Contract{Boundary: "t/read", Risk: holdfast.Medium, Confidence: "declared", Operation: "goal:read", Threshold: &lax, Source: "test:62"},
		holdfast.Contract{Boundary: "t/sure", Risk: holdfast.Low, Confidence: "declared", Threshold: &none, Source: "test:63"},
		holdfast.Contract{Boundary: "t/high", Risk: holdfast.High, Confidence: "declared", Threshold: &lax, Source: "test:64"},
		holdfast.Contract{Boundary: "t/never", Risk: holdfast.Prohibited, Confidence: "declared", Threshold: &lax, Source: "test:65"}))
	cases := []struct {
		name, boundary string
		score          *float64
		want           holdfast.Verdict
		kind           holdfast.Kind
	}{
		{"K7_AC1_LOW_0.5_at", "t/low", number(0.5), holdfast.Allow, ""},
		{"K7_AC2_LOW_0.5_below", "t/low", number(math.Nextafter(0.5, 0)), holdfast.Hold, ""},
		{"K7_AC1_MEDIUM_0.7_at", "test/declared", number(0.7), holdfast.Allow, ""},
		{"K7_AC2_MEDIUM_0.7_below", "test/declared", number(0.699), holdfast.Hold, ""},
		{"K7_AC1_document_0.95_of_0.85", "t/modify", number(0.95), holdfast.Allow, ""},
		{"K7_AC2_document_0.70_of_0.85", "t/modify", number(0.70), holdfast.Hold, ""},
		{"K7_AC8_another_operation_another_threshold", "t/read", number(0.70), holdfast.Allow, ""},
		{"K7_AC8_threshold_zero", "t/read", number(0), holdfast.Allow, ""},
		{"K7_AC8_threshold_one_below", "t/sure", number(0.999999), holdfast.Hold, ""},
		{"K7_AC8_threshold_one_at", "t/sure", number(1), holdfast.Allow, ""},
		{"K7_D37_HIGH_whatever_the_confidence", "t/high", number(1), holdfast.Hold, ""},
		{"K7_D37_PROHIBITED_whatever_the_confidence", "t/never", number(1), holdfast.Deny, holdfast.KindProhibited},
		{"K7_FP1_none_declared", "test/declared", nil, holdfast.Deny, holdfast.KindConfidence},
		{"K7_FP5_NaN", "test/declared", number(math.NaN()), holdfast.Deny, holdfast.KindValue},
		{"K7_FP5_1.1", "test/declared", number(1.1), holdfast.Deny, holdfast.KindValue},
		{"K7_FP5_minus_0.1", "test/declared", number(-0.1), holdfast.Deny, holdfast.KindValue},
		{"K7_FP5_infinite", "test/declared", number(math.Inf(1)), holdfast.Deny, holdfast.KindValue},
		{"K7_FP5_HIGH_with_a_bad_score", "t/high", number(1.1), holdfast.Deny, holdfast.KindValue},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			req := w.req(c.boundary, fmt.Sprintf(`{"case":%q}`, c.name))
			req.Confidence = c.score
			switch c.want {
			case holdfast.Allow:
				w.passes(req)
			case holdfast.Hold:
				w.held(req)
			default:
				w.refused(req, holdfast.K7, c.kind)
			}
		})
	}
}

func TestK7_AC7_FP1_expressions(t *testing.T) {
	w := newWorld(t, "", listed(holdfast.Contract{Boundary: "t/div", Risk: holdfast.Low, Confidence: "double(args.a / args.b)", Source: "test:70"},
		holdfast.Contract{Boundary: "t/nan", Risk: holdfast.Low, Confidence: "args.a / args.b", Source: "test:71"}))
	cases := []struct {
		name, boundary, payload string
		want                    holdfast.Verdict
		kind                    holdfast.Kind
	}{
		{"K7_AC1_reaches", "test/scored", `{"c":0.7}`, holdfast.Allow, ""},
		{"K7_AC2_below", "test/scored", `{"c":0.69}`, holdfast.Hold, ""},
		{"K7_FP1_missing_key", "test/scored", `{}`, holdfast.Deny, holdfast.KindConfidence},
		{"K7_FP1_other_type", "test/scored", `{"c":[]}`, holdfast.Deny, holdfast.KindConfidence},
		{"K7_FP1_no_object", "test/scored", `"c"`, holdfast.Deny, holdfast.KindConfidence},
		{"K7_FP1_division_by_zero", "t/div", `{"a":1,"b":0}`, holdfast.Deny, holdfast.KindConfidence},
		{"K7_FP5_above_one", "test/scored", `{"c":1.1}`, holdfast.Deny, holdfast.KindValue},
		{"K7_FP5_below_zero", "test/scored", `{"c":-0.1}`, holdfast.Deny, holdfast.KindValue},
		{"K7_FP5_text_NaN", "test/scored", `{"c":"NaN"}`, holdfast.Deny, holdfast.KindValue},
		{"K7_FP5_NaN", "t/nan", `{"a":0.0,"b":0.0}`, holdfast.Deny, holdfast.KindValue},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			switch req := w.req(c.boundary, c.payload); c.want {
			case holdfast.Allow:
				w.passes(req)
			case holdfast.Hold:
				w.held(req)
			default:
				w.refused(req, holdfast.K7, c.kind)
			}
		})
	}
	p := *w.policy
	p.Version = strings.Repeat("2", 64)
	p.Contracts = append(append([]holdfast.Contract{}, p.Contracts...), holdfast.Contract{Boundary: "t/bad", Risk: holdfast.Low, Confidence: "args.", Source: "test:72"})
	if err := w.k.SetPolicy(&p, "user:carol"); err == nil {
		t.Fatal("a policy with an expression that does not parse is in force")
	}
}

// Failure predicate 6: without a contract there is no operation and no
// threshold.
func TestK7_FP6_no_operation(t *testing.T) {
	w := newWorld(t, "")
	out, _ := w.k.Explain(t.Context(), w.req("nowhere", `{}`))
	if op := out.Opinions[6]; op.Verdict != holdfast.Deny || op.Kind != holdfast.KindValue {
		t.Fatalf("%+v", op)
	}
}

func TestK7_FP4_channel_unavailable(t *testing.T) {
	b := &broken{}
	w := newWorld(t, "", breakable(b))
	w.passes(w.req("test/low", `{}`))
	b.fail("ReviewFor")
	w.refused(w.req("test/high", `{}`), holdfast.K7, holdfast.KindApprovalChannel)
	b.fail("PutReview")
	_, err := w.k.Cross(t.Context(), w.req("test/high", `{}`), func(context.Context) (holdfast.Output, error) {
		t.Error("acted")
		return holdfast.Output{}, nil
	})
	wants(t, err, holdfast.KindWALWrite)
	b.fail("")
	if n := w.count("SELECT count(*) FROM review"); n != 0 {
		t.Fatalf("%d reviews", n)
	}
	w.held(w.req("test/high", `{}`))
}

// Invariant 3: the same request has the same score, and the record holds it.
func TestK7_INV3_scores_are_deterministic(t *testing.T) {
	w := newWorld(t, "")
	for range 5 {
		w.passes(w.req("test/scored", `{"c":0.75}`))
	}
	for _, e := range w.entries(holdfast.Local) {
		if e.Confidence == nil || *e.Confidence != 0.75 {
			t.Fatalf("%+v", e.Confidence)
		}
	}
}

// A hundred retries with an approval: exactly one acts (AC3, D11).
func TestK7_AC3_AC6_approved_once_acts_once(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{"x":1}`))
	w.store.Close()
	w = reopen(t, w.dir, "") // a hold survives a restart
	r := w.approve(h.Review)
	if r.Reviewer != "bob" || r.Decided.IsZero() || r.State != review.Approved {
		t.Fatalf("%+v", r)
	}
	w.store.Close()
	w = reopen(t, w.dir, "") // and so does an approval
	var acts, done, used atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		req := w.req("test/high", `{"x":1}`)
		wg.Add(1)
		go func() {
			defer wg.Done()
			out, err := w.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
				acts.Add(1)
				return ok(ctx)
			})
			switch holdfast.KindOf(err) {
			case "":
				done.Add(1)
				if out.Crossing != h.Crossing || out.Correlation != h.Correlation {
					t.Errorf("the approved crossing is %s, not %s", out.Crossing, h.Crossing)
				}
			case holdfast.KindApprovalUsed, holdfast.KindHeld, holdfast.KindConflict:
				used.Add(1)
			default:
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if acts.Load() != 1 || done.Load() != 1 {
		t.Fatalf("%d acts, %d done", acts.Load(), done.Load())
	}
	var entry *ledger.Entry
	for _, e := range w.entries(holdfast.Local) {
		if e.ID == h.Crossing {
			if entry != nil {
				t.Fatal("two entries")
			}
			entry = e
		}
	}
	if entry == nil || entry.Reviewer != "bob" || entry.Approved == nil || !*entry.Approved || entry.Review != h.Review || entry.Outcome != ledger.Done {
		t.Fatalf("%+v", entry)
	}
	verifyStore(t, w)
}

// A hundred identical requests open one review.
func TestK7_D11_identical_retries_attach(t *testing.T) {
	w := newWorld(t, "")
	var mu sync.Mutex
	ids, crossings := map[string]int{}, map[string]int{}
	var wg sync.WaitGroup
	for i := range 100 {
		req := w.req("test/high", []string{`{"a":1,"b":2}`, `{"b":2, "a":1}`}[i%2])
		wg.Add(1)
		go func() {
			defer wg.Done()
			out, err := w.k.Cross(context.Background(), req, ok)
			if holdfast.KindOf(err) != holdfast.KindHeld {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[out.Review]++
			crossings[out.Crossing]++
		}()
	}
	wg.Wait()
	rs, err := w.k.Reviews(t.Context(), "", review.None)
	if err != nil || len(rs) != 1 || len(ids) != 1 || len(crossings) != 1 {
		t.Fatalf("%d reviews, %d handles, %d crossings, %v", len(rs), len(ids), len(crossings), err)
	}
	if n := len(w.events(holdfast.Local, "review_proposed")); n != 1 {
		t.Fatalf("%d events", n)
	}
	if len(w.entries(holdfast.Local)) != 0 {
		t.Fatal("a held crossing has an entry")
	}
	other := w.req("test/high", `{"a":1,"b":2}`)
	other.Token = w.who("dave")
	if out := w.held(other); ids[out.Review] != 0 {
		t.Fatal("another agent attached to it")
	}
}

func TestK7_AC4_AC6_rejected(t *testing.T) {
	for _, act := range []string{operator.Reject, operator.Changes} {
		t.Run(act, func(t *testing.T) {
			w := newWorld(t, "")
			h := w.held(w.req("test/high", `{}`))
			if _, err := w.k.Decide(w.say(act, h.Review, "not on a friday")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				e := w.refused(w.req("test/high", `{}`), holdfast.K7, holdfast.KindRejected)
				if !strings.Contains(e.Why, "bob") || !strings.Contains(e.Why, "not on a friday") {
					t.Fatalf("%q", e.Why)
				}
			}
			w.store.Close()
			w = reopen(t, w.dir, "")
			w.advance(24*time.Hour - time.Minute)
			w.refused(w.req("test/high", `{}`), holdfast.K7, holdfast.KindRejected)
			w.advance(2 * time.Minute)
			again := w.held(w.req("test/high", `{}`))
			if again.Review == h.Review {
				t.Fatal("the old review came back")
			}
			e := w.entries(holdfast.Local)[0]
			if e.ID != h.Crossing || e.Outcome != ledger.Denied || e.Reviewer != "bob" || e.Approved == nil || *e.Approved || e.ErrorKind != holdfast.KindRejected {
				t.Fatalf("%+v", e)
			}
		})
	}
}

// Nobody answers: the agent is told once, then asks anew; the entry says so,
// whether the sweep or the agent came first. Deferring moves nothing.
func TestK7_AC5_INV4_FP2_timeouts(t *testing.T) {
	for _, how := range []string{"agent_first", "sweep_first", "deferred", "approved_and_unused", "restart"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, "")
			h := w.held(w.req("test/high", `{}`))
			switch how {
			case "deferred":
				w.advance(20 * time.Hour)
				r, err := w.k.Decide(w.say(operator.Defer, h.Review, "later"))
				if err != nil || !r.Expires.Equal(h.Expires) {
					t.Fatalf("%v: ends %v, not %v", err, r.Expires, h.Expires)
				}
				w.advance(3 * time.Hour)
				if out := w.held(w.req("test/high", `{}`)); out.Review != h.Review {
					t.Fatal("another review")
				}
				w.advance(-23 * time.Hour)
			case "approved_and_unused":
				w.approve(h.Review)
			}
			w.advance(25 * time.Hour)
			switch how {
			case "sweep_first":
				if n, err := w.k.Sweep(); n != 1 || err != nil {
					t.Fatalf("%d expired, %v", n, err)
				}
				if n, _ := w.k.Sweep(); n != 0 {
					t.Fatal("expired twice")
				}
			case "restart":
				w.store.Close()
				w = reopen(t, w.dir, "")
				w.advance(25 * time.Hour)
			}
			e := w.refused(w.req("test/high", `{}`), holdfast.K7, holdfast.KindApprovalTimeout)
			if e.Hint == "" {
				t.Fatalf("%+v", e)
			}
			if again := w.held(w.req("test/high", `{}`)); again.Review == h.Review {
				t.Fatal("the old review came back")
			}
			n := 0
			for _, e := range w.entries(holdfast.Local) {
				if e.ID == h.Crossing {
					n++
					if e.Outcome != ledger.HeldExpired || e.ErrorKind != holdfast.KindApprovalTimeout {
						t.Fatalf("%+v", e)
					}
				}
			}
			if n != 1 || len(w.events(holdfast.Local, "review_expired")) != 1 {
				t.Fatalf("%d entries of the held crossing", n)
			}
			verifyStore(t, w)
		})
	}
}

// Deny beats hold: all eight are asked before a person is.
func TestK7_D6a_deny_beats_hold(t *testing.T) {
	w := newWorld(t, "rules:\n  - {id: no, on: request, boundary: test/high, when: has(args.bad), message: bad}\n")
	w.refused(w.req("test/high", `{"bad":1}`), holdfast.K8, holdfast.KindRule)
	w.held(w.req("test/high", `{"good":1}`))
	if rs, _ := w.k.Reviews(t.Context(), "", review.None); len(rs) != 1 {
		t.Fatalf("%d reviews", len(rs))
	}
}

// A hold keeps no raw payload: not in the store, not beside it.
func TestK7_D11_no_raw_payload_while_held(t *testing.T) {
	w := newWorld(t, "")
	const canary = "AKIAIOSFODNN7CANARYX"
	h := w.held(w.req("test/high", `{"key":"`+canary+`","mail":"jane.canary@example.org","plain":"visible words"}`))
	r, err := w.k.Review(t.Context(), h.Review)
	if err != nil || strings.Contains(r.Preview, canary) || !strings.Contains(r.Preview, "visible words") || len(r.PreviewHash) != 64 || r.Exact != h.Exact {
		t.Fatalf("%+v %v", r, err)
	}
	w.nowhere(canary, "jane.canary")
	e := w.events(holdfast.Local, "review_proposed")[0]
	for _, want := range []string{r.PreviewHash, r.Exact} {
		if !strings.Contains(string(e.Data), want) {
			t.Fatalf("the record lacks %s", want)
		}
	}
}

// A reviewer's word is kept so that it can be verified long after.
func TestK7_INV2_INV5_decisions_are_durable(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	// It is kept as it was said, so what may not be written may not be said.
	_, err := w.k.Decide(w.say(operator.Approve, h.Review, "looked at it with jane.canary@example.org"))
	wants(t, err, holdfast.KindValue)
	said := w.say(operator.Approve, h.Review, "looked at it twice")
	if _, err := w.k.Decide(said); err != nil {
		t.Fatal(err)
	}
	e := w.events(holdfast.Local, "review_decided")
	if len(e) != 1 || e[0].Who != "bob" {
		t.Fatalf("%+v", e)
	}
	_, pub := keys()
	got := decisionOf(t, e[0].Data)
	s, err := operator.Verify(pub, got, w.now())
	if err != nil || s.Subject != h.Review || s.Reviewer != "bob" {
		t.Fatalf("the decision in the ledger does not verify: %v", err)
	}
	w.nowhere("jane.canary@example.org")
}

// Deciding works while everything is halted, and what was approved then acts
// only after the halt is lifted (D34).
func TestK7_D34_decisions_while_halted(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	if _, err := w.k.Halt("user:carol", "smoke"); err != nil {
		t.Fatal(err)
	}
	w.approve(h.Review)
	w.refused(w.req("test/high", `{}`), holdfast.GateHalt, holdfast.KindHalted)
	if err := w.k.Resume(w.sign(operator.Statement{Act: operator.Resume})); err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("test/high", `{}`))
}

// An approval given twice at once is given once.
func TestK7_race_of_deciders(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	var yes, no atomic.Int64
	var wg sync.WaitGroup
	for i := range 10 {
		said := w.say([]string{operator.Approve, operator.Reject}[i%2], h.Review, "")
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := w.k.Decide(said); err == nil {
				yes.Add(1)
			} else if holdfast.KindOf(err) == holdfast.KindConflict {
				no.Add(1)
			} else {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if yes.Load() != 1 || no.Load() != 9 || len(w.events(holdfast.Local, "review_decided")) != 1 {
		t.Fatalf("%d decided, %d refused", yes.Load(), no.Load())
	}
}

// Nobody can judge a thousand questions: past a hundred that wait, an agent is
// refused, and others still may ask.
func TestQuestionsOfOneAgentAreBounded(t *testing.T) {
	w := newWorld(t, "")
	for i := range 100 {
		if out, _ := w.cross(w.req("test/high", fmt.Sprintf(`{"i":%d}`, i))); out.Verdict != holdfast.Hold {
			t.Fatalf("question %d: %+v", i, out.Verdict)
		}
	}
	_, err := w.cross(w.req("test/high", `{"i":100}`))
	wants(t, err, holdfast.KindApprovalChannel)
	other := w.req("test/high", `{"i":100}`)
	other.Token = w.who("dave")
	if out, _ := w.cross(other); out.Verdict != holdfast.Hold {
		t.Fatalf("another agent: %v", out.Verdict)
	}
}
