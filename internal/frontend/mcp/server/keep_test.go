package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// clock stands still but for sleepers.
type clock struct {
	mu    sync.Mutex
	t     time.Time
	slept []time.Duration
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t, c.slept = c.t.Add(d), append(c.slept, d)
	return ctx.Err()
}

func (c *clock) pass(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.t = c.t.Add(d) }

func keeper(role string, before func(context.Context) error) (*Keeper, *clock) {
	k := Keep(Command{Name: "kept", Argv: []string{os.Args[0]}, Env: []string{roleEnv + "=" + role}, Grace: 50 * time.Millisecond,
		Log:  slog.New(slog.DiscardHandler),
		Mask: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("module"), []byte("[masked]")) }}, before)
	c := &clock{t: time.Unix(1e9, 0)}
	k.now, k.sleep = c.now, c.sleep
	return k, c
}

func endOf(t *testing.T, p *Process) {
	t.Helper()
	if _, err := io.Copy(io.Discard, p); err != nil {
		t.Fatal(err)
	}
	p.Close()
}

// TestKeeperGivesUp: the delays double, the eleventh start is refused with the
// last words, and made again once the first end is ten minutes old.
func TestKeeperGivesUp(t *testing.T) {
	asked := 0
	k, c := keeper("exit3", func(context.Context) error { asked++; return nil })
	for i := range maxEnds {
		p, err := k.Dial(t.Context())
		if err != nil {
			t.Fatalf("start %d: %v", i+1, err)
		}
		endOf(t, p)
	}
	want := []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600}
	for i := range want {
		if i >= len(c.slept) || c.slept[i] != want[i]*time.Millisecond {
			t.Fatalf("slept %v", c.slept)
		}
	}
	if k.delay != maxDelay {
		t.Errorf("the next delay is %v", k.delay)
	}
	p, err := k.Dial(t.Context())
	if holdfast.KindOf(err) != holdfast.KindOperation {
		t.Fatalf("got %v, %v", p, err)
	}
	for _, part := range []string{`"kept" ended 10 times within 10 minutes`, "it said last: cannot start: no such [masked]"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %q", part, err)
		}
	}
	if asked != maxEnds {
		t.Errorf("asked %d times", asked)
	}
	c.pass(endsWindow)
	if p, err = k.Dial(t.Context()); err != nil {
		t.Fatalf("after the window: %v", err)
	}
	endOf(t, p)
}

// TestKeeperForgives: a server that was up for a minute is started at once's
// delay again, and one that its owner closed never counts.
func TestKeeperForgives(t *testing.T) {
	k, c := keeper("echo", nil)
	for range 3 * maxEnds {
		p, err := k.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
	}
	if len(c.slept) > 0 || len(k.ends) > 0 {
		t.Errorf("slept %v, ends %v", c.slept, k.ends)
	}
	for _, up := range []time.Duration{0, time.Second, settled, 0} {
		k.end(nil, up, "x")
	}
	if k.delay != 2*firstDelay {
		t.Errorf("delay %v", k.delay)
	}
}

// TestKeeperServerBreaks: what the server broke before its owner closed it
// counts as its own end.
func TestKeeperServerBreaks(t *testing.T) {
	k, _ := keeper("mute", nil)
	p, err := k.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	endOf(t, p)
	if len(k.ends) != 1 {
		t.Errorf("%d ends", len(k.ends))
	}
}

func TestKeeperIsRefused(t *testing.T) {
	halted := &holdfast.Error{Kind: holdfast.KindHalted, Why: "halted"}
	k, _ := keeper("echo", func(context.Context) error { return halted })
	if p, err := k.Dial(t.Context()); !errors.Is(err, halted) {
		t.Errorf("got %v, %v", p, err)
	}
	if len(k.ends) != 0 {
		t.Error("a refused start counts as an end")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k, _ = keeper("echo", nil)
	k.end(nil, 0, "x")
	if p, err := k.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", p, err)
	}
	k = Keep(Command{Name: "kept", Argv: []string{"holdfast-no-such-server"}}, nil)
	c := &clock{t: time.Unix(1e9, 0)}
	k.now, k.sleep = c.now, c.sleep
	for range maxEnds {
		if _, err := k.Dial(t.Context()); holdfast.KindOf(err) != holdfast.KindNotFound {
			t.Fatal(err)
		}
	}
	if _, err := k.Dial(t.Context()); holdfast.KindOf(err) != holdfast.KindOperation || !strings.Contains(err.Error(), "did not start") {
		t.Error(err)
	}
}

// TestKeeperInTrouble: many users of a server that does not stay up start it
// one after the other.
func TestKeeperInTrouble(t *testing.T) {
	var starts sync.Map
	k, c := keeper("exit3", nil)
	k.before = func(context.Context) error { starts.Store(c.now(), true); return nil }
	var wg sync.WaitGroup
	k.end(nil, 0, "x")
	for range 30 {
		wg.Go(func() {
			if p, err := k.Dial(context.Background()); err == nil {
				_, _ = io.Copy(io.Discard, p)
				p.Close()
			}
		})
	}
	wg.Wait()
	if _, err := k.Dial(t.Context()); holdfast.KindOf(err) != holdfast.KindOperation {
		t.Errorf("30 users: %v", err)
	}
}

// TestKeptEnvironment: each start has the clean environment, the log and the
// mask of the first.
func TestKeptEnvironment(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "leak")
	k, _ := keeper("env", nil)
	for range 3 {
		p, err := k.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if env := line(t, p); strings.Contains(env, "leak") || !strings.Contains(env, "PATH=") || strings.Count(env, markName) != 1 {
			t.Errorf("the server sees %s", env)
		}
		p.Close()
	}
	var b syncBuffer
	k, _ = keeper("exit3", nil)
	k.command.Log = slog.New(slog.NewTextHandler(&b, nil))
	for range 3 {
		p, err := k.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		endOf(t, p)
	}
	if n := strings.Count(b.String(), "no such [masked]"); n != 3 {
		t.Errorf("%d lines in the log: %s", n, b.String())
	}
}
