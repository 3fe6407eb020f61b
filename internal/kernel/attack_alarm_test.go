package kernel_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// An agent whose budget is used up brings an idempotency key again with another
// payload: an honest refusal. The second verifier must not call it wrong.
func TestAttackFalseAlarmMismatchWithoutRoom(t *testing.T) {
	w := newWorld(t, "")
	step := func(payload, key string) error {
		r := w.req("agent/step", payload)
		r.IdempotencyKey = key
		_, err := w.cross(r)
		return err
	}
	if err := step(`{"n":1}`, "k"); err != nil {
		t.Fatal(err)
	}
	if err := step(`{"n":2}`, ""); err != nil {
		t.Fatal(err)
	}
	wants(t, step(`{"n":3}`, "k"), holdfast.KindMismatch)
	nothingWrong(t, w)
}

// A key that was freed, because the hand never ran, is asked for again after
// the clock was set back.
func TestAttackFalseAlarmFreedKeyAndTheClockBack(t *testing.T) {
	s := &between{}
	w := newWorld(t, "", interposed(s))
	w.passes(w.req("test/low", `{}`))
	pause := func() {
		if _, err := w.k.Pause(holdfast.Local, "alice", "carol", "stop"); err != nil {
			t.Error(err)
		}
	}
	keyed := func(payload string) holdfast.Request {
		r := w.req("test/cost", payload)
		r.IdempotencyKey = "k"
		return r
	}
	s.then.Store(&pause)
	_, err := w.k.Cross(t.Context(), keyed(`{"n":1}`), never(t))
	wants(t, err, holdfast.KindPaused)
	if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice"})); err != nil {
		t.Fatal(err)
	}
	w.advance(-time.Hour)
	_, err = w.cross(keyed(`{"n":2}`))
	t.Log("the key that was freed, an hour earlier:", err)
	nothingWrong(t, w)
}

// gated is a store whose updates wait, each for its own word.
type gated struct {
	kernel.Store
	mu   sync.Mutex
	came chan chan struct{}
}

func (s *gated) Update(ctx context.Context, fn func(kernel.Tx) error) error {
	s.mu.Lock()
	came := s.came
	s.mu.Unlock()
	if came != nil {
		go_ := make(chan struct{})
		came <- go_
		<-go_
	}
	return s.Store.Update(ctx, fn)
}

// The clock jumps an hour ahead, as after a suspend, while one crossing waits
// for its begin; another is judged before that begin and begins after it.
func TestAttackFalseAlarmJumpBetweenTwoBegins(t *testing.T) {
	s := &gated{}
	w := newWorld(t, "", func(c *kernel.Config, _ *world) { s.Store = c.Store; c.Store = s })
	w.passes(w.req("test/low", `{}`))
	came := make(chan chan struct{})
	s.mu.Lock()
	s.came = came
	s.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = w.cross(w.req("test/cost", `{"n":1}`)) })
	first := <-came
	w.advance(time.Hour)
	wg.Go(func() { _, _ = w.cross(w.req("test/cost", `{"n":2}`)) })
	second := <-came
	s.mu.Lock()
	s.came = nil
	s.mu.Unlock()
	close(first)
	for range 500 {
		if w.used(w.plan(holdfast.LLMTokens, 10)[0]) == 10 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(second)
	wg.Wait()
	nothingWrong(t, w)
}

// Everything is halted after a request was judged and before it begins: no
// begin follows the halt in the ledger.
func TestAttackFalseAlarmHaltBeforeBegin(t *testing.T) {
	s := &gated{}
	w := newWorld(t, "", func(c *kernel.Config, _ *world) { s.Store = c.Store; c.Store = s })
	came := make(chan chan struct{})
	s.mu.Lock()
	s.came = came
	s.mu.Unlock()
	refused := make(chan error, 1)
	go func() {
		_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), never(t))
		refused <- err
	}()
	begin := <-came
	s.mu.Lock()
	s.came = nil
	s.mu.Unlock()
	if _, err := w.k.Halt("carol", "now"); err != nil {
		t.Fatal(err)
	}
	close(begin)
	wants(t, <-refused, holdfast.KindHalted)
	if r := nothingWrong(t, w); r.Totals.Begins != 0 {
		t.Fatalf("%d begins after the halt", r.Totals.Begins)
	}
}
