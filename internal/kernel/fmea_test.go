package kernel_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// The tests of this file are failure modes of the kernel that no criterion
// asks about by itself; doc/trace.csv says which is which.

// A crossing that was cancelled is still the one of its context: whoever tries
// again from inside it is refused, also on a context that the cancel does not
// reach, and after it has left nothing is begun for it any more.
func TestFMEA_K101_1_a_retry_inside_a_cancelled_crossing(t *testing.T) {
	w := newWorld(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	var leaked context.Context
	out, err := w.k.Cross(ctx, w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		cancel()
		<-ctx.Done()
		for name, again := range map[string]context.Context{"its own": ctx, "detached": context.WithoutCancel(ctx)} {
			_, err := w.k.Cross(again, w.req("test/low", `{"again":1}`), never(t))
			if kind := holdfast.KindOf(err); kind != holdfast.KindReentry && (name != "its own" || kind != holdfast.KindCanceled) {
				t.Errorf("on %s context: %v", name, err)
			}
		}
		leaked = context.WithoutCancel(ctx)
		return holdfast.Output{}, ctx.Err()
	})
	wants(t, err, holdfast.KindCanceled)
	_, err = w.k.Cross(leaked, w.req("test/low", `{"late":1}`), never(t))
	wants(t, err, holdfast.KindReentry)
	_, err = w.k.Cross(kernel.Child(leaked), w.req("test/low", `{"late":1}`), never(t))
	wants(t, err, holdfast.KindTasks)
	for _, e := range w.entries(holdfast.Local) {
		if e.ID != out.Crossing && e.BeginSeq != nil {
			t.Errorf("%s began", e.ID)
		}
	}
	w.passes(w.req("test/low", `{}`)) // a context of its own is free
}

// Wherever a cancel falls, the entry is there before the caller has its
// answer, exactly one, and nothing is left under way.
func TestKernelContext_AC2_a_cancel_at_any_instant(t *testing.T) {
	w := newWorld(t, "")
	r := random(101)
	outcomes := map[ledger.Outcome]int{}
	// The instants are spread over what a crossing takes here and now.
	long := 2 * time.Millisecond
	for range 5 {
		start := time.Now()
		w.passes(w.req("test/low", `{}`))
		long = max(long, 3*time.Since(start))
	}
	for i := range testrepeat.Times(200, 60) {
		ctx, cancel := context.WithCancel(t.Context())
		after := time.Duration(r.Int64N(int64(long)))
		timer := time.AfterFunc(after, cancel)
		before := len(w.entries(holdfast.Local))
		out, err := w.k.Cross(ctx, w.req("test/low", fmt.Sprintf(`{"i":%d}`, i)), func(ctx context.Context) (holdfast.Output, error) {
			select {
			case <-ctx.Done():
				return holdfast.Output{}, ctx.Err()
			case <-time.After(time.Duration(r.IntN(800)) * time.Microsecond):
				return holdfast.Output{}, nil
			}
		})
		timer.Stop()
		cancel()
		es := w.entries(holdfast.Local)
		if len(es) != before+1 || es[before].ID != out.Crossing {
			t.Fatalf("cancelled after %v: %d entries more, %v", after, len(es)-before, err)
		}
		if (es[before].State == holdfast.Faulted) != (err != nil) && es[before].Outcome != ledger.Done {
			t.Fatalf("the caller has %v, the entry %s", err, es[before].State)
		}
		outcomes[es[before].Outcome]++
	}
	if n := len(w.k.Flights()); n != 0 {
		t.Fatalf("%d are still under way", n)
	}
	if outcomes[ledger.Canceled]+outcomes[ledger.Denied] == 0 || outcomes[ledger.Done] == 0 {
		t.Fatalf("the cancels all fell in one place: %v", outcomes)
	}
	t.Log(outcomes)
}

