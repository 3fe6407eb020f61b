package kernel_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/ledger"
)

// operatorKeys are the people's public keys, read as a stranger reads them.
func operatorKeys(t testing.TB) []ed25519.PublicKey {
	t.Helper()
	_, pub := keys()
	var out []ed25519.PublicKey
	for _, pub := range []operator.Public{pub, second().Public()} {
		key, err := dissimilar.ParseOperator(pub.String())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, key)
	}
	return out
}

// judgedAgain gives the whole ledger to the verifier that shares no code with
// the kernel.
func judgedAgain(t testing.TB, w *world) (dissimilar.Result, []dissimilar.Finding) {
	t.Helper()
	var found []dissimilar.Finding
	v := dissimilar.New(dissimilar.Options{Operators: operatorKeys(t), Runtime: runtimeID,
		Found: func(f dissimilar.Finding) { found = append(found, f) }})
	err := w.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			if err := tx.Leaves(h.Tenant, 0, h.Size, func(s ledger.Stored) error {
				v.Leaf(dissimilar.Leaf{Tenant: s.Tenant, Seq: s.Seq, Record: s.Record, Part: s.Part})
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return v.Result(), found
}

// nothingWrong fails where the other verifier disagrees with the kernel.
func nothingWrong(t testing.TB, w *world) dissimilar.Result {
	t.Helper()
	r, found := judgedAgain(t, w)
	for i, f := range found {
		if i == 20 {
			t.Fatalf("and %d more", len(found)-i)
		}
		t.Error(f.String())
	}
	if r.Wrong != int64(len(found)) {
		t.Errorf("%d wrong, %d named", r.Wrong, len(found))
	}
	return r
}

// open says whether the store can still be read.
func (w *world) open() bool {
	return w.store.Poisoned() == nil && w.store.View(context.Background(), func(kernel.Tx) error { return nil }) == nil
}

// Crossings of every kind, hundreds of them, at once and through crashes: the
// verifier that shares no code with the kernel agrees with each of them.
func TestSemanticsOfRandomCrossings(t *testing.T) {
	lives, each := testrepeat.Times(4, 3), testrepeat.Times(120, 16)
	dir := t.TempDir()
	var r dissimilar.Result
	for life := range lives {
		w := reopen(t, dir, "", func(c *kernel.Config, w *world) {
			p := *c.Policy
			p.Limits = append(slices.Clone(p.Limits), budget.Limit{Scope: budget.Session, Resource: holdfast.LLMTokens, Amount: 400, Source: "test"})
			for i := range p.Limits {
				p.Limits[i].Amount *= int64(1 + life)
			}
			names := holdfast.Refusals{Rate: holdfast.KindRateLimit, Amount: holdfast.KindBudgetExceeded, Record: holdfast.KindLogging}
			p.Contracts = append(slices.Clone(p.Contracts),
				holdfast.Contract{Boundary: "test/named/rate", Risk: holdfast.Low, RatePerMinute: 3, Refusals: names, Source: "test"},
				holdfast.Contract{Boundary: "test/named/cost", Risk: holdfast.Low, Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 10}, Refusals: names, Source: "test"})
			p.Version = fmt.Sprintf("%064x", 1+life)
			c.Policy, w.policy = &p, &p
		})
		var wg sync.WaitGroup
		for caller := range 8 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(life), uint64(caller)))
				for range each {
					anything(w, rnd)
				}
			})
		}
		wg.Wait()
		r = nothingWrong(t, w)
		crash(w)
		w.store.Close()
	}
	seen := map[string]int64{}
	for _, c := range r.Checks {
		seen[c.Gate] += c.Right
	}
	for _, gate := range []string{"", "halt", "K1", "K2", "K3", "K4", "K5", "K7", "K8"} {
		if seen[gate] == 0 {
			t.Errorf("nothing of gate %q was judged: %v", gate, seen)
		}
	}
	t.Logf("%+v", r.Totals)
	for _, c := range r.Checks {
		t.Logf("%-4s %-70s %6d right %d wrong %6d undecidable %v", c.Gate, c.Check, c.Right, c.Wrong, c.Undecidable, c.Why)
	}
}

