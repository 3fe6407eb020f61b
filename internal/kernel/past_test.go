package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

// atMostThree is the rule of one line: at most 3 payments above 100 in 24 h.
const atMostThree = `
rules:
  - {id: payments, on: request, boundary: test/low, when: "args.amount > 100 && past('test/low', '24h').where(args.amount > 100).count() >= 3", message: at most 3 payments above 100 in 24 hours}
`

// markedWith gives the kernel a key of marks that survives it.
func markedWith(fill string) option {
	return func(c *kernel.Config, _ *world) { c.MarkKey = []byte(strings.Repeat(fill, 32)) }
}

func (w *world) readHistory() {
	w.t.Helper()
	if err := w.k.Past().Read(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if s := w.k.Past().Status(); !s.Ready {
		w.t.Fatalf("read, and not ready: %+v", s)
	}
}

func newPast(t testing.TB, rules string, opts ...option) *world {
	t.Helper()
	w := newWorld(t, rules, append([]option{unlimited, markedWith("k")}, opts...)...)
	w.readHistory()
	return w
}

// passed says how many of n payments of an amount pass.
func (w *world) passed(n int, payload string) int {
	w.t.Helper()
	ok := 0
	for range n {
		if _, err := w.cross(w.req("test/low", payload)); err == nil {
			ok++
		}
	}
	return ok
}

func set(t testing.TB, rules string) *constitution.Set {
	t.Helper()
	s, err := constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(rules)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reload puts other rules in force.
func (w *world) reload(version, rules string) {
	w.t.Helper()
	own := *w.policy
	own.Version, own.Rules = strings.Repeat(version, 64), set(w.t, rules)
	if err := w.k.SetPolicy(&own, "test"); err != nil {
		w.t.Fatal(err)
	}
}

// Three pass and the fourth is refused, whoever asks; what is below the limit
// passes; to look at it counts nothing; after a restart the fourth is refused
// still, and passes a day later, when the first has left the window.
func TestPast_three_a_day(t *testing.T) {
	w := newPast(t, atMostThree)
	for range 5 {
		for _, look := range []func(context.Context, holdfast.Request) (*holdfast.Outcome, error){w.k.Check, w.k.Explain} {
			if out, err := look(t.Context(), w.req("test/low", `{"amount":101}`)); err != nil || out.Verdict != holdfast.Allow {
				t.Fatalf("%+v %v", out, err)
			}
		}
	}
	if n := w.passed(3, `{"amount":101}`); n != 3 {
		t.Fatalf("%d of the first 3 passed", n)
	}
	other := w.req("test/low", `{"amount":500}`)
	other.Token = w.who("bob")
	for _, req := range []holdfast.Request{other, w.req("test/low", `{"amount":101}`)} {
		e := w.refused(req, holdfast.K8, holdfast.KindRule)
		if e.Why != "at most 3 payments above 100 in 24 hours" {
			t.Errorf("%q", e.Why)
		}
	}
	if n := w.passed(2, `{"amount":100}`); n != 2 {
		t.Errorf("%d of 2 below the limit passed", n)
	}
	if out, _ := w.k.Check(t.Context(), w.req("test/low", `{"amount":101}`)); out.Verdict != holdfast.Deny {
		t.Errorf("looked at, the fourth is %v", out.Verdict)
	}
	w.store.Close()

	w = reopen(t, w.dir, atMostThree, unlimited, markedWith("k"))
	e := w.refused(w.req("test/low", `{"amount":101}`), holdfast.K8, holdfast.KindEval)
	if !strings.Contains(e.Why, "payments") {
		t.Errorf("before the ledger is read: %q", e.Why)
	}
	if s := w.k.Past().Status(); s.Ready || len(s.Past) != 1 || s.Past[0].Ready || s.Past[0].Rule != "payments" {
		t.Errorf("%+v", s)
	}
	w.readHistory()
	w.refused(w.req("test/low", `{"amount":101}`), holdfast.K8, holdfast.KindRule)
	w.advance(23 * time.Hour)
	w.refused(w.req("test/low", `{"amount":101}`), holdfast.K8, holdfast.KindRule)
	w.advance(time.Hour)
	if n := w.passed(4, `{"amount":101}`); n != 3 {
		t.Errorf("a day later %d of 4 passed", n)
	}
	verifyStore(t, w)
}

// Of any number of requests that are judged at once no more than the limit
// pass, however they act: at once, under a lease, or after a person's word.
func TestPast_parallel(t *testing.T) {
	w := newPast(t, `
rules:
  - {id: asks, on: request, boundary: test/*, when: "args.held", severity: hold, message: a person must see this}
  - {id: three, on: request, boundary: test/low, when: "past('test/low', '1h').count() >= 3", message: at most 3}
`)
	const each = 12
	var approved []string
	for i := range each {
		approved = append(approved, fmt.Sprintf(`{"held":true,"n":%d}`, i))
		w.approve(w.held(w.req("test/low", approved[i])).Review)
	}
	var began atomic.Int64
	var wg sync.WaitGroup
	var leases sync.Map
	for i := range each {
		plain, leased, held := w.req("test/low", `{"held":false}`), w.req("test/low", `{"held":false}`), w.req("test/low", approved[i])
		for _, req := range []holdfast.Request{plain, held} {
			wg.Go(func() {
				_, _ = w.k.Cross(t.Context(), req, func(ctx context.Context) (holdfast.Output, error) {
					began.Add(1)
					return ok(ctx)
				})
			})
		}
		wg.Go(func() {
			if x, _, err := w.k.Enter(t.Context(), leased, time.Minute); err == nil {
				began.Add(1)
				leases.Store(x, true)
			}
		})
		wg.Go(func() { _, _ = w.k.Check(t.Context(), plain) })
	}
	wg.Wait()
	leases.Range(func(x, _ any) bool {
		if _, err := x.(*kernel.Crossing).Exit(holdfast.Output{}, nil); err != nil {
			t.Error(err)
		}
		return true
	})
	if n := began.Load(); n == 0 || n > 3 {
		t.Fatalf("%d began", n)
	}
	// None of those that were refused or held is counted: what is left of
	// the limit passes.
	if n := w.passed(5, `{"held":false}`); int64(n) != 3-began.Load() {
		t.Errorf("%d began at once, and %d after them", began.Load(), n)
	}
}

// What was denied, held, canceled before it began, or is known never to have
// started does not count, now and after a restart; what failed does.
func TestPast_what_counts(t *testing.T) {
	rules := `
rules:
  - {id: two, on: request, boundary: test/low, when: "past('test/*', '1h').count() >= 2", message: two are enough}
`
	w := newPast(t, rules)
	never := func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, holdfast.ErrNotStarted }
	failing := func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, fmt.Errorf("it broke") }
	for range 5 {
		if _, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), never); err == nil {
			t.Fatal("what never started went well")
		}
		w.refused(w.req("test/never", `{}`), holdfast.K7, holdfast.KindProhibited)
		w.held(w.req("test/high", `{}`))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = w.k.Cross(gone, w.req("test/low", `{}`), ok)
	}
	if n := w.k.Past().Status().Past[0].Entries; n != 0 {
		t.Errorf("%d count", n)
	}
	if _, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), failing); err == nil {
		t.Fatal("what failed went well")
	}
	w.store.Close()
	w = reopen(t, w.dir, rules, unlimited, markedWith("k"))
	w.readHistory()
	if n := w.passed(3, `{}`); n != 1 {
		t.Errorf("%d passed after one that failed", n)
	}
}