// A schema that was changed under the same id is the one that the next
// crossing meets, and never a mixture: what a reload refuses leaves the old one.
func TestFMEA_K102_1_no_stale_schema(t *testing.T) {
	w := newWorld(t, "")
	w.passes(w.req("test/schema", `{"n":1}`))
	change := func(version, schema string) error {
		p := *w.policy
		p.Version = strings.Repeat(version, 64)
		p.Contracts = append([]holdfast.Contract{}, p.Contracts...)
		for i := range p.Contracts {
			if p.Contracts[i].Boundary == "test/schema" {
				p.Contracts[i].Schema = json.RawMessage(schema)
			}
		}
		return w.k.SetPolicy(&p, "user:carol")
	}
	if err := change("2", `{"type":"object","required":["m"]}`); err != nil {
		t.Fatal(err)
	}
	w.refused(w.req("test/schema", `{"n":1}`), holdfast.K1, holdfast.KindValidation)
	w.passes(w.req("test/schema", `{"m":1}`))
	if err := change("3", `{"type":"wat"}`); err == nil {
		t.Fatal("a schema that does not compile is in force")
	}
	w.refused(w.req("test/schema", `{"n":1}`), holdfast.K1, holdfast.KindValidation)
	w.passes(w.req("test/schema", `{"m":1}`))
}

// What a role grants is read at each use: a token that was minted under the
// old roles has no more than the new ones, and no less.
func TestFMEA_K103_3_a_role_that_changed_while_its_token_lives(t *testing.T) {
	w := newWorld(t, "")
	req := w.req("test/perm", `{}`)
	req.Token = w.who("alice", roles("writer"))
	w.passes(req)
	change := func(version string, grants map[string][]string, kind holdfast.Kind) {
		t.Helper()
		p := *w.policy
		p.Version, p.Roles = strings.Repeat(version, 64), grants
		if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
			t.Fatal(err)
		}
		if kind == "" {
			w.passes(req)
			return
		}
		w.refused(req, holdfast.K2, kind)
	}
	change("2", map[string][]string{"writer": {"goal:read"}}, holdfast.KindPermission)
	change("3", map[string][]string{"agent": {"goal:*"}}, holdfast.KindRoleNotFound)
	change("4", map[string][]string{"writer": {"goal:*"}}, "")
}

// A child crossing that is made in a goroutine has its parent's correlation,
// whether the crossing knows of the goroutine or not.
func TestFMEA_K105_1_goroutines_keep_the_correlation(t *testing.T) {
	w := newWorld(t, "")
	var mu sync.Mutex
	var children []*holdfast.Outcome
	cross := func(ctx context.Context, i int) {
		out, err := w.k.Cross(kernel.Child(ctx), w.req("test/low", fmt.Sprintf(`{"i":%d}`, i)), ok)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		children = append(children, out)
	}
	out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Add(2)
			if err := kernel.Go(ctx, func(ctx context.Context) { defer wg.Done(); cross(ctx, i) }); err != nil {
				return holdfast.Output{}, err
			}
			go func() { defer wg.Done(); cross(ctx, 10+i) }()
		}
		wg.Wait()
		return holdfast.Output{}, nil
	})
	if err != nil || len(children) != 8 {
		t.Fatalf("%v, %d children", err, len(children))
	}
	for _, c := range children {
		if c.Correlation != out.Correlation || c.Traceparent[3:35] != out.Traceparent[3:35] {
			t.Errorf("%s is in flow %s, its parent in %s", c.Crossing, c.Correlation, out.Correlation)
		}
	}
	for _, e := range w.entries(holdfast.Local) {
		if e.ID != out.Crossing && e.Parent != out.Crossing {
			t.Errorf("%s names the parent %q", e.ID, e.Parent)
		}
	}
}

