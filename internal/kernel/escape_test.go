package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

var ptraced = posture.Call{Nr: 101, Name: "ptrace", Arch: "x86_64", Args: [6]uint64{16, 1, 0xffffffffffffffff, 0x7ffd12345678, 0, 0}}

// breaksOut is a hand whose code tried to get out.
func breaksOut(context.Context) (holdfast.Output, error) {
	return holdfast.Output{Used: map[holdfast.Resource]int64{}, Ran: &holdfast.Ran{State: "SYSCALL_BLOCKED", Walls: []string{"seccomp"}}}, fmt.Errorf("run: %w", &posture.Escape{Run: "run-1", Call: ptraced, Code: strings.Repeat("c0de", 16)})
}

// inside starts a crossing whose hand waits for its context to end, or for
// leave, and gives what it came to.
func (w *world) inside(req holdfast.Request, end func(context.Context) error) (leave chan<- struct{}, came <-chan error) {
	w.t.Helper()
	in, out, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := w.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
			close(in)
			select {
			case <-ctx.Done():
			case <-out:
			}
			return holdfast.Output{Body: []byte(`{}`)}, end(ctx)
		})
		done <- err
	}()
	select {
	case <-in:
	case err := <-done:
		w.t.Fatal("it did not begin: ", err)
	}
	return out, done
}

func builder(id *holdfast.Identity) { id.Kind = "builder" }

func (w *world) agent(name string) (a holdfast.Agent) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx kernel.Tx) (err error) { a, err = tx.Agent(holdfast.Local, name); return err })
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// attempt is the one attempt's event of a crossing, with its data.
func (w *world) attempt(crossing string) (*ledger.Event, map[string]any) {
	w.t.Helper()
	var found *ledger.Event
	for _, e := range w.events(holdfast.Local, "sandbox_escape_attempted") {
		if e.Crossing == crossing && found == nil {
			found = e
		} else if e.Crossing == crossing {
			w.t.Fatal("two events of one attempt")
		}
	}
	if found == nil {
		w.t.Fatal("no event of the attempt")
	}
	data := map[string]any{}
	if err := json.Unmarshal(found.Data, &data); err != nil {
		w.t.Fatal(err)
	}
	return found, data
}

func (w *world) told(event string) (out []kernel.Notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.notices {
		if n.Event == event {
			out = append(out, n)
		}
	}
	return out
}

