package kernel_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Failure predicate 1 asks for a running loop; in Go every caller has one, and
// what remains of it is that a crossing needs a context that has not ended.
func TestKernelContext_FP1_caller_already_gone(t *testing.T) {
	w := newWorld(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	acted := false
	_, err := w.k.Cross(ctx, w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
		acted = true
		return holdfast.Output{}, nil
	})
	if err == nil || acted {
		t.Fatalf("acted %v, err %v", acted, err)
	}
	if es := w.entries(holdfast.Local); len(es) != 1 || es[0].Outcome != ledger.Denied {
		t.Fatalf("%+v", es)
	}
}

func TestKernelContext_FP2_AC4_reentry(t *testing.T) {
	w := newWorld(t, "")
	var inner error
	_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		_, inner = w.k.Cross(ctx, w.req("test/low", `{"n":1}`), ok)
		return holdfast.Output{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, inner, holdfast.KindReentry)
	if n := len(w.entries(holdfast.Local)); n != 2 {
		t.Fatalf("%d entries, want the crossing's and the refused one's", n)
	}
}

func TestChildrenInheritTheCorrelation(t *testing.T) {
	w := newWorld(t, "")
	var child *holdfast.Outcome
	out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		var err error
		child, err = w.k.Cross(kernel.Child(ctx), w.req("test/medium", `{}`), ok)
		return holdfast.Output{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if child.Correlation != out.Correlation || child.Crossing == out.Crossing {
		t.Fatalf("child %+v of %+v", child, out)
	}
	es := w.entries(holdfast.Local)
	if len(es) != 2 || es[0].Parent != out.Crossing {
		t.Fatalf("the child's entry names parent %q, want %q", es[0].Parent, out.Crossing)
	}
}

// Failure predicate 3 and acceptance criterion 5: each gate that fails stops
// the crossing before the act, the error reaches the caller with its kind, and
// the entry is FAULTED.
func TestKernelContext_FP3_AC5_each_gate_stops(t *testing.T) {
	rules := `
rules:
  - id: no-secrets
    on: request
    boundary: test/low
    when: has(args.forbidden)
    severity: block
    message: forbidden things stay here
`
	cases := []struct {
		gate holdfast.Gate
		req  func(*world) holdfast.Request
		kind holdfast.Kind
	}{
		{holdfast.K1, func(w *world) holdfast.Request { return w.req("test/schema", `{"n":-1}`) }, holdfast.KindValidation},
		{holdfast.K2, func(w *world) holdfast.Request { return w.req("test/perm", `{}`) }, holdfast.KindPermission},
		{holdfast.K3, func(w *world) holdfast.Request { return w.req("test/unfunded", `{}`) }, holdfast.KindBudgetNotFound},
		{holdfast.K4, func(w *world) holdfast.Request {
			r := w.req("test/low", `{}`)
			r.Correlation = "not-a-uuid"
			return r
		}, holdfast.KindValue},
		{holdfast.K5, func(w *world) holdfast.Request {
			r := w.req("test/low", `{}`)
			r.IdempotencyKey = strings.Repeat("k", 256)
			return r
		}, holdfast.KindValue},
		{holdfast.K7, func(w *world) holdfast.Request { return w.req("test/never", `{}`) }, holdfast.KindProhibited},
		{holdfast.K8, func(w *world) holdfast.Request { return w.req("test/low", `{"forbidden":1}`) }, holdfast.KindRule},
	}
	for _, c := range cases {
		t.Run(c.gate.String(), func(t *testing.T) {
			w := newWorld(t, rules)
			out, err := w.k.Cross(t.Context(), c.req(w), func(context.Context) (holdfast.Output, error) {
				t.Error("the hand acted")
				return holdfast.Output{}, nil
			})
			wants(t, err, c.kind)
			var e *holdfast.Error
			if !errors.As(err, &e) || e.Gate != c.gate || e.Crossing != out.Crossing || e.Why == "" {
				t.Fatalf("%+v", e)
			}
			if out.Verdict != holdfast.Deny || out.Output != nil {
				t.Fatalf("%+v", out)
			}
			es := w.entries(holdfast.Local)
			if len(es) != 1 || es[0].State != holdfast.Faulted || es[0].ErrorKind != c.kind || *es[0].Gate != c.gate || es[0].ExitCode == 0 {
				t.Fatalf("%+v", es[0])
			}
		})
	}
	t.Run("K6", func(t *testing.T) {
		w := newWorld(t, "")
		w.fault = func(string) error { return errors.New("disk gone") }
		_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
			t.Error("the hand acted without a begin record")
			return holdfast.Output{}, nil
		})
		wants(t, err, holdfast.KindWALWrite)
		_, err = w.cross(w.req("test/low", `{}`))
		wants(t, err, holdfast.KindWALWrite)
	})
}