// Fields that the ledger masks are counted after a restart all the same, by
// their marks; with another key nobody can tell, and the rule says until when.
func TestPast_masked_fields(t *testing.T) {
	rules := `
rules:
  - {id: mail, on: request, boundary: test/low, when: "past('test/low', '1h').same(args.to).count() >= 1", message: one each}
  - {id: many, on: request, boundary: test/low, when: "past('test/low', '1h').distinct(args.to) >= 3", message: three people}
`
	w := newPast(t, rules)
	to := func(name string) holdfast.Request { return w.req("test/low", `{"to":"`+name+`@example.com"}`) }
	w.passes(to("ann"))
	w.passes(to("bob"))
	w.nowhere("ann@example.com", "bob@example.com")
	w.store.Close()
	w = reopen(t, w.dir, rules, unlimited, markedWith("k"))
	w.readHistory()
	if e := w.refused(to("ann"), holdfast.K8, holdfast.KindRule); e.Why != "one each" {
		t.Error(e)
	}
	w.passes(to("eve"))
	if e := w.refused(to("dan"), holdfast.K8, holdfast.KindRule); e.Why != "three people" {
		t.Error(e)
	}
	w.advance(time.Minute)
	if got, err := w.erase(erasure.Before+w.now().Add(-time.Second).UTC().Format(time.RFC3339), erasure.Request); err != nil || got.Parts != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	w.store.Close()
	w = reopen(t, w.dir, rules, unlimited, markedWith("k"))
	w.advance(time.Minute)
	w.readHistory()
	if e := w.refused(to("dan"), holdfast.K8, holdfast.KindRule); e.Why != "three people" {
		t.Error(e)
	}
	w.store.Close()
	w = reopen(t, w.dir, rules, unlimited, markedWith("x"))
	w.readHistory()
	if e := w.refused(to("ann"), holdfast.K8, holdfast.KindEval); !strings.Contains(e.Why, "cannot be read, until") {
		t.Error(e)
	}
	for _, p := range w.k.Past().Status().Past {
		if until := p.Unreadable[holdfast.Local]; !p.Ready || until.Before(w.now().Add(59*time.Minute)) || until.After(w.now().Add(61*time.Minute)) {
			t.Errorf("%+v", p)
		}
	}
	w.advance(time.Hour + time.Minute)
	w.passes(to("ann"))
	if p := w.k.Past().Status().Past[0]; len(p.Unreadable) != 0 {
		t.Errorf("an hour later: %+v", p)
	}
}