// There is one trace id: the span's, the outgoing header's and the ledger's
// agree, whether the caller brought one or the flow's own id is it.
func TestFMEA_K105_3_one_trace_id(t *testing.T) {
	mem := tracetest.NewInMemoryExporter()
	w := newWorld(t, "", func(c *kernel.Config, _ *world) {
		c.Tracer = trace.NewTracerProvider(trace.WithSyncer(mem)).Tracer("t")
	})
	for _, given := range []string{"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "garbage"} {
		mem.Reset()
		req := w.req("test/low", `{}`)
		req.Traceparent = given
		out := w.passes(req)
		es := w.entries(holdfast.Local)
		e, spans := es[len(es)-1], mem.GetSpans()
		if len(spans) != 1 {
			t.Fatalf("%d spans", len(spans))
		}
		span := spans[0].SpanContext.TraceID().String()
		if span != out.Traceparent[3:35] || e.Traceparent != out.Traceparent {
			t.Errorf("given %q: the span says %s, the header %s, the ledger %s", given, span, out.Traceparent, e.Traceparent)
		}
		if own := spans[0].SpanContext.SpanID().String(); own != out.Traceparent[36:52] {
			t.Errorf("given %q: what comes after stands below %s, and the span is %s", given, out.Traceparent, own)
		}
		if parent := spans[0].Parent.SpanID().String(); strings.HasPrefix(given, "00-") && parent != given[36:52] {
			t.Errorf("given %q: the span stands below %s", given, parent)
		}
		attrs := fmt.Sprint(spans[0].Attributes)
		if !strings.Contains(attrs, out.Crossing) || !strings.Contains(attrs, out.Correlation) {
			t.Errorf("the span does not name its crossing and its flow: %s", attrs)
		}
	}
}

// Key, exact hash and schema judge one reading of the payload: a caller that
// writes over its bytes while they are judged changes none of them.
func TestFMEA_K106_2_one_reading_of_the_payload(t *testing.T) {
	var change func()
	w := newWorld(t, "", during(&change))
	text := []byte(`{"n":1}`)
	clean := w.passes(w.req("test/schema", string(text)))
	req := w.req("test/schema", "")
	req.Payload = text
	change = func() { copy(text, `{"x":9}`) }
	out := w.passes(req)
	if string(text) != `{"x":9}` || out.Key != clean.Key || out.Exact != clean.Exact {
		t.Fatalf("%s: key %s, want %s", text, out.Key, clean.Key)
	}
	if e := w.entries(holdfast.Local)[1]; *e.Key != clean.Key || e.ExactHash != clean.Exact {
		t.Fatalf("%+v", e)
	}
	change = nil
	// And K1 stands before K5: what it refuses takes no key.
	w.refused(w.keyed("test/schema", `{"x":9}`, "k"), holdfast.K1, holdfast.KindValidation)
	if out := w.passes(w.keyed("test/schema", `{"n":2}`, "k")); out.Replayed {
		t.Fatal("a refused request left a key behind")
	}
}

// A score belongs to one payload: beside another one's it neither lends nor
// borrows, in any order.
func TestFMEA_K108_1_no_score_of_another_payload(t *testing.T) {
	w := newWorld(t, "", policy(func(p *kernel.Policy) { p.Rates = nil }))
	r := rand.New(rand.NewPCG(108, 1))
	want := map[string]float64{}
	for range 30 {
		score := math.Round(r.Float64()*1000) / 1000
		out, _ := w.cross(w.req("test/scored", fmt.Sprintf(`{"c":%v,"same":"operation"}`, score)))
		if held := out.Verdict == holdfast.Hold; held != (score < 0.7) {
			t.Fatalf("a score of %v: %v", score, out.Verdict)
		}
		if out.Verdict == holdfast.Allow {
			want[out.Crossing] = score
		}
	}
	if len(want) < 5 {
		t.Fatalf("only %d passed", len(want))
	}
	for _, e := range w.entries(holdfast.Local) {
		if e.Confidence == nil || *e.Confidence != want[e.ID] {
			t.Fatalf("%s has the score %v, not %v", e.ID, e.Confidence, want[e.ID])
		}
	}
}