// Failure predicate 4: a cancel reaches the hand at once, the entry is durable
// before the caller has the error (D4).
func TestKernelContext_FP4_cancel_during_active(t *testing.T) {
	w := newWorld(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	var cutAfter time.Duration
	_, err := w.k.Cross(ctx, w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		start := time.Now()
		cancel()
		<-ctx.Done()
		cutAfter = time.Since(start)
		return holdfast.Output{}, ctx.Err()
	})
	wants(t, err, holdfast.KindCanceled)
	if cutAfter > time.Second {
		t.Fatalf("the hand learned of it after %v", cutAfter)
	}
	es := w.entries(holdfast.Local)
	if len(es) != 1 || es[0].Outcome != ledger.Canceled || es[0].State != holdfast.Faulted {
		t.Fatalf("%+v", es)
	}
}

// Failure predicate 5: the entry cannot be written after the act; the crossing
// is FAULTED and the output withheld.
func TestKernelContext_FP5_write_failure_while_exiting(t *testing.T) {
	w := newWorld(t, "")
	out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
		w.mu.Lock()
		w.fault = func(string) error { return errors.New("disk gone") }
		w.mu.Unlock()
		return holdfast.Output{Body: []byte(`{"secret":1}`)}, nil
	})
	wants(t, err, holdfast.KindWALWrite)
	if out.Output != nil || out.Verdict != holdfast.Deny {
		t.Fatalf("%+v", out)
	}
	w.store.Close()
	again := reopen(t, w.dir, "")
	es := again.entries(holdfast.Local)
	if len(es) != 1 || es[0].Outcome != ledger.Unknown {
		t.Fatalf("after the restart: %+v", es)
	}
}

type emptyRandom struct{}

func (emptyRandom) Read([]byte) (int, error) { return 0, errors.New("no randomness") }

func TestKernelContext_FP6_correlation_generation_fails(t *testing.T) {
	w := newWorld(t, "")
	k2 := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Random = emptyRandom{} })
	out, err := k2.k.Cross(t.Context(), w.req("test/low", `{}`), never(t))
	if err == nil || out.Verdict != holdfast.Deny || out.State == holdfast.Active || out.Output != nil {
		t.Fatalf("crossed without an id: %+v, %v", out, err)
	}
	// Enough for the crossing's id, not for the correlation's.
	k3 := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Random = &fewRandom{16} })
	out, err = k3.k.Cross(t.Context(), w.req("test/low", `{}`), never(t))
	wants(t, err, holdfast.KindValue)
	if out.Verdict != holdfast.Deny || out.Correlation != "" || len(k3.entries(holdfast.Local)) != 0 {
		t.Fatalf("%+v", out)
	}
}

