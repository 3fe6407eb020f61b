package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// The driver's fault table: at every transaction of a story that crosses, is
// refused, holds, is approved, acts and replays, the store fails at each of its
// steps, persisted or not; then the machine restarts. Afterwards:
//
//   - nothing acted without a durable begin,
//   - every begin has exactly one entry, and what was cut in the middle is
//     unknown, never done,
//   - what the caller was told is in the ledger,
//   - no budget was spent twice, and none that was acknowledged was lost,
//   - and the same story can be told again from the beginning.
func TestFaultTable(t *testing.T) {
	steps := []string{"begin", "flush", "commit", "committed"}
	for _, step := range steps {
		for at := 1; ; at++ {
			reached := false
			t.Run(fmt.Sprintf("%s_of_transaction_%d", step, at), func(t *testing.T) {
				reached = faultOnce(t, step, at)
			})
			if !reached {
				if at < 8 {
					t.Fatalf("the story has only %d transactions", at-1)
				}
				break
			}
		}
	}
}

// story is everything that writes; it stops at the first error that is a
// failed write. acts counts what the hand really did, told what callers heard.
type story struct {
	w     *world
	acts  map[string]int // by payload
	told  map[string]ledger.Outcome
	tried int
}

func (s *story) act(payload string) kernel.Act {
	return func(context.Context) (holdfast.Output, error) {
		s.acts[payload]++
		return holdfast.Output{Body: []byte(`{"ok":true}`), Used: map[holdfast.Resource]int64{holdfast.LLMTokens: 7}}, nil
	}
}

func (s *story) cross(boundary, payload, key string) (*holdfast.Outcome, bool) {
	req := s.w.req(boundary, payload)
	req.IdempotencyKey = key
	s.tried++
	out, err := s.w.k.Cross(s.w.t.Context(), req, s.act(payload))
	kind := holdfast.KindOf(err)
	switch {
	case kind == holdfast.KindWALWrite:
		return out, false
	case err == nil && out.Replayed:
		s.told[out.Crossing] = ledger.Replayed
	case err == nil:
		s.told[out.Crossing] = ledger.Done
	case out.Verdict == holdfast.Deny:
		s.told[out.Crossing] = ledger.Denied
	}
	return out, true
}

func (s *story) tell() bool {
	if _, ok := s.cross("test/cost", `{"step":1}`, ""); !ok {
		return false
	}
	if _, ok := s.cross("test/never", `{"step":2}`, ""); !ok {
		return false
	}
	if _, ok := s.cross("test/cost", `{"step":3}`, "key-3"); !ok {
		return false
	}
	if _, ok := s.cross("test/cost", `{"step":3}`, "key-3"); !ok {
		return false
	}
	out, ok := s.cross("test/high", `{"step":4}`, "")
	if !ok {
		return false
	}
	if out.Review == "" {
		return true
	}
	if _, err := s.w.k.Decide(s.w.say(operator.Approve, out.Review, "")); err != nil {
		return holdfast.KindOf(err) != holdfast.KindWALWrite
	}
	_, ok = s.cross("test/high", `{"step":4}`, "")
	return ok
}

func faultOnce(t *testing.T, step string, at int) (reached bool) {
	w := newWorld(t, "")
	s := &story{w: w, acts: map[string]int{}, told: map[string]ledger.Outcome{}}
	n := 0
	w.mu.Lock()
	w.fault = func(now string) error {
		if now == "begin" {
			n++
		}
		if n == at && now == step {
			reached = true
			return errors.New("injected")
		}
		return nil
	}
	w.mu.Unlock()
	whole := s.tell()
	if whole == reached {
		t.Fatalf("fault reached: %v, story told whole: %v", reached, whole)
	}
	w.store.Close()
	again := reopen(t, w.dir, "")
	s.check(t, again)
	if _, err := again.cross(again.req("test/low", `{"after":1}`)); err != nil {
		t.Fatalf("no progress after the restart: %v", err)
	}
	return reached
}

func (s *story) check(t *testing.T, w *world) {
	t.Helper()
	begins, entries := map[string]string{}, map[string]*ledger.Entry{}
	reserved := int64(0)
	w.leaves(holdfast.Local, func(l ledger.Stored) {
		switch l.Kind {
		case ledger.KindBegin:
			b, err := ledger.ParseBegin(l.Record)
			if err != nil {
				t.Fatal(err)
			}
			begins[b.ID] = b.ExactHash
		case ledger.KindEntry:
			e, err := ledger.ParseEntry(l.Record)
			if err != nil {
				t.Fatal(err)
			}
			if entries[e.ID] != nil {
				t.Errorf("crossing %s has two entries", e.ID)
			}
			entries[e.ID] = e
			for _, u := range e.Uses {
				if u.Used != nil && u.Draw.Limit == 100 {
					reserved += *u.Used
				}
			}
		}
	})
	acts := 0
	for _, n := range s.acts {
		if n > 1 {
			t.Errorf("acted %d times on one payload", n)
		}
		acts += n
	}
	if acts > len(begins) {
		t.Errorf("%d acts, %d begins", acts, len(begins))
	}
	for id := range begins {
		if e := entries[id]; e == nil {
			t.Errorf("crossing %s began and has no entry", id)
		}
	}
	for id, outcome := range s.told {
		if e := entries[id]; e == nil || e.Outcome != outcome {
			t.Errorf("the caller heard %s of %s; the ledger has %+v", outcome, id, e)
		}
	}
	for id, e := range entries {
		if e.Outcome == ledger.Done && s.told[id] != ledger.Done && begins[id] == "" {
			t.Errorf("crossing %s is done without a begin", id)
		}
	}
	if got := w.tokensUsed(t); got != reserved {
		t.Errorf("the counter says %d, the ledger %d", got, reserved)
	}
	for _, r := range w.reviews(t) {
		if r.State == review.Used && entries[r.Crossing] == nil {
			t.Errorf("review %s is used and its crossing has no entry", r.ID)
		}
	}
}

func (w *world) reviews(t *testing.T) []review.Review {
	t.Helper()
	rs, err := w.k.Reviews(t.Context(), "", review.None)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// tokensUsed is the tenant's llm_tokens counter.
func (w *world) tokensUsed(t *testing.T) int64 {
	t.Helper()
	draws := w.plan(holdfast.LLMTokens, 1)
	for _, d := range draws {
		if d.Limit == 100 {
			return w.used(d)
		}
	}
	t.Fatal("no such draw")
	return 0
}

// TestPoisonedLedgerIsDenied: after a write that failed K6 denies, and says so before
// anything is begun.
func TestPoisonedLedgerIsDenied(t *testing.T) {
	w := newWorld(t, "")
	w.mu.Lock()
	w.fault = func(string) error { return errors.New("the disk is gone") }
	w.mu.Unlock()
	if _, err := w.never(w.req("test/low", `{}`)); err == nil || w.store.Poisoned() == nil {
		t.Fatalf("the store still writes: %v", err)
	}
	out, err := w.k.Explain(t.Context(), w.req("test/low", `{}`))
	if err != nil || len(out.Opinions) != 8 {
		t.Fatalf("%+v %v", out, err)
	}
	op := out.Opinions[5]
	if op.Gate != holdfast.K6 || op.Verdict != holdfast.Deny ||
		op.Kind != holdfast.KindWALWrite || op.State != "WRITE_FAILED" {
		t.Errorf("%+v", op)
	}
}
