package kernel_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

// tricky is a latch that fails, and that does something while it is asked.
type tricky struct {
	*latch.Latch
	setErr, clearErr error
	clear            func() // before Clear
	asked            func() // after Halted, once
}

func (l *tricky) Halted() bool {
	h := l.Latch.Halted()
	if f := l.asked; f != nil {
		l.asked = nil
		f()
	}
	return h
}

func (l *tricky) Set(who, why string, when time.Time) error {
	return errors.Join(l.Latch.Set(who, why, when), l.setErr)
}

func (l *tricky) Clear() error {
	if l.clear != nil {
		l.clear()
	}
	return errors.Join(l.Latch.Clear(), l.clearErr)
}

func latched(l *tricky) option {
	return func(c *kernel.Config, w *world) { l.Latch = w.latch; c.Latch = l }
}

func TestD34_a_halt_at_the_last_instant(t *testing.T) {
	l := &tricky{}
	s := &between{}
	w := newWorld(t, "", latched(l), interposed(s))
	w.passes(w.req("test/low", `{}`))
	begun := func() {
		// activate has asked the latch, and is told that nothing is halted.
		l.asked = func() {
			if n, err := w.k.Halt("bob", "stop"); n != 1 || err != nil {
				t.Errorf("cut %d, %v", n, err)
			}
		}
	}
	s.then.Store(&begun)
	_, err := w.k.Cross(t.Context(), w.req("test/cost", `{}`), never(t))
	wants(t, err, holdfast.KindHalted)
	w.unstarted(ledger.Halted, holdfast.KindHalted)
}

func TestD34_a_halt_is_not_lost_beside_a_resume(t *testing.T) {
	l := &tricky{}
	w := newWorld(t, "", latched(l))
	if _, err := w.k.Halt("bob", "first"); err != nil {
		t.Fatal(err)
	}
	word := w.sign(operator.Statement{Act: operator.Resume})
	second := make(chan error, 1)
	l.clear = func() {
		go func() {
			_, err := w.k.Halt("carol", "second, for another reason")
			second <- err
		}()
		time.Sleep(20 * time.Millisecond)
	}
	if err := w.k.Resume(word); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	s, err := w.latch.Read()
	if err != nil || !s.Halted || s.Who != "carol" {
		t.Fatalf("the second halt left %+v, %v", s, err)
	}
	if n := len(w.events(holdfast.Local, "halted")); n != 2 {
		t.Errorf("%d halts are recorded", n)
	}
	l.clear = nil
	if err := w.k.Resume(w.sign(operator.Statement{Act: operator.Resume})); err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("test/low", `{}`))
}

// What could not be lifted is recorded to hold still, and goes on at no word of a ledger
// that says otherwise; what was lifted is told to be, whatever else failed.
func TestD34_what_is_not_lifted_is_not_resumed(t *testing.T) {
	l := &tricky{}
	w := newWorld(t, "", latched(l))
	inside := filepath.Join(w.latch.Path(), "x")
	if err := os.MkdirAll(inside, 0o700); err != nil { // by hand
		t.Fatal(err)
	}
	if _, err := w.k.Halted(); err != nil {
		t.Fatal(err)
	}
	wants(t, w.k.Resume(w.sign(operator.Statement{Act: operator.Resume})), holdfast.KindInternal)
	all := w.events(holdfast.Local, "")
	if last := all[len(all)-1]; last.Name != "halted" || !w.latch.Halted() {
		t.Errorf("the ledger ends with %s, and the latch is set: %v", last.Name, w.latch.Halted())
	}
	if err := os.Remove(inside); err != nil {
		t.Fatal(err)
	}
	if err := w.k.Resume(w.sign(operator.Statement{Act: operator.Resume})); err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("test/low", `{}`))

	if _, err := w.k.Halt("bob", "stop"); err != nil {
		t.Fatal(err)
	}
	l.clearErr = errors.New("no sync")
	wants(t, w.k.Resume(w.sign(operator.Statement{Act: operator.Resume})), holdfast.KindInternal)
	told := 0
	w.mu.Lock()
	for _, n := range w.notices {
		if n.Event == "resumed" {
			told++
		}
	}
	w.mu.Unlock()
	if told != 2 {
		t.Errorf("resumed twice, and told %d times", told)
	}
	w.passes(w.req("test/low", `{}`))
}

func TestD34_an_old_word_lifts_no_newer_halt(t *testing.T) {
	w := newWorld(t, "")
	halts := func(who string) {
		t.Helper()
		if _, err := w.k.Halt(who, "escape"); err != nil {
			t.Fatal(err)
		}
	}
	halts("bob")
	word, kept := w.sign(operator.Statement{Act: operator.Resume}), w.sign(operator.Statement{Act: operator.Resume})
	if err := w.k.Resume(word); err != nil {
		t.Fatal(err)
	}
	w.advance(time.Minute)
	halts("carol")
	wants(t, w.k.Resume(kept), holdfast.KindConflict)

	// The latch keeps the first one's time; the second halt counts all the same.
	between := w.sign(operator.Statement{Act: operator.Resume})
	halts("dave")
	wants(t, w.k.Resume(between), holdfast.KindConflict)
	if !w.latch.Halted() {
		t.Fatal("an old word lifted a newer halt")
	}
	if err := w.k.Resume(w.sign(operator.Statement{Act: operator.Resume})); err != nil {
		t.Fatal(err)
	}

	// A latch that claims to be of tomorrow can still be lifted.
	if err := w.latch.Set("mallory", "for ever", w.now().Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.advance(time.Millisecond)
	if err := w.k.Resume(w.sign(operator.Statement{Act: operator.Resume})); err != nil {
		t.Fatal(err)
	}
}

func TestD34_a_halt_on_a_full_disk_cuts(t *testing.T) {
	full := errors.New("halted without a reason: no space left on device")
	l := &tricky{setErr: full}
	w := newWorld(t, "", latched(l))
	x, _, err := w.k.Enter(t.Context(), w.req("test/low", `{}`), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	n, err := w.k.Halt("bob", "stop")
	if n != 1 || !errors.Is(err, full) || x.Context().Err() == nil {
		t.Errorf("cut %d, %v; the crossing in flight: %v", n, err, x.Context().Err())
	}
	if len(w.events(holdfast.Local, "halted")) != 1 {
		t.Error("the halt is not recorded")
	}
}

func TestD34_agents_do_not_read_the_latch(t *testing.T) {
	w := newWorld(t, "")
	if _, err := w.k.Halt("bob", "alice is under suspicion"); err != nil {
		t.Fatal(err)
	}
	_, err := w.cross(w.req("test/low", `{}`))
	wants(t, err, holdfast.KindHalted)
	e := w.entries(holdfast.Local)[0]
	if told := fmt.Sprint(err, e.Why, e.Opinions); strings.Contains(told, "suspicion") || strings.Contains(told, "bob") {
		t.Errorf("the agent is told %s", told)
	}
}