// TestD21_anEscapeIsAnswered: the event with who, when and what, the crossing
// failed, trust down, agent paused and cut, a person asked and told - in
// neighbouring leaves of one transaction - and nobody else is stopped.
func TestD21_anEscapeIsAnswered(t *testing.T) {
	w := newWorld(t, "")
	own := holdfast.Request{Boundary: "test/low", Payload: []byte(`{"n":1}`), Token: w.who("alice", builder)}
	_, cut := w.inside(own, func(ctx context.Context) error { return context.Cause(ctx) })
	letGo, others := w.inside(holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`), Token: w.who("carol")}, func(context.Context) error { return nil })
	before := w.now().Add(-time.Second)
	out, err := w.k.Cross(t.Context(), own, breaksOut)
	wants(t, err, holdfast.KindEscape)
	if out.Output != nil || !strings.Contains(err.Error(), "ptrace (call 101, x86_64)") {
		t.Errorf("%v, %v", out.Output, err)
	}
	wants(t, <-cut, holdfast.KindPaused)
	close(letGo)
	if err := <-others; err != nil {
		t.Error("another agent was stopped: ", err)
	}
	if w.latch.Halted() {
		t.Error("everything was halted")
	}
	_, err = w.k.Cross(t.Context(), own, ok)
	wants(t, err, holdfast.KindPaused)

	e, d := w.attempt(out.Crossing)
	if e.Who != "user:alice" || e.Subject != "alice" || e.Timestamp.Before(before) || e.TenantID != holdfast.Local {
		t.Errorf("%+v", e)
	}
	for name, want := range map[string]string{"level": "CRITICAL", "trace": "trace.sandbox_escape_attempt", "request_id": "run-1", "principal": "user:alice", "agent": "alice",
		"session": "alice-s1", "crossing": out.Crossing, "correlation_id": out.Correlation, "boundary": "test/low", "trust_from": "medium", "trust_to": "baseline"} {
		if d[name] != want {
			t.Errorf("%s is %v, not %s", name, d[name], want)
		}
	}
	if got, _ := json.Marshal(d["call"]); string(got) != `{"arch":"x86_64","args":["0x10","0x1","0xffffffffffffffff","0x7ffd12345678","0x0","0x0"],"name":"ptrace","nr":101}` {
		t.Errorf("the call is %s", got)
	}
	if a := w.agent("alice"); a.State != holdfast.AgentPaused || a.Level != holdfast.Baseline || !strings.Contains(a.Why, "ptrace") {
		t.Errorf("%+v", a)
	}
	r, err := w.k.Review(t.Context(), d["review"].(string))
	if err != nil || r.State != review.Pending || r.About != review.AboutEscape || r.Crossing != out.Crossing || !strings.Contains(r.Preview, "ptrace") || !strings.Contains(r.Preview, `"code_sha256":"`+strings.Repeat("c0de", 16)+`"`) || !r.Expires.IsZero() || r.InPart() {
		t.Errorf("%+v, %v", r, err)
	}
	if n := w.told("sandbox_escape_attempted"); len(n) != 1 || n[0].Level != "critical" || n[0].Review != r.ID || n[0].Agent != "alice" {
		t.Errorf("people were told %+v", n)
	}
	var entry *ledger.Entry
	var names []string
	w.leaves(holdfast.Local, func(s ledger.Stored) {
		if s.Crossing != out.Crossing || s.Kind == ledger.KindBegin {
			return
		}
		if s.Kind == ledger.KindEntry {
			entry, _ = ledger.ParseEntry(s.Record)
			names = append(names, fmt.Sprint(s.Seq, " entry"))
			return
		}
		ev, _ := ledger.ParseEvent(s.Record)
		names = append(names, fmt.Sprint(s.Seq, " ", ev.Name))
	})
	if entry == nil || entry.Outcome != ledger.Failed || entry.State != holdfast.Faulted || entry.ErrorKind != holdfast.KindEscape || entry.ExitCode != 159 ||
		entry.Run != "SYSCALL_BLOCKED" || !slices.Equal(entry.Walls, []string{"seccomp"}) {
		t.Fatalf("%+v", entry)
	}
	var first int64
	_, _ = fmt.Sscan(names[0], &first)
	for i, name := range []string{"sandbox_escape_attempted", "trust_level_changed", "agent_paused", "review_proposed", "entry"} {
		if names[i] != fmt.Sprint(first+int64(i), " ", name) {
			t.Errorf("leaf %d is %q, not %s", i, names[i], name)
		}
	}
}

// TestD21_attemptsBesideEachOther: of runs that try together each is an event and
// a question and costs a level, down to the lowest; the agent is paused once.
func TestD21_attemptsBesideEachOther(t *testing.T) {
	w := newWorld(t, "")
	if _, err := w.cross(w.req("test/low", `{}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.k.Trust(holdfast.Local, w.sign(operator.Statement{Act: operator.Trust, Subject: "alice", Value: "high"})); err != nil {
		t.Fatal(err)
	}
	tries := func(ctx context.Context) error { _, err := breaksOut(ctx); return err }
	var came []<-chan error
	var go1 chan<- struct{}
	for i := range 4 {
		leave, c := w.inside(w.req("test/low", fmt.Sprintf(`{"i":%d}`, i)), tries)
		came = append(came, c)
		if go1 == nil {
			go1 = leave
		}
	}
	close(go1) // the others are cut by its answer, and tell of their own all the same
	for _, c := range came {
		wants(t, <-c, holdfast.KindEscape)
	}
	if a := w.agent("alice"); a.Level != holdfast.Baseline || a.State != holdfast.AgentPaused {
		t.Errorf("%+v", a)
	}
	waiting, err := w.k.Reviews(t.Context(), holdfast.Local, review.Pending)
	if err != nil || len(waiting) != 4 {
		t.Errorf("%d questions, %v", len(waiting), err)
	}
	var levels []string
	for _, e := range w.events(holdfast.Local, "sandbox_escape_attempted") {
		_, d := w.attempt(e.Crossing)
		levels = append(levels, fmt.Sprint(d["trust_from"], " ", d["trust_to"]))
	}
	if want := []string{"high medium", "medium baseline", "baseline baseline", "baseline baseline"}; !slices.Equal(levels, want) {
		t.Errorf("trust went %q", levels)
	}
	if n := len(w.events(holdfast.Local, "agent_paused")); n != 1 {
		t.Errorf("paused %d times", n)
	}
	if n := len(w.events(holdfast.Local, "trust_level_changed")); n != 3 { // one is the person's
		t.Errorf("the trust changed %d times", n)
	}
}

// TestD16_whatIsNoEscape: a violation is an event beside an output that stands,
// and a refused call is nothing but what the output says.
func TestD16_whatIsNoEscape(t *testing.T) {
	w := newWorld(t, "")
	result := holdfast.Output{Body: []byte(`{"exit_code":159}`), ExitCode: 159}
	out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
		return result, &posture.Violation{Run: "run-2", Call: posture.Call{Nr: 155, Name: "pivot", Arch: "x86_64"}}
	})
	if err != nil || out.Output == nil || out.Output.ExitCode != 159 {
		t.Fatalf("%+v, %v", out, err)
	}
	found := w.events(holdfast.Local, "sandbox_violation")
	if len(found) != 1 || found[0].Crossing != out.Crossing || !strings.Contains(string(found[0].Data), `"request_id":"run-2"`) || !strings.Contains(string(found[0].Data), `"level":"WARNING"`) {
		t.Fatalf("%+v", found)
	}
	if out, err = w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{"refused":[{"name":"socket"}]}`)}, (&posture.Result{Refused: []posture.Refusal{{Name: "socket"}}}).Broke()
	}); err != nil || out.Output == nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sandbox_escape_attempted", "agent_paused", "trust_level_changed", "review_proposed"} {
		if e := w.events(holdfast.Local, name); len(e) > 0 {
			t.Errorf("%s", name)
		}
	}
	if n := len(w.events(holdfast.Local, "sandbox_violation")); n != 1 || w.agent("alice").State != holdfast.AgentRunning || len(w.told("sandbox_escape_attempted")) > 0 {
		t.Errorf("%d violations", n)
	}
}

// TestD21_theIntentFailsWithIt: a feature that keeps intents receives the attempt in the
// transaction that answers it; a failure of it writes nothing, and keeps nothing else from
// being done.
func TestD21_theIntentFailsWithIt(t *testing.T) {
	for name, fails := range map[string]error{"failed": nil, "cannot be failed": errors.New("no such intent")} {
		t.Run(name, func(t *testing.T) {
			var heard []signal.Escape
			w := newWorld(t, "", withFeature(&probe{onSignal: func(tx kernel.FeatureTx,
				s signal.Signal) (map[string]any,
				error) {
				a, ok := s.(signal.Escape)
				if !ok || a.Intent == "" {
					return nil, nil
				}
				heard = append(heard, a)
				return map[string]any{"intent_failed": true}, errors.Join(probeRows.Insert(tx, probeKey{a.Tenant,
					a.Intent}, probeRow{}), fails)
			}}))
			req := w.req("test/low", `{}`)
			req.Token = w.who("alice", func(id *holdfast.Identity) { id.Intent = "intent-7" })
			out, err := w.k.Cross(t.Context(), req, breaksOut)
			wants(t, err, holdfast.KindEscape)
			if len(heard) == 0 || heard[0].Intent != "intent-7" || heard[0].Crossing != out.Crossing ||
				heard[0].Call != ptraced ||
				heard[0].Run != "run-1" || heard[0].Tenant != holdfast.Local {
				t.Fatalf("%+v", heard)
			}
			_, d := w.attempt(out.Crossing)
			if d["intent"] != "intent-7" || (d["intent_failed"] == true) != (fails == nil) ||
				(d["failed_handlers"] != nil) != (fails != nil) {
				t.Errorf("%v", d)
			}
			if _, found := w.probeRow("intent-7"); found != (fails == nil) {
				t.Error("the row of the intent is there although its handler failed, or is missing although it did not")
			}
			if w.agent("alice").State != holdfast.AgentPaused {
				t.Error("the agent goes on")
			}
			// An attempt without an intent is not its concern.
			bob := w.req("test/low", `{}`)
			bob.Token = w.who("bert")
			_, err = w.k.Cross(t.Context(), bob, breaksOut)
			wants(t, err, holdfast.KindEscape)
			if slices.ContainsFunc(heard, func(a signal.Escape) bool { return a.Agent == "bert" }) {
				t.Error("it took an attempt without an intent for its own")
			}
		})
	}
}

// TestD21_aCrashBeforeTheAnswer: where the transaction did not become durable
// there is nothing of it; the crossing is unknown, and until the restart nothing
// begins for anybody.
func TestD21_aCrashBeforeTheAnswer(t *testing.T) {
	dir := t.TempDir()
	w := reopen(t, dir, "")
	out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
		w.mu.Lock()
		w.fault = func(string) error { return errors.New("the disk is gone") }
		w.mu.Unlock()
		return breaksOut(ctx)
	})
	wants(t, err, holdfast.KindWALWrite)
	if n := w.told("sandbox_escape_attempted"); len(n) != 1 || n[0].Level != "critical" {
		t.Errorf("people were told %+v", n)
	}
	_, err = w.cross(w.req("test/low", `{"again":1}`))
	wants(t, err, holdfast.KindWALWrite)
	w.store.Close()
	w = reopen(t, dir, "")
	if n := len(w.events(holdfast.Local, "sandbox_escape_attempted")) + len(w.events(holdfast.Local, "agent_paused")) + len(w.events(holdfast.Local, "review_proposed")); n != 0 {
		t.Errorf("%d events of half an answer", n)
	}
	es := w.entries(holdfast.Local)
	if len(es) != 1 || es[0].ID != out.Crossing || es[0].Outcome != ledger.Unknown {
		t.Fatalf("%+v", es)
	}
	if w.agent("alice").State != holdfast.AgentRunning {
		t.Error("paused by what nobody knows")
	}
}

// TestD21_noOtherEndHidesIt: an attempt is answered though the crossing ended of
// something else meanwhile: its caller gave up, its lease ran out, or everything
// was halted and the hand came back after it had been left behind.
func TestD21_noOtherEndHidesIt(t *testing.T) {
	var seen *tally
	observed := func(c *kernel.Config, _ *world) { seen = &tally{}; c.Observer = seen }
	// heard are those that the observer was told of: with the crossing, or after it.
	heard := func() (with, after []string) {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		for _, x := range seen.crossed {
			if x.Entry != nil && x.Entry.ErrorKind == holdfast.KindEscape {
				with = append(with, x.Entry.TenantID+" "+x.Entry.Agent+" "+x.Entry.ID)
			}
		}
		return with, slices.Clone(seen.escaped)
	}
	answered := func(t *testing.T, w *world, late bool) {
		t.Helper()
		defer func() {
			t.Helper()
			want := fmt.Sprintf("[local alice %s]", w.entries(holdfast.Local)[0].ID)
			for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				with, after := heard()
				if got := fmt.Sprint(with, after); late && got == "[] "+want || !late && got == want+" []" {
					return
				} else if time.Now().After(end) {
					t.Fatalf("the observer was told of %s, late: %v", got, late)
				}
			}
		}()
		for range 500 {
			if len(w.told("sandbox_escape_attempted")) == 1 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if a := w.agent("alice"); a.State != holdfast.AgentPaused || len(w.events(holdfast.Local, "sandbox_escape_attempted")) != 1 || len(w.events(holdfast.Local, "review_proposed")) != 1 {
			t.Errorf("%+v", a)
		}
	}
	t.Run("the caller gave up", func(t *testing.T) {
		w := newWorld(t, "", observed)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := w.k.Cross(ctx, w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
			cancel()
			<-ctx.Done()
			return breaksOut(ctx)
		})
		wants(t, err, holdfast.KindEscape)
		answered(t, w, false)
	})
	t.Run("its lease", func(t *testing.T) {
		w := newWorld(t, "", observed)
		x, _, err := w.k.Enter(t.Context(), w.req("test/low", `{}`), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Exit(breaksOut(t.Context()))
		wants(t, err, holdfast.KindEscape)
		answered(t, w, false)
	})
	t.Run("after its lease", func(t *testing.T) {
		w := newWorld(t, "", observed)
		x, _, err := w.k.Enter(t.Context(), w.req("test/low", `{}`), time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for len(w.entries(holdfast.Local)) == 0 {
			time.Sleep(time.Millisecond)
		}
		_, err = x.Exit(breaksOut(t.Context()))
		wants(t, err, holdfast.KindAbandoned)
		answered(t, w, true)
	})
	t.Run("left behind at a halt", func(t *testing.T) {
		w := newWorld(t, "", observed)
		back := make(chan struct{})
		in, done := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := w.k.Cross(context.Background(), w.req("test/low", `{}`), func(ctx context.Context) (holdfast.Output, error) {
				close(in)
				<-back
				return breaksOut(ctx)
			})
			done <- err
		}()
		<-in
		if _, err := w.k.Halt("bob", "enough"); err != nil {
			t.Fatal(err)
		}
		wants(t, <-done, holdfast.KindHalted)
		close(back)
		answered(t, w, true)
		e := w.events(holdfast.Local, "sandbox_escape_attempted")[0]
		if _, d := w.attempt(e.Crossing); d["late"] != true {
			t.Errorf("%v", d)
		}
	})
}

// TestD21_theReviewOfAnAttempt: it waits until it is answered, its answer says
// who has seen it and lets the agent go on, and no request can ever use it.
func TestD21_theReviewOfAnAttempt(t *testing.T) {
	w := newWorld(t, "")
	out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), breaksOut)
	wants(t, err, holdfast.KindEscape)
	_, d := w.attempt(out.Crossing)
	id := d["review"].(string)
	r, err := w.k.Review(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	w.advance(10 * review.Lifetime)
	if n, err := w.k.Sweep(); n != 0 || err != nil {
		t.Fatalf("%d expired, %v", n, err)
	}
	asks := operator.Statement{Act: operator.Changes, Subject: id, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce, Reason: "please"}
	_, err = w.k.Decide(w.sign(asks))
	wants(t, err, holdfast.KindUsage)
	asks.Act, asks.Reviewer = operator.Approve, "alice"
	_, err = w.k.Decide(w.sign(asks))
	wants(t, err, holdfast.KindSelfApproval)
	if _, err = w.k.Decide(w.say(operator.Defer, id, "")); err != nil {
		t.Fatal(err)
	}
	r, err = w.k.Decide(w.say(operator.Approve, id, "a test of ours"))
	if err != nil || r.State != review.Approved || r.Reviewer != "bob" || !r.Expires.IsZero() {
		t.Fatalf("%+v, %v", r, err)
	}
	if a := w.agent("alice"); a.State != holdfast.AgentRunning || a.Level != holdfast.Baseline {
		t.Errorf("the answer did not let it go on, or gave it back its trust: %+v", a)
	}
	w.advance(10 * review.Lifetime)
	if n, err := w.k.Sweep(); n != 0 || err != nil {
		t.Fatalf("%d expired, %v", n, err)
	}
	if _, err := review.RuleOf(&r, review.Choice{Exact: true}); err == nil {
		t.Error("a rule was made of it")
	}
	// What it shows, sent as a request, is another question: it is held.
	high, err := w.cross(w.req("test/high", r.Preview))
	wants(t, err, holdfast.KindHeld)
	if high.Review == id {
		t.Error("the attempt's review was taken for a request's")
	}
	if _, err := w.cross(w.req("test/low", r.Preview)); err != nil {
		t.Error(err)
	}
	steps, err := w.k.Life(t.Context(), id)
	if err != nil || len(steps) != 3 || steps[0].Event != "proposed" || steps[2].How != "approved" || steps[2].Who != "bob" {
		t.Errorf("%+v, %v", steps, err)
	}
}

// TestD21_aRejectedReviewClosesNothing: the crossing has its entry already.
func TestD21_aRejectedReviewClosesNothing(t *testing.T) {
	w := newWorld(t, "")
	out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), breaksOut)
	wants(t, err, holdfast.KindEscape)
	_, d := w.attempt(out.Crossing)
	r, err := w.k.Decide(w.say(operator.Reject, d["review"].(string), "it meant it"))
	if err != nil || r.State != review.Rejected || len(w.entries(holdfast.Local)) != 1 {
		t.Fatalf("%+v, %v, %d entries", r, err, len(w.entries(holdfast.Local)))
	}
}
