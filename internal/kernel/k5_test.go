package kernel_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// counted is a hand that says how often it acted, and gives another body each
// time.
func counted(n *atomic.Int64) kernel.Act {
	return func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: fmt.Appendf(nil, `{"act":%d}`, n.Add(1)), ExitCode: 0}, nil
	}
}

// keyed asks with an idempotency key.
func (w *world) keyed(boundary, payload, key string) holdfast.Request {
	r := w.req(boundary, payload)
	r.IdempotencyKey = key
	return r
}

func TestK5_D10_replay(t *testing.T) {
	w := newWorld(t, "")
	var n atomic.Int64
	first, err := w.k.Cross(t.Context(), w.keyed("test/cost", `{"a":1,"b":2}`, "k1"), counted(&n))
	if err != nil || first.Replayed {
		t.Fatalf("%+v %v", first, err)
	}
	for i, payload := range []string{`{"a":1,"b":2}`, `{"b":2,"a":1}`, " { \"a\":1 ,\n\"b\":2}"} {
		again, err := w.k.Cross(t.Context(), w.keyed("test/cost", payload, "k1"), counted(&n))
		if err != nil || !again.Replayed || again.Crossing == first.Crossing || string(again.Output.Body) != `{"act":1}` || again.Verdict != holdfast.Allow {
			t.Fatalf("%d: %+v %v", i, again, err)
		}
	}
	if n.Load() != 1 || w.spent() != 10 {
		t.Fatalf("acted %d times, %d tokens are used", n.Load(), w.spent())
	}
	es := w.entries(holdfast.Local)
	if len(es) != 4 {
		t.Fatalf("%d entries", len(es))
	}
	for _, e := range es[1:] {
		if e.Outcome != ledger.Replayed || e.ReplayOf != first.Crossing || len(e.Uses) != 0 || e.BeginSeq != nil {
			t.Fatalf("%+v", e)
		}
	}
}

func TestK5_D10_mismatch(t *testing.T) {
	w := newWorld(t, "")
	w.passes(w.keyed("test/low", `{"a":1}`, "k1"))
	e := w.refused(w.keyed("test/low", `{"a":2}`, "k1"), holdfast.K5, holdfast.KindMismatch)
	if e.Rule == "" {
		t.Fatalf("%+v", e)
	}
	w.passes(w.keyed("test/low", `{"a":2}`, "k2"))
}

// Two 64-bit integers share one RFC 8785 form and so one key; the exact hash
// tells them apart, and no result is given back for the other.
func TestK5_D10_integers_beyond_doubles(t *testing.T) {
	w := newWorld(t, "")
	const a, b = `{"id":9007199254740993}`, `{"id":9007199254740992}`
	var n atomic.Int64
	first, err := w.k.Cross(t.Context(), w.keyed("test/low", a, "k1"), counted(&n))
	if err != nil {
		t.Fatal(err)
	}
	w.refused(w.keyed("test/low", b, "k1"), holdfast.K5, holdfast.KindMismatch)
	second, err := w.k.Cross(t.Context(), w.keyed("test/low", b, "k2"), counted(&n))
	if err != nil || first.Key != second.Key || first.Exact == second.Exact || n.Load() != 2 {
		t.Fatalf("%v: keys %s %s, exact %s %s", err, first.Key, second.Key, first.Exact, second.Exact)
	}
	// Where the payload is the key, the other integer is refused, not replayed.
	if out, err := w.k.Cross(t.Context(), w.req("test/replay", a), counted(&n)); err != nil || out.Replayed {
		t.Fatal(err)
	}
	w.refused(w.req("test/replay", b), holdfast.K5, holdfast.KindMismatch)
	// A hold for one is no approval of the other.
	h := w.held(w.req("test/high", a))
	w.approve(h.Review)
	if other := w.held(w.req("test/high", b)); other.Review == h.Review {
		t.Fatal("two integers share a review")
	}
}

func TestK5_D10_payload_as_key(t *testing.T) {
	w := newWorld(t, "")
	var n atomic.Int64
	for i := range 3 {
		out, err := w.k.Cross(t.Context(), w.req("test/replay", `{"x":1}`), counted(&n))
		if err != nil || out.Replayed != (i > 0) {
			t.Fatalf("%d: %+v %v", i, out, err)
		}
	}
	w.passes(w.req("test/low", `{"x":1}`))
	if out := w.passes(w.req("test/low", `{"x":1}`)); out.Replayed {
		t.Fatal("replayed without a key")
	}
	if n.Load() != 1 || w.spent() != 10 {
		t.Fatalf("%d acts, %d tokens", n.Load(), w.spent())
	}
}

