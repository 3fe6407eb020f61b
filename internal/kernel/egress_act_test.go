package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// out is how much of a resource the tenant has used.
func (w *world) out(r holdfast.Resource) int64 {
	w.t.Helper()
	return w.used(w.plan(r, 1)[0])
}

// posted is a request that reserves n bytes.
func (w *world) posted(n int64) holdfast.Request {
	req := w.get("api.example.com")
	req.ReadsOnly, req.Consumes = false, map[holdfast.Resource]int64{holdfast.BytesOut: n}
	return req
}

func answered(body string, bytes int64, err error) kernel.Act {
	return func(context.Context) (holdfast.Output, error) {
		out := holdfast.Output{Body: []byte(body)}
		if bytes >= 0 {
			out.Used = map[holdfast.Resource]int64{holdfast.BytesOut: bytes}
		}
		return out, err
	}
}

// What upstream did to a request is the entry's: its kind, what the hand says of
// it, and what was measured. Only what provably never left is given back, and a
// rate never is (D9).
func TestEgress_Error_of_the_act(t *testing.T) {
	letter := func(kind holdfast.Kind, inner error) error {
		return &holdfast.Error{Kind: kind, Why: "the upstream answered 503", Hint: "ask later", Err: inner}
	}
	cases := []struct {
		name      string
		body      string
		bytes     int64 // measured; below zero says nothing
		err       error
		kind      holdfast.Kind
		used      int64
		unstarted bool
		event     string
	}{
		{"forward", `{"status":503}`, 120, letter(holdfast.KindForward, nil), holdfast.KindForward, 120, false, "trace.egress_forward_error"},
		{"forward_cut", `{"status":200}`, 120, letter(holdfast.KindForward, context.Canceled), holdfast.KindForward, 120, false, "trace.egress_forward_error"},
		{"timeout", `{"sent":120}`, 120, letter(holdfast.KindTimeout, nil), holdfast.KindTimeout, 120, false, "trace.act_timeout"},
		{"timeout_of_a_deadline", `{"sent":120}`, 120, letter(holdfast.KindTimeout, context.DeadlineExceeded), holdfast.KindTimeout, 120, false, "trace.act_timeout"},
		{"forward_of_a_deadline", `{"sent":120}`, 120, letter(holdfast.KindForward, context.DeadlineExceeded), holdfast.KindForward, 120, false, "trace.egress_forward_error"},
		{"unmeasured", "", -1, letter(holdfast.KindForward, nil), holdfast.KindForward, 400, false, "trace.egress_forward_error"},
		{"measured_below_zero", "", -7, letter(holdfast.KindForward, nil), holdfast.KindForward, 400, false, "trace.egress_forward_error"},
		{"nothing_left", "", -1, letter(holdfast.KindForward, fmt.Errorf("dial: %w", holdfast.ErrNotStarted)), holdfast.KindForward, 0, true, "trace.egress_forward_error"},
		{"said_not_to_have_left_and_did", "", 30, letter(holdfast.KindForward, holdfast.ErrNotStarted), holdfast.KindForward, 30, false, "trace.egress_forward_error"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			log := &buffer{}
			w := newWorld(t, "", outward(), logged(log))
			out, err := w.k.Cross(t.Context(), w.posted(400), answered(c.body, c.bytes, c.err))
			wants(t, err, c.kind)
			var e *holdfast.Error
			if !errors.As(err, &e) || e.Hint != "ask later" || out.Output != nil || out.State != holdfast.Idle && out.State != holdfast.Faulted {
				t.Errorf("%+v, %+v", e, out)
			}
			entry := w.last()
			if entry.State != holdfast.Faulted || entry.ErrorKind != c.kind || entry.Outcome != ledger.Failed || entry.BeginSeq == nil || entry.Why != "the upstream answered 503" {
				t.Errorf("%+v", entry)
			}
			requests := int64(1)
			if c.unstarted {
				requests = 0
			}
			if w.out(holdfast.BytesOut) != c.used || w.out(holdfast.HTTPRequests) != requests {
				t.Errorf("%d bytes and %d requests are used", w.out(holdfast.BytesOut), w.out(holdfast.HTTPRequests))
			}
			if ps := w.parts(); c.body != "" && ps[len(ps)-1] != c.body {
				t.Errorf("kept as %q", ps)
			}
			lines := 0
			for _, l := range log.lines(t) {
				if l.Trace == c.event && l.Level == "WARN" && l.Crossing == out.Crossing && l.Kind == string(c.kind) && l.Msg == "failed" && l.By == "act" && l.Gate == "" {
					lines++
				}
			}
			if lines != 1 {
				t.Errorf("%d lines with %s: %s", lines, c.event, log)
			}
			w.passes(w.posted(1))
			w.passes(w.posted(1))
			w.refused(w.posted(1), holdfast.K3, holdfast.KindRateLimit) // the third of three
		})
	}
}

// unrated lifts the rate, so that the budgets are what is left.
func unrated(c *kernel.Config, w *world) {
	p := *c.Policy
	p.Rates = nil
	c.Policy, w.policy = &p, &p
}

