package kernel_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// between is a store that does something once, right after an update.
type between struct {
	kernel.Store
	then atomic.Pointer[func()]
}

func (s *between) Update(ctx context.Context, fn func(kernel.Tx) error) error {
	err := s.Store.Update(ctx, fn)
	if f := s.then.Swap(nil); f != nil {
		(*f)()
	}
	return err
}

func interposed(s *between) option {
	return func(c *kernel.Config, _ *world) { s.Store = c.Store; c.Store = s }
}

// never is a hand that must not be called.
func never(t *testing.T) kernel.Act {
	return func(ctx context.Context) (holdfast.Output, error) {
		t.Errorf("the hand acts; its context: %v", ctx.Err())
		return holdfast.Output{}, nil
	}
}

// unstarted wants the last entry to be of that outcome and kind, of a begin,
// with everything that was reserved given back.
func (w *world) unstarted(outcome ledger.Outcome, kind holdfast.Kind) {
	w.t.Helper()
	es := w.entries(holdfast.Local)
	e := es[len(es)-1]
	if e.Outcome != outcome || e.ErrorKind != kind || e.BeginSeq == nil {
		w.t.Errorf("the entry says %s, %s", e.Outcome, e.ErrorKind)
	}
	for _, u := range e.Uses {
		if u.Used == nil || *u.Used != 0 {
			w.t.Errorf("%+v was not given back", u)
		}
	}
}

func TestD11_no_hand_starts_after_pause_and_revoke(t *testing.T) {
	for _, tc := range []struct {
		name string
		kind holdfast.Kind
		stop func(w *world, token string) error
	}{
		{"pause", holdfast.KindPaused, func(w *world, _ string) error {
			_, err := w.k.Pause(holdfast.Local, "alice", "bob", "stop it")
			return err
		}},
		{"revoke", holdfast.KindRevokedToken, func(w *world, token string) error {
			return w.k.Revoke(holdfast.Local, token, "bob", "leaked")
		}},
		{"halt", holdfast.KindHalted, func(w *world, _ string) error {
			_, err := w.k.Halt("bob", "stop")
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &between{}
			w := newWorld(t, "", interposed(s))
			w.passes(w.req("test/low", `{}`))
			id := holdfast.Identity{Tenant: holdfast.Local, Principal: "user:alice", Roles: []string{"agent"}, Agent: "alice", Session: "alice-s1"}
			tok, minted, err := w.minter.Mint(id, time.Minute, w.now())
			if err != nil {
				t.Fatal(err)
			}
			stop := func() {
				if err := tc.stop(w, minted.TokenID); err != nil {
					t.Error(err)
				}
			}
			s.then.Store(&stop)
			_, err = w.k.Cross(t.Context(), holdfast.Request{Boundary: "test/cost", Payload: []byte(`{}`), Token: tok}, never(t))
			wants(t, err, tc.kind)
			w.unstarted(ledger.Halted, tc.kind)
			if n := len(w.k.Flights()); n != 0 {
				t.Errorf("%d crossings are still under way", n)
			}
		})
	}
}

