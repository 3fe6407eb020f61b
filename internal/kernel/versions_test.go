package kernel_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// keeper keeps versions as a test tells it to. What the daemon's does with real
// work trees stands in its own tests.
type keeper struct {
	kernel.Host
	before func(context.Context) error

	mu    sync.Mutex
	backs int             // guarded by mu; how often the work was put back
	goes  int             // guarded by mu; how often what was kept was let go of
	ended []kernel.Acting // guarded by mu
}

func (k *keeper) Bind(h kernel.Host) { k.Host = h }

func (k *keeper) Spec() kernel.Spec {
	own := kernel.Reserved{Prefix: "snapshot/", Why: "only Holdfast itself"}
	return kernel.Spec{Name: "versions", Boundaries: []kernel.Reserved{own}}
}

func (k *keeper) Before(ctx context.Context, _ kernel.Acting) (func(context.Context, bool) (string, error), error) {
	if k.before != nil {
		if err := k.before(ctx); err != nil {
			return nil, err
		}
	}
	return func(_ context.Context, failed bool) (string, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if !failed {
			k.goes++
			return "", nil
		}
		k.backs++
		return "it was put back", nil
	}, nil
}

func (k *keeper) Ended(a kernel.Acting) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = append(k.ended, a)
}

func keeping(k *keeper) option {
	return func(c *kernel.Config, _ *world) {
		if k != nil {
			c.Versions = k
		}
		c.Policy.Contracts = append(c.Policy.Contracts,
			holdfast.Contract{Boundary: "test/back", Risk: holdfast.Low, OnError: kernel.OnErrorRollback, Source: "test:30"},
			holdfast.Contract{Boundary: "snapshot/commit", Risk: holdfast.Low, Permissions: []string{"goal:read"}, Source: "test:31"})
	}
}