// Bytes are reserved at an upper bound and settled by measure: what would not fit
// does not begin, what was not used is there for the next, and what goes beyond
// the bound is counted all the same.
func TestEgress_D24_bytes_are_settled_by_measure(t *testing.T) {
	w := newWorld(t, "", outward(), unrated)
	send := func(bound, measured int64) error {
		_, err := w.k.Cross(t.Context(), w.posted(bound), answered("", measured, nil))
		return err
	}
	during := int64(0)
	if _, err := w.k.Cross(t.Context(), w.posted(900), func(context.Context) (holdfast.Output, error) {
		during = w.out(holdfast.BytesOut)
		return holdfast.Output{Used: map[holdfast.Resource]int64{holdfast.BytesOut: 100}}, nil
	}); err != nil || during != 900 || w.out(holdfast.BytesOut) != 100 {
		t.Fatalf("%v; %d reserved, %d used of 100", err, during, w.out(holdfast.BytesOut))
	}
	for _, c := range []struct {
		bound, measured, used int64
		kind                  holdfast.Kind
	}{
		{901, 1, 100, holdfast.KindBudgetExceeded},
		{900, 0, 100, ""},
		{900, 400, 500, ""},
		{10, 450, 950, ""}, // more than was said
		{50, -1, 1000, ""}, // not measured: what was reserved
		{1, 0, 1000, holdfast.KindBudgetExceeded},
	} {
		err := send(c.bound, c.measured)
		wants(t, err, c.kind)
		if got := w.out(holdfast.BytesOut); got != c.used {
			t.Errorf("bound %d, measured %d: %d are used, want %d", c.bound, c.measured, got, c.used)
		}
	}
	if u := w.entries(holdfast.Local)[4].Uses; len(u) != 2 || u[0].Draw.Amount != 10 || *u[0].Used != 450 {
		t.Errorf("the entry says %+v", u)
	}
}