// Two at once with one key: one acts, the other is told so or gets the result.
func TestK5_D10_race_one_acts(t *testing.T) {
	w := newWorld(t, "")
	var n, done, busy atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		req := w.keyed("test/low", `{"a":1}`, "k1")
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, err := w.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
				time.Sleep(5 * time.Millisecond)
				return counted(&n)(ctx)
			})
			switch holdfast.KindOf(err) {
			case "":
				done.Add(1)
			case holdfast.KindConflict:
				busy.Add(1)
			default:
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if n.Load() != 1 || done.Load() < 1 || done.Load()+busy.Load() != 16 {
		t.Fatalf("%d acts, %d done, %d told to wait", n.Load(), done.Load(), busy.Load())
	}
	if es := w.entries(holdfast.Local); len(es) != 16 {
		t.Fatalf("%d entries", len(es))
	}
}

func TestK5_D10_after_a_day_it_acts_again(t *testing.T) {
	w := newWorld(t, "")
	var n atomic.Int64
	cross := func() bool {
		out, err := w.k.Cross(t.Context(), w.keyed("test/low", `{"a":1}`, "k1"), counted(&n))
		if err != nil {
			t.Fatal(err)
		}
		return out.Replayed
	}
	cross()
	w.advance(24*time.Hour - 10*time.Second)
	if !cross() {
		t.Fatal("not replayed within a day")
	}
	w.advance(11 * time.Second)
	if cross() || n.Load() != 2 {
		t.Fatal("replayed after a day")
	}
	// The sweep erases what is over.
	w.advance(25 * time.Hour)
	if _, err := w.k.Sweep(); err != nil {
		t.Fatal(err)
	}
	if rows := w.count("SELECT count(*) FROM replay"); rows != 0 {
		t.Fatalf("%d sealed results are kept", rows)
	}
}

// Another tenant, boundary, agent, principal or key is another operation.
func TestK5_D10_scope(t *testing.T) {
	who := holdfast.Identity{Tenant: "org", Principal: "user:a", Agent: "a", Session: "s", TokenID: "j", Roles: []string{"agent"}, Expires: time.Now().Add(time.Hour)}
	w := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Verifier = verifierFunc(func() holdfast.Identity { return who }) })
	var n atomic.Int64
	cross := func(boundary, key string, replayed bool) {
		t.Helper()
		out, err := w.k.Cross(t.Context(), w.keyed(boundary, `{"a":1}`, key), counted(&n))
		if err != nil || out.Replayed != replayed {
			t.Fatalf("replayed %v, want %v: %v", out.Replayed, replayed, err)
		}
	}
	cross("test/low", "k", false)
	cross("test/medium", "k", false)
	cross("test/low", "K", false)
	cross("test/low", "k ", false)
	who.Agent = "b"
	cross("test/low", "k", false)
	who.Agent, who.Tenant = "a", "org2"
	cross("test/low", "k", false)
	who.Tenant, who.Session = "org", "s2"
	cross("test/low", "k", true) // another session of the same agent is a retry
	who.Principal = "user:b"
	cross("test/low", "k", false) // another principal's agent of that name is none
	// Names that only look alike when put together.
	who.Tenant, who.Agent = "orgtest", "a"
	cross("test/low", "k", false)
}

// A failed act is settled too: its retry is told of the same failure, and does
// nothing. One that never started frees its key.
func TestK5_D10_failures(t *testing.T) {
	w := newWorld(t, "")
	acts := 0
	fail := func(context.Context) (holdfast.Output, error) {
		acts++
		return holdfast.Output{}, &holdfast.Error{Kind: holdfast.KindOperation, Why: "the far side said no", Hint: "ask it"}
	}
	for i := range 2 {
		out, err := w.k.Cross(t.Context(), w.keyed("test/cost", `{}`, "k1"), fail)
		wants(t, err, holdfast.KindOperation)
		if out.Replayed != (i == 1) || !strings.Contains(err.Error(), "the far side said no") || out.Output != nil {
			t.Fatalf("%+v %v", out, err)
		}
	}
	if acts != 1 {
		t.Fatalf("%d acts", acts)
	}
	w.refused(w.keyed("test/schema", `{}`, "k2"), holdfast.K1, holdfast.KindValidation)
	w.passes(w.keyed("test/schema", `{"n":1}`, "k2"))
}