// A rule that is loaded later counts what was done before by the payloads that
// the ledger keeps; where it reads none it needs none.
func TestPast_rules_loaded_later(t *testing.T) {
	w := newPast(t, "")
	for _, p := range []string{`{"amount":60.0}`, `{"amount":1e2}`, `{"amount":40,"note":"for lunch"}`} {
		w.passes(w.req("test/low", p))
	}
	sum := `
rules:
  - {id: sum, on: request, boundary: test/low, when: "past('test/low', '1h').sum(args.amount) + args.amount > 210", message: 210 an hour}
`
	w.reload("2", sum)
	w.refused(w.req("test/low", `{"amount":1}`), holdfast.K8, holdfast.KindEval)
	w.readHistory()
	w.passes(w.req("test/low", `{"amount":10}`))
	w.refused(w.req("test/low", `{"amount":0.000001}`), holdfast.K8, holdfast.KindRule)

	own := *w.policy
	own.Version, own.Rules, own.ForgetRequests = strings.Repeat("3", 64), nil, true
	if err := w.k.SetPolicy(&own, "test"); err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("test/low", `{"amount":1}`))
	w.reload("4", sum)
	w.readHistory()
	w.refused(w.req("test/low", `{"amount":1}`), holdfast.K8, holdfast.KindEval)
	w.reload("5", `
rules:
  - {id: often, on: request, boundary: test/low, when: "past('test/low', '1h').same(agent).count() >= 6", message: six an hour}
`)
	w.readHistory()
	if n := w.passed(3, `{}`); n != 1 {
		t.Errorf("%d passed after five", n)
	}
}

// What a person approved counts once, though it begins under the question's id;
// what a crash ended counts, since nobody knows that it did not start; and of one
// tenant nothing counts for another.
func TestPast_approved_crashed_and_others(t *testing.T) {
	rules := `
rules:
  - {id: three, on: request, boundary: "*", when: "past('test/*', '1h').count() >= 3", message: three are enough}
`
	other := func(c *kernel.Config, _ *world) { c.Verifier = abroad{c.Verifier} }
	w := newPast(t, rules, other)
	held := w.held(w.req("test/high", `{"n":1}`))
	w.approve(held.Review)
	w.passes(w.req("test/high", `{"n":1}`))
	if _, _, err := w.k.Enter(t.Context(), w.req("test/low", `{}`), time.Minute); err != nil {
		t.Fatal(err)
	}
	stranger := func() holdfast.Request {
		req := w.req("test/low", `{}`)
		req.Token = w.who("stranger")
		return req
	}
	counts := func(n int64) {
		t.Helper()
		if p := w.k.Past().Status().Past[0]; p.Entries != n {
			t.Errorf("%d count, not %d", p.Entries, n)
		}
	}
	w.passes(stranger())
	counts(3)
	w.store.Close()
	w = reopen(t, w.dir, rules, unlimited, markedWith("k"), other)
	w.readHistory()
	counts(3)
	w.passes(stranger())
	w.passes(w.req("test/low", `{}`))
	w.refused(w.req("test/low", `{}`), holdfast.K8, holdfast.KindRule)
	w.passes(stranger())
	w.refused(stranger(), holdfast.K8, holdfast.KindRule)
}