// A stream is cut at once by halt, by its agent's pause and by its token's
// revocation; what had left until then is what it used. One that does not obey is
// left behind and settled at its bound.
func TestEgress_D34_a_stream_is_cut(t *testing.T) {
	stops := map[string]struct {
		kind holdfast.Kind
		stop func(*world, string) error
	}{
		"halt":   {holdfast.KindHalted, func(w *world, _ string) error { _, err := w.k.Halt("bob", "smoke"); return err }},
		"pause":  {holdfast.KindPaused, func(w *world, _ string) error { _, err := w.k.Pause(holdfast.Local, "alice", "bob", "x"); return err }},
		"revoke": {holdfast.KindRevokedToken, func(w *world, jti string) error { return w.k.Revoke(holdfast.Local, jti, "bob", "x") }},
	}
	for name, s := range stops {
		for _, deaf := range []bool{false, true} {
			if deaf && name != "halt" {
				continue // it is left behind after five seconds
			}
			t.Run(fmt.Sprintf("%s_deaf_%v", name, deaf), func(t *testing.T) {
				w := newWorld(t, "", outward())
				req := w.posted(400)
				tok, id := w.minted("alice")
				req.Token = tok
				streaming, heard, release := make(chan struct{}), make(chan time.Duration, 1), make(chan struct{})
				var at time.Time
				end := make(chan error, 1)
				go func() {
					_, err := w.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
						close(streaming)
						if deaf {
							<-release
						}
						<-ctx.Done()
						heard <- time.Since(at)
						return holdfast.Output{Body: []byte(`{"status":200,"sent":77}`), Used: map[holdfast.Resource]int64{holdfast.BytesOut: 77}},
							&holdfast.Error{Kind: holdfast.KindForward, Why: "cut", Err: ctx.Err()}
					})
					end <- err
				}()
				<-streaming
				at = time.Now()
				if err := s.stop(w, id.TokenID); err != nil {
					t.Fatal(err)
				}
				wants(t, <-end, s.kind)
				close(release)
				if took := <-heard; took > 2*time.Second && !deaf {
					t.Errorf("the stream heard of it after %v", took)
				}
				want := int64(77)
				if deaf {
					want = 400
				}
				e := w.last()
				if e.Outcome != ledger.Halted || e.ErrorKind != s.kind || w.out(holdfast.BytesOut) != want {
					t.Errorf("%s %s, %d bytes", e.Outcome, e.ErrorKind, w.out(holdfast.BytesOut))
				}
				if name == "halt" {
					if err := w.k.Resume(w.sign(operator.Statement{Act: operator.Resume})); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// The fail-closed table of budgets and rates: whatever is missing, broken or
// backwards refuses, or keeps what was taken; nothing of it fails open (D3, D9).
func TestEgress_D3_budgets_fail_closed(t *testing.T) {
	fails := map[string]struct {
		do   func(*broken)
		gate holdfast.Gate
		kind holdfast.Kind
	}{
		"the_store_cannot_be_read":    {func(b *broken) { b.view.Store(true) }, holdfast.K2, holdfast.KindRevocationCache},
		"the_counter_cannot_be_read":  {func(b *broken) { b.fail("Counter") }, holdfast.K3, holdfast.KindUsageTracking},
		"the_rate_cannot_be_read":     {func(b *broken) { b.fail("PeekRate") }, holdfast.K3, holdfast.KindUsageTracking},
		"the_draw_cannot_be_made":     {func(b *broken) { b.fail("Draw") }, holdfast.K6, holdfast.KindLogging},
		"the_store_cannot_be_written": {func(b *broken) { b.update.Store(true) }, holdfast.K6, holdfast.KindLogging},
	}
	for name, c := range fails {
		t.Run(name, func(t *testing.T) {
			b := &broken{}
			w := newWorld(t, "", outward(), breakable(b))
			w.passes(w.posted(1))
			c.do(b)
			w.refused(w.posted(1), c.gate, c.kind)
			b.view.Store(false)
			b.fail("nothing")
			b.update.Store(false)
			if got := w.out(holdfast.HTTPRequests); got != 1 {
				t.Errorf("%d requests are counted", got)
			}
			w.passes(w.posted(1))
		})
	}
	t.Run("an_unknown_unit", func(t *testing.T) {
		w := newWorld(t, "", outward())
		req := w.posted(1)
		req.Consumes["pages"] = 1
		w.refused(req, holdfast.K3, holdfast.KindBudgetNotFound)
	})
	t.Run("the_clock_goes_back", func(t *testing.T) {
		for _, back := range []time.Duration{time.Second, time.Minute, time.Hour, 50 * time.Hour} {
			w := newWorld(t, "", outward(), unrated)
			for range 3 {
				w.passes(w.posted(333))
			}
			w.advance(-back)
			w.refused(w.posted(2), holdfast.K3, holdfast.KindBudgetExceeded)

			w = newWorld(t, "", outward())
			for range 3 {
				w.passes(w.posted(1))
			}
			w.advance(-back)
			w.refused(w.posted(1), holdfast.K3, holdfast.KindRateLimit)
		}
	})
	t.Run("settling_fails", func(t *testing.T) {
		w := newWorld(t, "", outward())
		_, err := w.k.Cross(t.Context(), w.posted(400), func(context.Context) (holdfast.Output, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.fault = func(string) error { return errGone }
			return holdfast.Output{Used: map[holdfast.Resource]int64{holdfast.BytesOut: 1}}, nil
		})
		wants(t, err, holdfast.KindLogging)
		w.refused(w.posted(1), holdfast.K6, holdfast.KindLogging)
		w.store.Close()
		again := reopen(t, w.dir, "", outward())
		if got := again.out(holdfast.BytesOut); got != 400 {
			t.Errorf("%d bytes are used after the restart, 400 were reserved", got)
		}
		if e := again.last(); e.Outcome != ledger.Unknown || !strings.Contains(string(e.ErrorKind), "Unknown") {
			t.Errorf("%+v", e)
		}
	})
	t.Run("the_usage_cannot_be_told", func(t *testing.T) {
		w := newWorld(t, "", outward())
		req := w.get("api.example.com")
		req.Consumes = map[holdfast.Resource]int64{holdfast.LLMTokens: 250}
		w.passes(req) // its hand measured nothing
		if got := w.out(holdfast.LLMTokens); got != 250 {
			t.Errorf("%d tokens are used", got)
		}
	})
	t.Run("one_of_several_does_not_fit", func(t *testing.T) {
		w := newWorld(t, "", outward())
		req := w.posted(1)
		req.Consumes[holdfast.Messages] = 6
		w.refused(req, holdfast.K3, holdfast.KindBudgetExceeded)
		if w.out(holdfast.BytesOut)+w.out(holdfast.HTTPRequests)+w.out(holdfast.Messages) != 0 {
			t.Error("something was taken")
		}
	})
}

// Of requests that come at once no more pass than the budget and the rate let.
func TestEgress_D9_at_once(t *testing.T) {
	w := newWorld(t, "", outward(), func(c *kernel.Config, w *world) {
		p := *c.Policy
		p.Rates = []budget.RateLimit{{Scope: budget.Tenant, Boundary: "egress/*", PerMinute: 7, Source: "t"}}
		c.Policy, w.policy = &p, &p
	})
	kinds := make(chan holdfast.Kind, 40)
	for i := range 40 {
		req := w.posted(100)
		req.Payload = fmt.Appendf(nil, `{"i":%d}`, i)
		go func() {
			_, err := w.k.Cross(context.Background(), req, answered("", 100, nil))
			kinds <- holdfast.KindOf(err)
		}()
	}
	got := map[holdfast.Kind]int{}
	for range 40 {
		got[<-kinds]++
	}
	if got[""] != 7 || got[holdfast.KindRateLimit] != 33 || w.out(holdfast.BytesOut) != 700 {
		t.Errorf("%v, %d bytes", got, w.out(holdfast.BytesOut))
	}
}