// After a crash between begin and entry nobody knows: the key gives nothing
// back and does not act again.
func TestK5_D10_unsettled(t *testing.T) {
	w := newWorld(t, "")
	_, _ = w.k.Cross(t.Context(), w.keyed("test/low", `{}`, "k1"), func(context.Context) (holdfast.Output, error) {
		w.mu.Lock()
		w.fault = func(string) error { return errGone }
		w.mu.Unlock()
		return holdfast.Output{}, nil
	})
	w.store.Close()
	again := reopen(t, w.dir, "")
	again.refused(again.keyed("test/low", `{}`, "k1"), holdfast.K5, holdfast.KindConflict)
	again.passes(again.keyed("test/low", `{}`, "k2"))
}

func TestK5_replay_asks_every_gate_again(t *testing.T) {
	w := newWorld(t, "")
	tok, id := w.minted("alice")
	req := w.keyed("test/cost", `{}`, "k1")
	req.Token = tok
	w.passes(req)
	// A used-up budget does not stop a replay, which is charged nothing.
	for range 5 {
		w.passes(w.req("test/cost", `{}`))
	}
	w.refused(w.req("test/cost", `{}`), holdfast.K3, holdfast.KindBounds)
	if out := w.passes(req); !out.Replayed {
		t.Fatal("not replayed")
	}
	if err := w.k.Revoke(holdfast.Local, id.TokenID, "user:carol", ""); err != nil {
		t.Fatal(err)
	}
	w.refused(req, holdfast.K2, holdfast.KindRevokedToken)
	if _, err := w.k.Halt("user:carol", "stop"); err != nil {
		t.Fatal(err)
	}
	w.refused(w.keyed("test/cost", `{}`, "k1"), holdfast.GateHalt, holdfast.KindHalted)
}

func TestK5_keys(t *testing.T) {
	w := newWorld(t, "")
	for name, key := range map[string]string{"K5_long": strings.Repeat("k", 256), "K5_newline": "a\nb", "K5_nul": "a\x00", "K5_invalid_utf8": "\xff"} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.refused(w.keyed("test/low", `{}`, key), holdfast.K5, holdfast.KindValue)
		})
	}
	w.t = t
	w.passes(w.keyed("test/low", `{}`, strings.Repeat("k", 255)))
}

// What is no JSON is refused before it could have a key (K1 says so first),
// and K5's own opinion names it.
func TestK5_AC6_AC7_FP1_FP4_at_the_gate(t *testing.T) {
	w := newWorld(t, "")
	for payload, kind := range map[string]holdfast.Kind{"not json": holdfast.KindValue, "": holdfast.KindValue, `{"a":1,"a":2}`: holdfast.KindCanonicalize, `[1e999]`: holdfast.KindCanonicalize, `"\ud800"`: holdfast.KindCanonicalize} {
		out, _ := w.k.Explain(t.Context(), w.req("test/low", payload))
		if op := out.Opinions[4]; op.Verdict != holdfast.Deny || op.Kind != kind || op.State != "NOT_CANONICAL" || out.Key != "" {
			t.Errorf("%q: %+v", payload, op)
		}
	}
	out := w.passes(w.req("test/low", `{"a":1}`))
	hexes := regexp.MustCompile(`^[a-f0-9]{64}$`)
	if e := w.entries(holdfast.Local)[0]; !hexes.MatchString(out.Key) || *e.Key != out.Key || e.ExactHash != out.Exact || !hexes.MatchString(out.Exact) {
		t.Fatalf("%+v", out)
	}
}

// Criteria 1 to 3 over random orderings and spacings, at the crossing.
func TestK5_AC1_AC2_AC3_INV1_INV4_property(t *testing.T) {
	w := newWorld(t, "", limits(tokens(budget.Tenant, 1000)))
	r := random(5)
	var key, exact string
	for range 20 {
		parts := []string{`"a":1`, `"b":[1,2,{"c":null}]`, `"é":"x"`}
		r.Shuffle(3, func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
		space := strings.Repeat(" ", r.IntN(3)) + strings.Repeat("\n", r.IntN(2))
		out := w.passes(w.req("test/low", "{"+space+strings.Join(parts, ","+space)+"}"))
		if key == "" {
			key, exact = out.Key, out.Exact
		}
		if out.Key != key || out.Exact != exact {
			t.Fatalf("%s, then %s", key, out.Key)
		}
	}
}

func TestK5_results_unreadable(t *testing.T) {
	b := &broken{}
	w := newWorld(t, "", breakable(b))
	w.passes(w.keyed("test/low", `{}`, "k1"))
	b.fail("Replay")
	w.refused(w.keyed("test/low", `{}`, "k1"), holdfast.K5, holdfast.KindUsageTracking)
	b.fail("")
	if out := w.passes(w.keyed("test/low", `{}`, "k1")); !out.Replayed {
		t.Fatal("not replayed")
	}
}