// What fails is put back, and its caller told so; what went well is not.
func TestVersions_onErrorRollback(t *testing.T) {
	k := &keeper{}
	w := newWorld(t, "", keeping(k))
	if _, err := w.cross(w.req("test/back", `{}`)); err != nil || k.backs != 0 || k.goes != 1 {
		t.Fatal(err, k.backs, k.goes)
	}
	_, err := w.k.Cross(t.Context(), w.req("test/back", `{"n":1}`), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{}, errors.New("it broke")
	})
	if err == nil || !strings.Contains(err.Error(), "it broke; it was put back") || k.backs != 1 {
		t.Errorf("%v, put back %d times", err, k.backs)
	}
	if he := (*holdfast.Error)(nil); !errors.As(err, &he) || !he.PutBack {
		t.Errorf("%+v does not report PutBack", he)
	}
	o, err := w.k.Cross(t.Context(), w.req("test/back", `{"n":2}`), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{}`), ExitCode: 2}, nil
	})
	if err != nil || o.Output == nil || o.Output.ExitCode != 2 || o.PutBack != "it was put back" || k.backs != 2 {
		t.Errorf("a program that failed: %+v, %v, put back %d times", o, err, k.backs)
	}
	if len(k.ended) != 3 || k.ended[0].Failed || !k.ended[1].Failed {
		t.Errorf("told of %+v", k.ended)
	}
}

// Nothing acts that could not be kept first, and the hint is of what kept it from that.
func TestVersions_nothingKept_nothingActs(t *testing.T) {
	full := &holdfast.Error{Kind: holdfast.KindInternal, Why: "the disk is full", Hint: "make room"}
	for name, k := range map[string]*keeper{"nobody keeps": nil, "it cannot": {before: func(context.Context) error { return full }}} {
		w := newWorld(t, "", keeping(k))
		var n atomic.Int64
		_, err := w.k.Cross(t.Context(), w.req("test/back", `{}`), counted(&n))
		if err == nil || n.Load() != 0 || !strings.Contains(err.Error(), "on_error: rollback") {
			t.Errorf("%s: %v, acted %d times", name, err, n.Load())
		}
		var he *holdfast.Error
		if !errors.As(err, &he) || (he.Hint == full.Hint) != (k != nil) || he.Hint == "" {
			t.Errorf("%s: %+v", name, he)
		}
	}
}

// Keeping may take long. Whoever stops the crossing meanwhile stops the keeping, and
// no act begins: neither after a halt by the command, nor after a latch that a file
// sets and nobody has noticed yet, nor for a caller that has gone.
func TestVersions_stoppedWhileKept(t *testing.T) {
	waits := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for _, c := range []struct {
		name string
		stop func(w *world, gone context.CancelFunc)
		wait bool
		kind holdfast.Kind
		is   ledger.Outcome
	}{
		{"halt", func(w *world, _ context.CancelFunc) { _, _ = w.k.Halt("alice", "stop") }, true, holdfast.KindHalted, ledger.Halted},
		{"the latch's file", func(w *world, _ context.CancelFunc) {
			if err := os.WriteFile(filepath.Join(w.dir, "HALT"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}, false, holdfast.KindHalted, ledger.Halted},
		{"pause", func(w *world, _ context.CancelFunc) { _, _ = w.k.Pause(holdfast.Local, "alice", "carol", "wait") }, true, holdfast.KindPaused, ledger.Halted},
		{"the caller", func(_ *world, gone context.CancelFunc) { gone() }, true, holdfast.KindCanceled, ledger.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w *world
			ctx, gone := context.WithTimeout(t.Context(), time.Minute)
			defer gone()
			k := &keeper{before: func(ctx context.Context) error {
				go c.stop(w, gone)
				if c.wait {
					return waits(ctx)
				}
				for !w.latch.Halted() && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				return nil
			}}
			w = newWorld(t, "", keeping(k))
			var n atomic.Int64
			_, err := w.k.Cross(ctx, w.req("test/back", `{}`), counted(&n))
			if holdfast.KindOf(err) != c.kind || n.Load() != 0 {
				t.Errorf("%v, acted %d times", err, n.Load())
			}
			if k.backs != 0 || (k.goes == 1) == c.wait {
				t.Errorf("what was kept was put back %d times, and let go of %d times", k.backs, k.goes)
			}
			all := w.entries(holdfast.Local)
			if e := all[len(all)-1]; e.Boundary != "test/back" || e.Outcome != c.is {
				t.Errorf("recorded as %s", e.Outcome)
			}
		})
	}
}

// What the ledger says of versions is Holdfast's own word: no role, and no spelling,
// lets an agent say it.
func TestVersions_onlyHoldfastKeeps(t *testing.T) {
	var own keeper
	w := newWorld(t, "", keeping(&own))
	for _, b := range []string{"snapshot/commit", "SNAPSHOT/commit", "snapshot/nothing"} {
		if _, err := w.never(w.req(b, `{}`)); holdfast.KindOf(err) != holdfast.KindPermission {
			t.Errorf("%s: %v", b, err)
		}
	}
	if _, err := own.Cross(t.Context(), w.req("snapshot/commit", `{}`), ok); err != nil {
		t.Error("Holdfast's own:", err)
	}
}

// Who acts itself under a lease cannot have its work put back: it is told so, and
// does not act unkept.
func TestVersions_noLease(t *testing.T) {
	w := newWorld(t, "", keeping(&keeper{}))
	x, _, err := w.k.Enter(t.Context(), w.req("test/back", `{}`), time.Minute)
	if x != nil || holdfast.KindOf(err) != holdfast.KindPermission || !strings.Contains(err.Error(), "on_error: rollback") {
		t.Errorf("%v %v", x, err)
	}
}

// Where Holdfast was killed in the middle of such an act nobody puts anything back, and
// people are told of it, once.
func TestVersions_killedInTheMiddle(t *testing.T) {
	w := newWorld(t, "", keeping(&keeper{}))
	for _, boundary := range []string{"test/back", "test/low"} {
		_, _ = w.k.Cross(t.Context(), w.req(boundary, `{}`), func(context.Context) (holdfast.Output, error) {
			w.mu.Lock()
			w.fault = func(string) error { return errGone }
			w.mu.Unlock()
			return holdfast.Output{}, nil
		})
		w.store.Close()
		w = reopen(t, w.dir, "", keeping(&keeper{}))
		told := slices.DeleteFunc(w.notices, func(n kernel.Notice) bool { return n.Event != "rollback_failed" })
		if boundary == "test/low" && len(told) > 0 {
			t.Errorf("%+v", told)
		} else if boundary == "test/back" && (len(told) != 1 || !strings.HasSuffix(told[0].Why, "`holdfast rollback --before "+told[0].Crossing+"`") || told[0].Agent != "alice") {
			t.Errorf("%+v", told)
		}
	}
}
