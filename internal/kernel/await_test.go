package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// awaited starts n callers that await the review and gives their answers.
func (w *world) awaited(ctx context.Context, id string, n int) <-chan error {
	out := make(chan error, n)
	for range n {
		go func() { out <- w.k.Await(ctx, id) }()
	}
	return out
}

// Whoever awaits a review hears of each way in which it stops waiting for a
// person, at once and not by looking again.
func TestK7_D11_awaiting_ends_with_every_answer(t *testing.T) {
	cases := map[string]func(t *testing.T, w *world, id string){
		"approved": func(_ *testing.T, w *world, id string) { w.approve(id) },
		"rejected": func(t *testing.T, w *world, id string) {
			if _, err := w.k.Decide(w.say(operator.Reject, id, "no")); err != nil {
				t.Fatal(err)
			}
		},
		"changes": func(t *testing.T, w *world, id string) {
			if _, err := w.k.Decide(w.say(operator.Changes, id, "otherwise")); err != nil {
				t.Fatal(err)
			}
		},
		"expired": func(t *testing.T, w *world, _ string) {
			w.advance(25 * time.Hour)
			if n, err := w.k.Sweep(); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		},
		"another_policy": func(t *testing.T, w *world, _ string) {
			p := *w.policy
			p.Version = strings.Repeat("2", 64)
			if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.k.LookSeldom()
			h := w.held(w.req("test/high", `{}`))
			many := testrepeat.Times(200, 30)
			answers := w.awaited(t.Context(), h.Review, many)
			time.Sleep(20 * time.Millisecond)
			if len(answers) != 0 {
				t.Fatal("somebody stopped waiting before anything happened")
			}
			end(t, w, h.Review)
			for range many {
				if err := <-answers; err != nil {
					t.Fatal(err)
				}
			}
			if err := w.k.Await(t.Context(), h.Review); err != nil {
				t.Fatal(err) // and who comes later does not wait
			}
		})
	}
}

// A tool that changes ends the wait for an answer about it: nobody can give it
// any more.
func TestK7_D37_awaiting_ends_when_the_tool_changes(t *testing.T) {
	w := newWorld(t, "")
	w.observe(tool("pay", "aaaa", holdfast.High))
	h := w.held(w.req("mcp/srv/pay", `{}`))
	answers := w.awaited(t.Context(), h.Review, 1)
	time.Sleep(10 * time.Millisecond)
	w.observe(tool("pay", "bbbb", holdfast.High))
	if err := <-answers; err != nil {
		t.Fatal(err)
	}
}

// A halt ends the wait at once, whoever set it, and nothing else: the review waits
// on, and is answered while halted as before.
func Test001_Layer4_awaiting_ends_with_a_halt(t *testing.T) {
	for name, halt := range map[string]func(w *world) error{
		"by the kernel": func(w *world) error { _, err := w.k.Halt("carol", "enough"); return err },
		"by a file": func(w *world) error {
			if err := os.WriteFile(filepath.Join(w.dir, "HALT"), nil, 0o600); err != nil {
				return err
			}
			_, err := w.k.Halted() // as who watches the latch calls it
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			h := w.held(w.req("test/high", `{}`))
			answers := w.awaited(t.Context(), h.Review, 3)
			time.Sleep(20 * time.Millisecond)
			if err := halt(w); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				wants(t, <-answers, holdfast.KindHalted)
			}
			w.approve(h.Review)
			if err := w.k.Await(t.Context(), h.Review); err != nil {
				t.Errorf("an answer that was given while halted is not heard: %v", err)
			}
		})
	}
}

// Deferring keeps everybody waiting; a context ends the wait with its cause; a
// review that is not there is an error by name.
func TestK7_awaiting_goes_on_and_ends_with_its_context(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	answers := w.awaited(ctx, h.Review, 3)
	if _, err := w.k.Decide(w.say(operator.Defer, h.Review, "later")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	if len(answers) != 0 {
		t.Fatal("a deferred review waits for nobody")
	}
	cancel(enough)
	for range 3 {
		if err := <-answers; !errors.Is(err, enough) {
			t.Fatal(err)
		}
	}
	wants(t, w.k.Await(t.Context(), "rv_0000000000"), holdfast.KindNotFound)
}

// A watcher hears of new questions, decisions, halts and agents, and of nothing
// once it has ended; a slow one holds nobody up.
func TestK7_watching(t *testing.T) {
	w := newWorld(t, "")
	ch, end := w.k.Watch()
	heard := func(what string, do func()) {
		t.Helper()
		do()
		select {
		case <-ch:
		case <-time.After(time.Minute):
			t.Fatalf("nothing was heard of %s", what)
		}
		for len(ch) > 0 {
			<-ch
		}
	}
	var review string
	heard("a question", func() { review = w.held(w.req("test/high", `{}`)).Review })
	heard("a decision", func() { w.approve(review) })
	heard("its use", func() { w.passes(w.req("test/high", `{}`)) })
	heard("a pause", func() {
		if _, err := w.k.Pause(holdfast.Local, "alice", "user:carol", ""); err != nil {
			t.Fatal(err)
		}
	})
	heard("an agent that goes on", func() {
		if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice"})); err != nil {
			t.Fatal(err)
		}
	})
	heard("a halt", func() {
		if _, err := w.k.Halt("user:carol", "smoke"); err != nil {
			t.Fatal(err)
		}
	})
	heard("a resume", func() {
		if err := w.k.Resume(w.sign(operator.Statement{Act: operator.Resume})); err != nil {
			t.Fatal(err)
		}
	})
	for i := range 5 { // nobody receives
		w.held(w.req("test/high", fmt.Sprintf(`{"i":%d}`, i)))
	}
	<-ch
	end()
	w.held(w.req("test/high", `{"i":9}`))
	if len(ch) != 0 {
		t.Fatal("heard after the end")
	}
}