func TestD8_revoking_cuts_what_is_under_way(t *testing.T) {
	w := newWorld(t, "")
	id := holdfast.Identity{Tenant: holdfast.Local, Principal: "user:alice", Roles: []string{"agent"}, Agent: "alice", Session: "alice-s1"}
	enter := func() (*kernel.Crossing, string) {
		tok, minted, err := w.minter.Mint(id, time.Minute, w.now())
		if err != nil {
			t.Fatal(err)
		}
		x, _, err := w.k.Enter(t.Context(), holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`), Token: tok}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return x, minted.TokenID
	}
	one, jti := enter()
	other, _ := enter()
	if err := w.k.Revoke(holdfast.Local, jti, "bob", "leaked"); err != nil {
		t.Fatal(err)
	}
	wants(t, context.Cause(one.Context()), holdfast.KindRevokedToken)
	if err := other.Context().Err(); err != nil {
		t.Errorf("another token's crossing was cut: %v", err)
	}
	if _, err := other.Exit(holdfast.Output{}, nil); err != nil {
		t.Error(err)
	}
}

// Two requests that race for one approval have one crossing id.
func TestD34_a_halt_finds_who_won_an_approval(t *testing.T) {
	s := &between{}
	w := newWorld(t, "", interposed(s))
	h := w.held(w.req("test/high", `{}`))
	w.approve(h.Review)
	second := func() {
		if _, err := w.cross(w.req("test/high", `{}`)); err == nil {
			t.Error("one approval was used twice")
		}
	}
	s.then.Store(&second)
	_, err := w.k.Cross(t.Context(), w.req("test/high", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		if n, err := w.k.Halt("bob", "stop"); n != 1 || err != nil || ctx.Err() == nil {
			t.Errorf("cut %d, %v; the hand's context: %v", n, err, ctx.Err())
		}
		return holdfast.Output{}, ctx.Err()
	})
	wants(t, err, holdfast.KindHalted)
}

func TestD6a_no_hand_starts_on_an_ended_context(t *testing.T) {
	w := newWorld(t, "")
	req := w.req("test/cost", `{}`)
	req.Deadline = time.Now().Add(-time.Hour)
	_, err := w.k.Cross(t.Context(), req, never(t))
	wants(t, err, holdfast.KindTimeout)
	w.unstarted(ledger.Canceled, holdfast.KindTimeout)

	s := &between{}
	w = newWorld(t, "", interposed(s))
	w.passes(w.req("test/low", `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	stop := func() { cancel() }
	s.then.Store(&stop)
	_, err = w.k.Cross(ctx, w.req("test/cost", `{}`), never(t))
	wants(t, err, holdfast.KindCanceled)
	w.unstarted(ledger.Canceled, holdfast.KindCanceled)
}

func TestK5_D10_a_key_is_taken_as_long_as_its_act(t *testing.T) {
	w := newWorld(t, "", policy(func(p *kernel.Policy) { p.ReplayFor = time.Minute }))
	var n atomic.Int64
	req := w.keyed("test/low", `{"pay":1}`, "k1")
	_, err := w.k.Cross(t.Context(), req, func(ctx context.Context) (holdfast.Output, error) {
		w.advance(2 * time.Minute)
		_, err := w.k.Cross(kernel.Child(ctx), w.keyed("test/low", `{"pay":1}`, "k1"), counted(&n))
		if holdfast.KindOf(err) != holdfast.KindConflict {
			t.Errorf("the key was free while its act went on: %v", err)
		}
		return counted(&n)(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	// What settled late is kept from then on.
	out, err := w.k.Cross(t.Context(), w.keyed("test/low", `{"pay":1}`, "k1"), counted(&n))
	if err != nil || !out.Replayed || n.Load() != 1 {
		t.Errorf("%d acts under one key; %v", n.Load(), err)
	}
}

func TestK5_D10_a_result_too_large_to_give_back(t *testing.T) {
	w := newWorld(t, "")
	large := holdfast.Output{Body: []byte(`"` + strings.Repeat("a", 13<<20) + `"`)}
	out, err := w.k.Cross(t.Context(), w.keyed("test/cost", `{}`, "k"), func(context.Context) (holdfast.Output, error) { return large, nil })
	if err != nil || out.Output == nil {
		t.Fatalf("the act was done, and its caller learns: %v", err)
	}
	out, err = w.k.Cross(t.Context(), w.keyed("test/cost", `{}`, "k"), never(t))
	wants(t, err, holdfast.KindPayloadTooLarge)
	es := w.entries(holdfast.Local)
	if !out.Replayed || len(es) != 2 || es[0].Outcome != ledger.Done || es[1].Outcome != ledger.Replayed {
		t.Errorf("%d entries", len(es))
	}
}

func TestK6_D13_large_outputs_are_redacted_whole(t *testing.T) {
	w := newWorld(t, "")
	for _, pad := range []int{10, 70_000, 1 << 20} {
		body := fmt.Appendf(nil, `{"password":["hunter2 horse"],"secret":{"value":"tr0ub4dor and 3"},"pad":%q}`, strings.Repeat("x", pad))
		out, err := w.k.Cross(t.Context(), w.req("test/low", fmt.Sprintf(`{"p":%d}`, pad)), func(context.Context) (holdfast.Output, error) {
			return holdfast.Output{Body: body}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.leaves(holdfast.Local, func(s ledger.Stored) {
			if s.Crossing != out.Crossing || s.Kind != ledger.KindEntry {
				return
			}
			kept := string(s.Part[ledger.SaltSize:])
			if strings.Contains(kept, "hunter2") || strings.Contains(kept, "tr0ub4dor") {
				t.Errorf("pad %d: the ledger keeps %.120q", pad, kept)
			}
			if pad > 10 && !strings.Contains(kept, fmt.Sprintf("(%d bytes, sha256 ", len(body))) {
				t.Errorf("pad %d: the size is not kept: %.120q", pad, kept)
			}
			if sum := sha256.Sum256(body); pad < 1<<20 && strings.Contains(kept, hex.EncodeToString(sum[:])) {
				t.Errorf("pad %d: what was masked can be guessed by its hash: %.120q", pad, kept)
			}
			if whole := pad < 1<<20; whole != strings.Contains(kept, `"password"`) {
				t.Errorf("pad %d: the ledger keeps %.120q", pad, kept)
			}
		})
	}
	for i, e := range w.entries(holdfast.Local) {
		if seen := e.ContainsPII != nil; seen != (i < 2) || (seen && !*e.ContainsPII) {
			t.Errorf("entry %d says %v of what it holds", i, e.ContainsPII)
		}
	}
}

func TestINV7_a_refused_child_is_counted_down_once(t *testing.T) {
	s := &between{}
	w := newWorld(t, "", interposed(s))
	release := make(chan struct{})
	var ended atomic.Bool
	_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		if err := kernel.Go(ctx, func(context.Context) {
			<-release
			time.Sleep(100 * time.Millisecond)
			ended.Store(true)
		}); err != nil {
			t.Error(err)
		}
		stop := func() {
			if err := w.latch.Set("bob", "stop", w.now()); err != nil {
				t.Error(err)
			}
		}
		s.then.Store(&stop)
		_, err := w.k.Cross(kernel.Child(ctx), w.req("test/low", `{}`), never(t))
		if holdfast.KindOf(err) != holdfast.KindHalted {
			t.Errorf("the child was not halted: %v", err)
		}
		close(release)
		return holdfast.Output{}, w.latch.Clear()
	})
	if err != nil {
		t.Error(err)
	}
	if !ended.Load() {
		t.Error("the crossing left while its task was running")
	}
}

func TestK4_traces_hold_no_secret(t *testing.T) {
	mem := tracetest.NewInMemoryExporter()
	w := newWorld(t, "", func(c *kernel.Config, _ *world) {
		c.Tracer = trace.NewTracerProvider(trace.WithSyncer(mem)).Tracer("t")
	})
	secret := "ghp_" + strings.Repeat("Ab1", 12)
	w.refused(w.req("mcp/x/"+secret+strings.Repeat("z", 100_000), `{}`), holdfast.K1, holdfast.KindSchemaNotFound)
	spans := mem.GetSpans()
	if len(spans) == 0 {
		t.Fatal("nothing was traced")
	}
	for _, s := range spans {
		if told := fmt.Sprint(s.Name, s.Attributes); strings.Contains(told, secret) || len(told) > 4096 {
			t.Errorf("a span of %d bytes says %.200s", len(told), told)
		}
	}
}

func TestK2_tokens_are_judged_by_the_clock(t *testing.T) {
	w := newWorld(t, "")
	w.advance(time.Hour)
	w.passes(w.req("test/low", `{}`))
	w.advance(-time.Hour)
	w.passes(w.req("test/low", `{}`))
	es := w.entries(holdfast.Local)
	if !es[1].Timestamp.After(es[0].CreatedAt) {
		t.Errorf("records go back in time: %s after %s", es[1].Timestamp, es[0].CreatedAt)
	}
}

func TestD5_a_flood_is_forgotten_once_it_is_written(t *testing.T) {
	b := &broken{}
	w := newWorld(t, "", breakable(b))
	tok := w.who("mallory")
	for i := range 650 {
		_, err := w.cross(holdfast.Request{Boundary: "nowhere", Payload: fmt.Appendf(nil, `%d`, i), Token: tok})
		if err == nil {
			t.Fatal("crossed a boundary that no contract lists")
		}
	}
	w.advance(2 * time.Minute)
	b.update.Store(true)
	if _, err := w.k.Sweep(); err == nil {
		t.Fatal("a sweep that could not write says nothing")
	}
	b.update.Store(false)
	for range 2 {
		if _, err := w.k.Sweep(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.events(holdfast.Local, "denials_summarised")); n != 1 {
		t.Errorf("%d summaries of 50 unrecorded denials", n)
	}
}

// choosy is a store in which one review cannot be closed.
type choosy struct {
	kernel.Store
	review atomic.Pointer[string]
}

type choosyTx struct {
	kernel.Tx
	review string
}

func (s *choosy) Update(ctx context.Context, fn func(kernel.Tx) error) error {
	id := s.review.Load()
	if id == nil {
		return s.Store.Update(ctx, fn)
	}
	return s.Store.Update(ctx, func(tx kernel.Tx) error { return fn(choosyTx{tx, *id}) })
}

func (tx choosyTx) Review(id string) (review.Review, error) {
	if id == tx.review {
		return review.Review{}, errGone
	}
	return tx.Tx.Review(id)
}

func TestD6_recovery_goes_on_past_a_review_it_cannot_close(t *testing.T) {
	s := &choosy{}
	w := newWorld(t, "", func(c *kernel.Config, _ *world) { s.Store = c.Store; c.Store = s })
	var ids []string
	for i := range 5 {
		ids = append(ids, w.held(w.req("test/high", fmt.Sprintf(`{"n":%d}`, i))).Review)
	}
	w.advance(25 * time.Hour)
	s.review.Store(&ids[2])
	r, err := w.k.Recover(0)
	if err != nil || r.Expired != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := w.k.Sweep(); !errors.Is(err, errGone) {
		t.Errorf("a sweep that left something undone says %v", err)
	}
	s.review.Store(nil)
	if n, err := w.k.Sweep(); n != 1 || err != nil {
		t.Errorf("the next sweep closed %d, %v", n, err)
	}
}