// A payload that is tuned to stand just above the threshold passes one gate of
// eight: the rules are asked all the same, and HIGH goes to a person whatever
// the score says.
func TestFMEA_K108_3_a_tuned_score_opens_nothing_else(t *testing.T) {
	w := newWorld(t, "rules:\n  - {id: harm, on: request, boundary: \"*\", when: has(args.harm), message: harmful}\n",
		listed(holdfast.Contract{Boundary: "t/high", Risk: holdfast.High, Confidence: "double(args.c)", Source: "test:60"},
			holdfast.Contract{Boundary: "t/perm", Risk: holdfast.Medium, Confidence: "double(args.c)", Permissions: []string{"goal:write"}, Source: "test:61"}))
	const tuned = `0.7000000001`
	w.passes(w.req("test/scored", `{"c":`+tuned+`}`))
	w.refused(w.req("test/scored", `{"c":`+tuned+`,"harm":1}`), holdfast.K8, holdfast.KindRule)
	w.refused(w.req("t/perm", `{"c":1.0}`), holdfast.K2, holdfast.KindPermission)
	w.held(w.req("t/high", `{"c":1.0}`))
}

// A predicate that was changed is the one that the next output meets. One that
// is under way is judged by what it entered under: the policy is swapped whole.
func TestFMEA_K109_1_no_stale_predicate(t *testing.T) {
	load := func(when string) kernel.Rules {
		set, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte("rules:\n  - {id: bad, on: output, boundary: \"test/*\", when: \"" + when + "\", message: m}\n")}})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	w := newWorld(t, "", policy(func(p *kernel.Policy) { p.Rules = load("has(output.a)") }))
	change := func() {
		p := *w.policy
		p.Version, p.Rules = strings.Repeat("2", 64), load("has(output.b)")
		if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
			t.Error(err)
		}
	}
	cross := func(body string, act func()) error {
		_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
			act()
			return withOutput(body)(ctx)
		})
		return err
	}
	wants(t, cross(`{"a":1}`, func() {}), holdfast.KindEvalFailure)
	wants(t, cross(`{"b":1}`, func() {}), "")
	wants(t, cross(`{"a":1}`, change), holdfast.KindEvalFailure)
	wants(t, cross(`{"a":1}`, func() {}), "")
	wants(t, cross(`{"b":1}`, func() {}), holdfast.KindEvalFailure)
}

// What is judged, hashed into the ledger and given to the caller are the same
// bytes, although a predicate writes over what it was given.
func TestFMEA_K109_3_one_output(t *testing.T) {
	w := newWorld(t, "", listed(judged()), limits(tokens(budget.Tenant, 100)), policy(func(p *kernel.Policy) { p.Rules = grabbing{p.Rules} }))
	body := []byte(`{"ok":true,"pad":"` + strings.Repeat("x ", 20_000) + `"}`)
	was := bytes.Clone(body)
	out, err := w.k.Cross(t.Context(), w.req("test/judged", `{}`), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: body}, nil
	})
	if err != nil || !bytes.Equal(out.Output.Body, was) {
		t.Fatalf("another output is given: %v", err)
	}
	sum := sha256.Sum256(was)
	found := false
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		found = found || s.Kind == ledger.KindEntry && bytes.Contains(s.Part, []byte(hex.EncodeToString(sum[:])))
	})
	if !found {
		t.Fatal("the ledger holds the hash of other bytes")
	}
}

// Nothing goes by itself: without a retention that somebody configured, eight
// years and any number of sweeps leave every record and every part.
func TestFMEA_K107_3_nothing_goes_by_itself(t *testing.T) {
	w := newWorld(t, "")
	for i := range 3 {
		w.passes(w.req("test/low", fmt.Sprintf(`{"i":%d}`, i)))
	}
	before := 0
	w.leaves(holdfast.Local, func(ledger.Stored) { before++ })
	w.advance(8 * 366 * 24 * time.Hour)
	for range 3 {
		if _, err := w.k.Sweep(); err != nil {
			t.Fatal(err)
		}
	}
	after, parts := 0, 0
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		after++
		if s.Kind == ledger.KindEntry && s.Part != nil {
			parts++
		}
	})
	if after != before || parts != 3 || len(w.entries(holdfast.Local)) != 3 {
		t.Fatalf("%d leaves of %d, %d parts of 3", after, before, parts)
	}
	verifyStore(t, w)
}