// While rules are swapped under load the limit holds and nothing is lost: what
// the history counts in the end is what the ledger has.
func TestPast_reload_under_load(t *testing.T) {
	rule := func(limit int) string {
		return fmt.Sprintf(`
rules:
  - {id: limit, on: request, boundary: test/low, when: "past('test/low', '1h').count() >= %d", message: enough}
  - {id: other%d, on: request, boundary: test/low, when: "past('test/low', '%dm').sum(args.n) > 100000", message: enough}
`, limit, limit, limit%50+1)
	}
	const limit = 40
	w := newPast(t, rule(limit))
	ctx, cancel := context.WithCancel(t.Context())
	var keeping sync.WaitGroup
	keeping.Go(func() { w.k.Past().Follow(ctx) })
	defer keeping.Wait()
	defer cancel()
	var began atomic.Int64
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range 6 {
		token := w.who(fmt.Sprintf("agent%d", i))
		wg.Go(func() {
			for range 25 {
				req := holdfast.Request{Boundary: "test/low", Payload: []byte(`{"n":1}`), Token: token}
				if _, err := w.k.Cross(ctx, req, ok); err == nil {
					began.Add(1)
				}
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	for i := 0; ; i++ {
		w.reload(string("23456789"[i%8]), rule(limit+i%8))
		select {
		case <-done:
		case <-time.After(5 * time.Millisecond):
			continue
		}
		break
	}
	if n := began.Load(); n == 0 || n > limit+7 {
		t.Fatalf("%d began", n)
	}
	w.reload("a", rule(limit+20))
	w.readHistory()
	n := 0
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		if s.Kind == ledger.KindBegin {
			n++
		}
	})
	for _, p := range w.k.Past().Status().Past {
		if p.Entries != int64(n) || int64(n) != began.Load() {
			t.Errorf("%s counts %d, the ledger has %d, %d began", p.Text, p.Entries, n, began.Load())
		}
	}
}

// A clock that jumps loses nothing of what was done: set back, what was done
// counts on; set ahead it leaves the window, and set right again it is back.
func TestPast_clock_jumps(t *testing.T) {
	w := newPast(t, atMostThree)
	if n := w.passed(3, `{"amount":101}`); n != 3 {
		t.Fatal(n)
	}
	refused := func(when string) {
		t.Helper()
		if n := w.passed(1, `{"amount":101}`); n != 0 {
			t.Errorf("%s: one more passed", when)
		}
	}
	w.advance(-30 * time.Minute)
	refused("half an hour back")
	w.advance(-72 * time.Hour)
	refused("three days back")
	w.readHistory() // the ledger is read further back
	refused("three days back, and read again")
	w.advance(72*time.Hour + 30*time.Minute)
	w.readHistory()
	refused("right again")
	w.store.Close()
	w = reopen(t, w.dir, atMostThree, unlimited, markedWith("k"))
	w.readHistory()
	refused("after a restart")
}

// A rule on outputs asks the past as well, without the crossing itself.
func TestPast_on_output(t *testing.T) {
	w := newPast(t, `
rules:
  - {id: out, on: output, boundary: test/low, when: "past('test/low', '1h').count() >= 1", message: one is enough}
`)
	w.passes(w.req("test/low", `{}`))
	if _, err := w.cross(w.req("test/low", `{}`)); holdfast.KindOf(err) != holdfast.KindEvalFailure {
		t.Errorf("%v", err)
	}
}

// A rule that could never speak at a tool that shows its schema later refuses
// every call of it, by name, until it is mended.
func TestPast_misfits(t *testing.T) {
	w := newPast(t, `
rules:
  - {id: typo, on: request, boundary: mcp/bank/pay, when: "args.amuont > 100", message: too much}
`)
	w.observe(holdfast.Contract{Boundary: "mcp/bank/pay", Risk: holdfast.Low, Pin: "p1", Source: "bank",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"amount":{"type":"number"}}}`)})
	e := w.refused(w.req("mcp/bank/pay", `{"amount":1}`), holdfast.K8, holdfast.KindEval)
	if !strings.Contains(e.Why, "amuont") || !strings.Contains(e.Why, "typo") {
		t.Error(e)
	}
	if m := w.tools.Misfits(); len(m) != 1 || !strings.HasPrefix(m[0], "mcp/bank/pay: ") {
		t.Errorf("%q", m)
	}
	w.reload("2", strings.ReplaceAll(`
rules:
  - {id: typo, on: request, boundary: mcp/bank/pay, when: "args.amuont > 100", message: too much}
`, "amuont", "amount"))
	w.passes(w.req("mcp/bank/pay", `{"amount":1}`))
	if m := w.tools.Misfits(); len(m) != 0 {
		t.Errorf("%q", m)
	}
}