// anything is one thing that an agent, or a person, may do.
func anything(w *world, rnd *rand.Rand) {
	ctx := context.Background()
	agent := fmt.Sprint("agent", rnd.IntN(4))
	req := func(boundary, payload string) holdfast.Request {
		return holdfast.Request{Boundary: boundary, Payload: []byte(payload), Token: w.who(agent)}
	}
	cross := func(r holdfast.Request, act kernel.Act) (*holdfast.Outcome, error) { return w.k.Cross(ctx, r, act) }
	used := func(ctx context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{"ok":true}`), Used: map[holdfast.Resource]int64{holdfast.LLMTokens: rnd.Int64N(12)}}, nil
	}
	switch n := rnd.IntN(20); n {
	case 0, 1, 2:
		cross(req("test/cost", `{}`), used)
	case 3:
		r := req("test/low", fmt.Sprintf(`{"k":%d}`, rnd.IntN(2)))
		r.IdempotencyKey = fmt.Sprint("key", rnd.IntN(30))
		cross(r, ok)
	case 4:
		cross(req("test/replay", fmt.Sprintf(`{"p":%d}`, rnd.IntN(50))), used)
	case 5:
		cross(req([]string{"test/never", "test/unknown", "test/unfunded", "test/spawn", "test/perm"}[rnd.IntN(5)], `{}`), ok)
	case 6:
		cross(req("test/schema", []string{`{"n":1}`, `{"n":-1}`, `{`, `{"n":1,"n":2}`}[rnd.IntN(4)]), ok)
	case 7:
		cross(req("test/output", `{}`), func(context.Context) (holdfast.Output, error) {
			return holdfast.Output{Body: []byte([]string{`{"ok":true}`, `{"no":1}`, `not json`}[rnd.IntN(3)])}, nil
		})
	case 8, 9:
		out, _ := cross(req("test/high", fmt.Sprintf(`{"p":%d}`, rnd.IntN(40))), ok)
		if out.Review != "" {
			act := []string{operator.Approve, operator.Approve, operator.Reject, operator.Defer}[rnd.IntN(4)]
			if r, err := w.k.Review(ctx, out.Review); err == nil {
				w.k.Decide(w.sign(operator.Statement{Act: act, Subject: r.ID, Tenant: r.Tenant, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce, Reason: "random"}))
			}
		}
	case 10:
		cross(req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
			w.k.Cross(kernel.Child(ctx), req("test/cost", `{"child":1}`), used)
			return holdfast.Output{Body: []byte(`{}`)}, nil
		})
	case 11:
		x, _, err := w.k.Enter(ctx, req("test/cost", `{"lease":1}`), time.Duration(1+rnd.IntN(20))*time.Millisecond)
		if err == nil && rnd.IntN(3) > 0 {
			out, _ := used(ctx)
			x.Exit(out, nil)
		}
	case 12:
		r := req("test/declared", `{}`)
		score := rnd.Float64()
		r.Confidence = &score
		cross(r, ok)
	case 13:
		cross(req("test/scored", fmt.Sprintf(`{"c":%g}`, rnd.Float64())), ok)
	case 14:
		cross(req([]string{"test/rate", "test/named/rate", "test/named/cost"}[rnd.IntN(3)], `{}`), used)
	case 15:
		cross(req("test/slow", `{}`), func(ctx context.Context) (holdfast.Output, error) { <-ctx.Done(); return holdfast.Output{}, ctx.Err() })
	case 16:
		cross(req("agent/step", `{}`), ok)
	case 17:
		cross(req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
			return holdfast.Output{ExitCode: 3}, errors.New("it failed")
		})
	case 18:
		tenant := holdfast.Local
		if rnd.IntN(10) == 0 {
			w.k.Pause(tenant, agent, "user:carol", "random")
			w.k.Unpause(tenant, w.sign(operator.Statement{Act: operator.Unpause, Subject: agent, Tenant: tenant}))
		}
	default:
		r := req("test/cost", `{"cut":1}`)
		ctx, cancel := context.WithTimeout(ctx, time.Duration(rnd.IntN(1500))*time.Microsecond)
		w.k.Cross(ctx, r, func(ctx context.Context) (holdfast.Output, error) { <-ctx.Done(); return holdfast.Output{}, ctx.Err() })
		cancel()
	}
}

// crash leaves a crossing between its begin and its entry.
func crash(w *world) {
	w.k.Cross(context.Background(), w.req("test/cost", `{"crash":1}`), func(context.Context) (holdfast.Output, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fault = func(string) error { return errGone }
		return holdfast.Output{}, nil
	})
}