// Failure predicate 7: K8 refuses what came out; the entry says withheld, and
// the reason is HALTED's, that of FAULTED (D4).
func TestKernelContext_FP7_eval_failure(t *testing.T) {
	w := newWorld(t, "")
	out, err := w.k.Cross(t.Context(), w.req("test/output", `{}`), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{"ok":"yes"}`)}, nil
	})
	wants(t, err, holdfast.KindEvalFailure)
	if out.Output != nil {
		t.Fatal("the output was given")
	}
	es := w.entries(holdfast.Local)
	if es[0].Outcome != ledger.Withheld || es[0].State != holdfast.Faulted || *es[0].Passed {
		t.Fatalf("%+v", es[0])
	}
}

// slowRules answers only when its context ends.
type slowRules struct{ on constitution.On }

func (s slowRules) Judge(ctx context.Context, on constitution.On, _ constitution.Facts) []constitution.Finding {
	if on == s.on {
		<-ctx.Done()
	}
	return nil
}

func (slowRules) Pasts() []*constitution.Past { return nil }

func (slowRules) See(context.Context, constitution.Facts) []constitution.Sight {
	return []constitution.Sight{}
}

func (slowRules) Facts(string, ...constitution.On) []string { return nil }

func (slowRules) Misfits(constitution.Boundary) ([]string, error) { return nil, nil }

func (slowRules) Texts() []constitution.Text { return nil }

func (slowRules) Predicate(string) (constitution.Predicate, bool) {
	none, _ := constitution.Load(nil)
	return none.Predicate(constitution.OutputSchemaConformance)
}

func TestKernelContext_FP8_timeouts(t *testing.T) {
	if testing.Short() {
		t.Skip("waits five seconds")
	}
	for _, on := range []constitution.On{constitution.OnRequest, constitution.OnOutput} {
		t.Run(string(on), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", func(c *kernel.Config, _ *world) {
				p := *c.Policy
				p.Rules = slowRules{on}
				c.Policy = &p
			})
			start := time.Now()
			out, err := w.cross(w.req("test/low", `{}`))
			wants(t, err, holdfast.KindTimeout)
			if took := time.Since(start); took < 4*time.Second || took > time.Minute {
				t.Fatalf("took %v", took)
			}
			if out.Output != nil {
				t.Fatal("the output was given")
			}
			if es := w.entries(holdfast.Local); len(es) != 1 || es[0].State != holdfast.Faulted || es[0].ErrorKind != holdfast.KindTimeout {
				t.Fatalf("%+v", es)
			}
		})
	}
}

// Acceptance criterion 1: concurrent crossings share nothing.
func TestKernelContext_AC1_INV1_INV2_concurrent_crossings(t *testing.T) {
	w := newWorld(t, "")
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 32 {
		req := w.req("test/low", `{}`)
		wg.Add(1)
		go func() {
			defer wg.Done()
			var inside string
			out, err := w.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
				inside = kernel.CrossingID(ctx)
				return ok(ctx)
			})
			if err != nil || inside != out.Crossing {
				t.Errorf("%v: inside %q, outside %q", err, inside, out.Crossing)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[out.Crossing] || seen[out.Correlation] {
				t.Errorf("an id came twice")
			}
			seen[out.Crossing], seen[out.Correlation] = true, true
		}()
	}
	wg.Wait()
	if n := len(w.entries(holdfast.Local)); n != 32 {
		t.Fatalf("%d entries", n)
	}
}

// Acceptance criterion 2: leaving always completes, even for a hand that
// ignores its context.
func TestKernelContext_AC2_exit_under_cancellation(t *testing.T) {
	w := newWorld(t, "")
	release := make(chan struct{})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.k.Cross(ctx, w.req("test/slow", `{}`), func(context.Context) (holdfast.Output, error) {
		cancel()
		<-release
		return holdfast.Output{}, nil
	})
	if err == nil {
		t.Fatal("no error")
	}
	es := w.entries(holdfast.Local)
	if len(es) != 1 || !strings.Contains(es[0].Why, "left behind") {
		t.Fatalf("the deaf hand is not named: %+v", es[0])
	}
}

// Acceptance criterion 6 and invariant 6, over random crossings: exactly one
// entry each, with correlation, tenant and time.
func TestKernelContext_AC6_INV6_one_entry_each(t *testing.T) {
	w := newWorld(t, "")
	boundaries := []string{"test/low", "test/medium", "test/high", "test/never", "test/schema", "test/perm", "unlisted/x", "test/cost"}
	var held, entries int
	for i := range 80 {
		req := w.req(boundaries[i%len(boundaries)], `{"i":`+string(rune('0'+i%10))+`}`)
		if i%11 == 0 {
			req.Token = holdfast.NewSecret("garbage")
		}
		out, err := w.k.Cross(t.Context(), req, func(ctx context.Context) (holdfast.Output, error) {
			if i%7 == 0 {
				return holdfast.Output{}, errors.New("the hand failed")
			}
			return ok(ctx)
		})
		if (err == nil) != (out.Output != nil) {
			t.Fatalf("error %v, output %v", err, out.Output)
		}
		if out.Verdict == holdfast.Hold {
			held++
		} else {
			entries++
		}
	}
	got := append(w.entries(holdfast.Local), w.entries(holdfast.Unverified)...)
	if len(got) != entries {
		t.Fatalf("%d entries for %d crossings that ended (%d held)", len(got), entries, held)
	}
	ids := map[string]bool{}
	for _, e := range got {
		if ids[e.ID] || e.Correlation == "" || e.TenantID == "" || e.Timestamp.IsZero() {
			t.Fatalf("%+v", e)
		}
		ids[e.ID] = true
	}
}

// Invariant 5: ACTIVE means that eight gates passed or are armed.
func TestKernelContext_INV5_active_means_eight(t *testing.T) {
	w := newWorld(t, "")
	out, err := w.cross(w.req("test/low", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Opinions) != 8 {
		t.Fatalf("%d opinions", len(out.Opinions))
	}
	for i, op := range out.Opinions {
		if op.Gate != holdfast.Gate(i+1) || op.Verdict != holdfast.Allow {
			t.Fatalf("%+v", op)
		}
	}
}

// Invariant 7: no leaving while tasks of the crossing run.
func TestKernelContext_INV7_tasks_end_first(t *testing.T) {
	w := newWorld(t, "")
	var ended atomic.Bool
	_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		err := kernel.Go(ctx, func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(30 * time.Millisecond)
			ended.Store(true)
		})
		return holdfast.Output{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !ended.Load() {
		t.Fatal("the crossing left before its task ended")
	}
	wants(t, kernel.Go(t.Context(), func(context.Context) {}), holdfast.KindTasks)
}

func TestPanickingHand(t *testing.T) {
	w := newWorld(t, "")
	_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) { panic("boom") })
	wants(t, err, holdfast.KindOperation)
	if es := w.entries(holdfast.Local); len(es) != 1 || es[0].Outcome != ledger.Failed {
		t.Fatalf("%+v", es)
	}
}

func TestTrustIsRaisedByAPerson(t *testing.T) {
	w := newWorld(t, "")
	_, err := w.cross(w.req("test/spawn", `{}`))
	wants(t, err, holdfast.KindPermission)
	if err := w.k.Trust(holdfast.Local, w.sign(operator.Statement{Act: operator.Trust, Subject: "alice", Value: "medium"})); err != nil {
		t.Fatal(err)
	}
	if _, err := w.cross(w.req("test/spawn", `{}`)); err != nil {
		t.Fatal(err)
	}
	if len(w.events(holdfast.Local, "trust_level_changed")) != 1 {
		t.Fatal("the change is not an event")
	}
}
