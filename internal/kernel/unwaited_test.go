package kernel_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
)

// hurry notes of each update whether somebody waits for it.
type hurry struct {
	*sqlite.Store
	mu     sync.Mutex
	waited []bool // guarded by mu
}

func (h *hurry) Update(ctx context.Context, fn func(kernel.Tx) error) error {
	h.noteUpdate(true)
	return h.Store.Update(ctx, fn)
}

func (h *hurry) UpdateUnhurried(ctx context.Context, fn func(kernel.Tx) error) error {
	h.noteUpdate(false)
	return h.Store.UpdateUnhurried(ctx, fn)
}

func (h *hurry) noteUpdate(waited bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waited = append(h.waited, waited)
}

// TestUnwaitedEntry: an entry waits for another's commit only where whoever asked
// has all that he gets, the act went well, and nothing that a later request is
// judged by stands in its transaction. A begin never waits.
func TestUnwaitedEntry(t *testing.T) {
	h := new(hurry)
	w := newWorld(t, "", func(c *kernel.Config, w *world) { h.Store, c.Store = w.store, h })
	used := func(n int64) kernel.Act {
		return func(context.Context) (holdfast.Output, error) {
			return holdfast.Output{Used: map[holdfast.Resource]int64{holdfast.LLMTokens: n}}, nil
		}
	}
	fails := func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, errors.New("no") }
	for _, c := range []struct {
		name, boundary string
		act            kernel.Act
		unwaited, want bool
	}{
		{"somebody waits", "test/low", ok, false, true},
		{"nobody waits", "test/low", ok, true, false},
		{"it failed", "test/low", fails, true, true},
		{"all that was reserved is used", "test/cost", used(10), true, false},
		{"more is used", "test/cost", used(11), true, false},
		{"something is given back", "test/cost", used(9), true, true},
		{"it is kept to be given again", "test/replay", used(10), true, true},
		{"its output does not pass", "test/output", used(0), true, true},
	} {
		req := w.req(c.boundary, `{"n":1}`)
		req.Unwaited = c.unwaited
		h.waited = nil
		o, _ := w.k.Cross(t.Context(), req, c.act)
		if len(h.waited) != 2 || !h.waited[0] || h.waited[1] != c.want {
			t.Errorf("%s: of its begin and its entry somebody waits for %v, want [true %v]", c.name, h.waited, c.want)
		}
		if o.Verdict != holdfast.Allow {
			t.Errorf("%s: %v", c.name, o.Verdict)
		}
	}
	req := w.req("test/high", `{}`)
	req.Unwaited = true
	o, _ := w.cross(req)
	w.approve(o.Review)
	h.waited = nil
	if _, err := w.cross(req); err != nil || len(h.waited) != 2 || !h.waited[1] {
		t.Errorf("an approved one: %v, somebody waits for %v", err, h.waited)
	}
}

// unwaited crosses, and returns when the act has, whose entry follows.
func (w *world) unwaited(req holdfast.Request) (ended chan error) {
	req.Unwaited = true
	acted, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		_, err := w.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
			defer once.Do(func() { close(acted) })
			return ok(ctx)
		})
		once.Do(func() { close(acted) })
		ended <- err
	}()
	<-acted
	return ended
}

// TestUnwaitedBudget: requests that each follow the end of the act before, and not
// its entry, get all of a budget and no more.
func TestUnwaitedBudget(t *testing.T) {
	w := newWorld(t, "")
	var all []chan error
	for range 7 {
		all = append(all, w.unwaited(w.req("test/cost", `{}`))) // 10 of 60
	}
	for i, ended := range all {
		if err := <-ended; (err == nil) != (i < 6) || i == 6 && holdfast.KindOf(err) != holdfast.KindBounds {
			t.Errorf("crossing %d: %v", i, err)
		}
	}
	done, denied := 0, 0
	for _, e := range w.entries(holdfast.Local) {
		switch e.Outcome {
		case ledger.Done:
			done++
		case ledger.Denied:
			denied++
		}
	}
	if done != 6 || denied != 1 {
		t.Errorf("%d entries say done and %d denied", done, denied)
	}
}

// TestUnwaitedHalt: a halt that comes while an entry waits is not held up by it,
// and the entry says what the act came to.
func TestUnwaitedHalt(t *testing.T) {
	w := newWorld(t, "")
	ended := w.unwaited(w.req("test/low", `{}`))
	if _, err := w.k.Halt("user:carol", "enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil && holdfast.KindOf(err) != holdfast.KindHalted {
		t.Error(err)
	}
	if es := w.entries(holdfast.Local); len(es) != 1 || es[0].Outcome != ledger.Done {
		t.Errorf("the entries: %+v", es)
	}
}

// TestUnwaitedCrash: what a crash between the act's end and the entry's commit
// leaves is the begin, which recovery closes as unknown.
func TestUnwaitedCrash(t *testing.T) {
	w := newWorld(t, "")
	for range 100 {
		dir := t.TempDir()
		ended := w.unwaited(w.req("test/low", `{}`))
		before := len(w.entries(holdfast.Local))
		err := w.store.Backup(t.Context(), filepath.Join(dir, "holdfast.db")) // what is durable now
		if err := errors.Join(err, <-ended); err != nil {
			t.Fatal(err)
		}
		if before == len(w.entries(holdfast.Local)) {
			continue // on a slow day the entry was there already
		}
		es := reopen(t, dir, "").entries(holdfast.Local)
		last := es[len(es)-1]
		if last.Outcome == ledger.Done {
			continue
		}
		if last.Outcome != ledger.Unknown || last.BeginSeq == nil || len(es) != before+1 {
			t.Errorf("recovery makes it %s of %v", last.Outcome, last.BeginSeq)
		}
		return
	}
	t.Error("every entry was durable before anybody could look")
}
