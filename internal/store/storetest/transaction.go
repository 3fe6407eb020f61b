package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// everyVerb writes one of everything, told apart by n.
func everyVerb(t testing.TB, tx kernel.Tx, n int) error {
	tenant := fmt.Sprint("tenant", n)
	if _, err := tx.Append(Leaf(t, tenant, ledger.KindBegin, Crossing(n), "b")); err != nil {
		return err
	}
	if r, err := tx.Draw([]budget.Draw{draw(fmt.Sprint("c", n), 1, 1, 0)}); r != nil || err != nil {
		return fmt.Errorf("draw: %+v, %w", r, err)
	}
	r, err := tx.Rate([]budget.Rate{{Key: fmt.Sprint("r", n), Limit: 1, Window: time.Hour}}, start())
	if r != nil || err != nil {
		return fmt.Errorf("rate: %+v, %w", r, err)
	}
	return errors.Join(
		tx.PutAgent(holdfast.Agent{Tenant: tenant, Name: "a", First: start()}),
		tx.Revoke(tenant, "j", start()),
		tx.PutReview(question(fmt.Sprint("q", n), start(), tenant, "x"), review.None),
		tx.PutReplay(kernel.Replay{Key: fmt.Sprint("k", n), Sealed: []byte("s"), Expires: time.Now().Add(time.Hour)}),
		putNote(tx, fmt.Sprint("m", n), "v"),
		tx.PutCheckpoint(ledger.SignedCheckpoint{Head: ledger.Head{Tenant: tenant, Size: 1}, At: start(), Note: []byte("n")}))
}

// traces counts what everyVerb left of n: 0 to 9.
func traces(tx kernel.Tx, n int) (found int, err error) {
	tenant := fmt.Sprint("tenant", n)
	count := func(there bool, e error) {
		if there && e == nil {
			found++
		}
		if e != nil && !errors.Is(e, kernel.ErrNotFound) {
			err = errors.Join(err, e)
		}
	}
	_, e := tx.Crossing(tenant, Crossing(n))
	count(true, e)
	c, e := tx.Counter(draw(fmt.Sprint("c", n), 0, 1, 0))
	count(c.Used == 1, e)
	p, e := tx.PeekRate([]budget.Rate{{Key: fmt.Sprint("r", n), Limit: 1, Window: time.Hour}}, start())
	count(p != nil, e)
	_, e = tx.Agent(tenant, "a")
	count(true, e)
	rev, e := tx.Revoked(tenant, "j")
	count(rev, e)
	_, e = tx.Review(fmt.Sprint("q", n))
	count(true, e)
	_, e = tx.Replay(fmt.Sprint("k", n))
	count(true, e)
	e = hasNote(tx, fmt.Sprint("m", n))
	count(true, e)
	_, e = tx.Checkpoint(tenant)
	count(true, e)
	return found, err
}

// verbs is how many things everyVerb writes.
const verbs = 9

func (s *suite) traces(n, wantN int) {
	s.Helper()
	s.everywhere(func(tx kernel.Tx) error {
		got, err := traces(tx, n)
		if err == nil && got != wantN {
			err = fmt.Errorf("update %d left %d of %d traces, want %d", n, got, verbs, wantN)
		}
		return err
	})
}

func testTransactions(t *testing.T, open Open) {
	s := begin(t, open)
	oops := errors.New("oops")
	err := s.Update(t.Context(), func(tx kernel.Tx) error { return errors.Join(everyVerb(t, tx, 1), oops) })
	want(t, "a failing update", err, oops)
	s.traces(1, 0)

	func() {
		defer func() {
			if p := recover(); p != "panicking" {
				t.Errorf("the panic of an update arrives as %v", p)
			}
		}()
		_ = s.Update(t.Context(), func(tx kernel.Tx) error {
			if err := everyVerb(t, tx, 2); err != nil {
				t.Error(err)
			}
			panic("panicking")
		})
	}()
	s.traces(2, 0)

	s.update(func(tx kernel.Tx) error { return everyVerb(t, tx, 3) })
	s.traces(3, verbs)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	called := false
	err = s.Update(ended, func(kernel.Tx) error { called = true; return nil })
	want(t, "an update whose context has ended", err, context.Canceled)
	if called {
		t.Error("an update ran although its context had ended")
	}
	want(t, "a view whose context has ended", s.View(ended, func(kernel.Tx) error { return nil }), context.Canceled)

	// Once it runs, a context that ends changes nothing.
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Update(ctx, func(tx kernel.Tx) error { cancel(); return everyVerb(t, tx, 4) }); err != nil {
		t.Errorf("an update whose context ended while it ran: %v", err)
	}
	s.traces(4, verbs)

	var kept kernel.Tx
	s.update(func(tx kernel.Tx) error { kept = tx; return nil })
	if err := putNote(kept, "late", ""); err == nil {
		t.Error("a transaction was written to after its update")
	}
	s.view(func(tx kernel.Tx) error { kept = tx; return nil })
	if err := hasNote(kept, "m3"); err == nil || errors.Is(err, kernel.ErrNotFound) {
		t.Errorf("a transaction was read after its view: %v", err)
	}
	if err := s.Poisoned(); err != nil {
		t.Errorf("failed updates have poisoned the store: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, "an update after close", s.Update(t.Context(), func(kernel.Tx) error { return nil }), "closed")
	refused(t, "a view after close", s.View(t.Context(), func(kernel.Tx) error { return nil }), "closed")
}

func testViews(t *testing.T, open Open) {
	s := begin(t, open)
	s.update(func(tx kernel.Tx) error { return everyVerb(t, tx, 1) })
	writes := map[string]func(tx kernel.Tx) error{
		"append":         func(tx kernel.Tx) error { _, err := tx.Append(Leaf(t, "a", ledger.KindEvent, "", "x")); return err },
		"put checkpoint": func(tx kernel.Tx) error { return tx.PutCheckpoint(ledger.SignedCheckpoint{}) },
		"draw":           func(tx kernel.Tx) error { _, err := tx.Draw(nil); return err },
		"settle":         func(tx kernel.Tx) error { return tx.Settle(nil, nil) },
		"rate":           func(tx kernel.Tx) error { _, err := tx.Rate(nil, start()); return err },
		"put agent":      func(tx kernel.Tx) error { return tx.PutAgent(holdfast.Agent{}) },
		"drop agent":     func(tx kernel.Tx) error { return tx.DropAgent("", "a") },
		"revoke":         func(tx kernel.Tx) error { return tx.Revoke("a", "b", start()) },
		"put review":     func(tx kernel.Tx) error { return tx.PutReview(review.Review{}, review.None) },
		"put replay":     func(tx kernel.Tx) error { return tx.PutReplay(kernel.Replay{}) },
		"drop replays":   func(tx kernel.Tx) error { _, err := tx.DropReplays(start()); return err },
		"insert row":     func(tx kernel.Tx) error { return notes.Insert(tx, "a", note{}) },
		"replace row":    func(tx kernel.Tx) error { return notes.Replace(tx, "a", note{}, 1) },
		"delete row":     func(tx kernel.Tx) error { return notes.Delete(tx, "a") },
		"add to row":     func(tx kernel.Tx) error { return jobs.Add(tx, jobKey{"a", 1}, 1, 1) },
	}
	s.view(func(tx kernel.Tx) error {
		for verb, fn := range writes {
			want(t, verb+" in a view", fn(tx), kernel.ErrReadOnly)
		}
		return nil
	})
	// A view goes on seeing what it saw, whatever is committed meanwhile.
	for name, first := range map[string]func(kernel.Tx) error{
		"that read memory first":   func(tx kernel.Tx) error { _, err := tx.Revoked("tenant1", "j"); return err },
		"that read the disk first": func(tx kernel.Tx) error { return hasNote(tx, "m1") },
		"that read nothing first":  func(tx kernel.Tx) error { return nil },
	} {
		n := 10 + len(name)
		s.view(func(tx kernel.Tx) error {
			if err := first(tx); err != nil {
				return err
			}
			for i := range 3 {
				s.update(func(up kernel.Tx) error { return everyVerb(t, up, n+100*i) })
			}
			for i := range 3 {
				if got, err := traces(tx, n+100*i); got != 0 || err != nil {
					t.Errorf("a view %s sees %d traces of what was committed later, %v", name, got, err)
				}
			}
			hs, err := tx.Heads()
			if err != nil {
				return err
			}
			for _, h := range hs {
				if h.Tenant == fmt.Sprint("tenant", n) {
					t.Errorf("a view %s sees a later head", name)
				}
			}
			return nil
		})
		s.traces(n, verbs)
	}
	// What a running update wrote is not seen.
	s.update(func(up kernel.Tx) error {
		if err := everyVerb(t, up, 900); err != nil {
			return err
		}
		return s.View(t.Context(), func(tx kernel.Tx) error {
			got, err := traces(tx, 900)
			if err == nil && got != 0 {
				err = fmt.Errorf("a view sees %d traces of an update under way", got)
			}
			return err
		})
	})
}

// testConcurrency runs many callers whose updates fail, panic or succeed, and
// then checks that exactly the acknowledged ones are there, in a tree without
// a gap. K6_INV1, K3_INV: no counter was filled twice.
func testConcurrency(t *testing.T, open Open) {
	s := begin(t, open)
	const callers, each, limit = 16, 40, 250
	oops := errors.New("oops")
	var mu sync.Mutex
	acked := map[string]ledger.Place{}
	failed := map[string]bool{}
	var drawn atomic.Int64
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 9))
			for i := range each {
				id := Crossing(c*each + i)
				fate := rng.IntN(4)
				var place ledger.Place
				took := false
				err := protect(func() error {
					return s.Update(t.Context(), func(tx kernel.Tx) (err error) {
						l := Leaf(t, []string{"acme", "other"}[c%2], ledger.KindEntry, id, id)
						if place, err = tx.Append(l); err != nil {
							return err
						}
						r, err := tx.Draw([]budget.Draw{draw("shared", 1, limit, 0)})
						if err != nil {
							return err
						}
						took = r == nil
						if fate == 0 {
							return oops
						}
						if fate == 1 {
							panic(oops)
						}
						return nil
					})
				})
				if (err == nil) != (fate > 1) {
					t.Errorf("update %s with fate %d: %v", id, fate, err)
				}
				mu.Lock()
				if err == nil {
					acked[id] = place
				} else {
					failed[id] = true
				}
				mu.Unlock()
				if err == nil && took {
					drawn.Add(1)
				}
				s.glance(t, id, err == nil)
			}
		})
	}
	wg.Wait()
	if drawn.Load() > limit {
		t.Errorf("%d draws of a limit of %d", drawn.Load(), limit)
	}
	s.again()
	s.used("shared", 0, drawn.Load())
	s.view(func(tx kernel.Tx) error {
		n := 0
		for _, tenant := range []string{"acme", "other"} {
			next := int64(0)
			err := tx.Leaves(tenant, 0, 1<<30, func(l ledger.Stored) error {
				if l.Seq != next || acked[l.Crossing] != l.Place {
					return fmt.Errorf("leaf %d of %s is %+v, acknowledged %+v", next, tenant, l.Place, acked[l.Crossing])
				}
				next++
				n++
				return nil
			})
			if err != nil {
				return err
			}
		}
		if n != len(acked) {
			return fmt.Errorf("%d leaves and %d acknowledged", n, len(acked))
		}
		return nil
	})
}

// protect turns a panic into the error it was.
func protect(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(error)
		}
	}()
	return fn()
}

// glance looks for a crossing in a view: what was acknowledged is seen at
// once, what failed is never seen.
func (s *suite) glance(t testing.TB, id string, there bool) {
	err := s.View(t.Context(), func(tx kernel.Tx) error {
		_, a := tx.Crossing("acme", id)
		_, b := tx.Crossing("other", id)
		if got := a == nil || b == nil; got != there {
			return fmt.Errorf("crossing %s is seen: %v, want %v (%v, %v)", id, got, there, a, b)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func testBackup(t *testing.T, open Open) {
	s := begin(t, open)
	s.update(func(tx kernel.Tx) error { return everyVerb(t, tx, 1) })
	dir := t.TempDir()
	file := filepath.Join(dir, "copy")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 2; ; n++ {
			select {
			case <-stop:
				return
			default:
				s.update(func(tx kernel.Tx) error { return everyVerb(t, tx, n) })
			}
		}
	})
	err := s.Backup(t.Context(), file)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatalf("backup: %v", err)
	}
	if err := s.Backup(t.Context(), file); err == nil {
		t.Error("a backup was written over an existing file")
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}
	want(t, "backup to where there is no directory", s.Backup(t.Context(), filepath.Join(dir, "no", "copy")), os.ErrNotExist)
	s.traces(1, verbs)
}

// Fault is when a commit is made to fail: with nothing persisted, or with all
// of it persisted although the store sees an error.
type Fault int

// The faults.
const (
	NotPersisted Fault = iota
	Persisted
)

// Faults tests a store that can be made to fail. arm makes the store's next
// commit fail in that way; it is called while no update is under way. After
// it the store is poisoned: everything is refused until it is opened again,
// and then every update of the failed commit is there, or none.
func Faults(t *testing.T, open Open, arm func(s kernel.Store, f Fault)) {
	for f, name := range map[Fault]string{NotPersisted: "not persisted", Persisted: "persisted"} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, open)
			s.update(func(tx kernel.Tx) error { return everyVerb(t, tx, 0) })
			arm(s.Store, f)
			const callers = 8
			var wg sync.WaitGroup
			errs := make([]error, callers)
			for i := range callers {
				wg.Go(func() {
					errs[i] = s.Update(t.Context(), func(tx kernel.Tx) error { return everyVerb(t, tx, i+1) })
				})
			}
			wg.Wait()
			for _, err := range errs {
				want(t, "an update whose commit failed", err, kernel.ErrPoisoned)
			}
			want(t, "poisoned", s.Poisoned(), kernel.ErrPoisoned)
			err := s.Update(t.Context(), func(kernel.Tx) error { t.Error("an update ran in a poisoned store"); return nil })
			want(t, "an update of a poisoned store", err, kernel.ErrPoisoned)
			s.view(func(tx kernel.Tx) error {
				if n, err := traces(tx, 0); n != verbs || err != nil {
					t.Errorf("a poisoned store shows %d of %d, %v", n, verbs, err)
				}
				return nil
			})
			s.again()
			if err := s.Poisoned(); err != nil {
				t.Errorf("opened again, the store is still poisoned: %v", err)
			}
			allOrNothing(t, s, callers, f)
			s.update(func(tx kernel.Tx) error { return everyVerb(t, tx, 50) })
			s.traces(50, verbs)
		})
	}
}

// allOrNothing checks what a failed commit left.
func allOrNothing(t *testing.T, s *suite, callers int, f Fault) {
	s.traces(0, verbs)
	some := 0
	s.view(func(tx kernel.Tx) error {
		for i := range callers {
			n, err := traces(tx, i+1)
			if err != nil || n != 0 && n != verbs {
				t.Errorf("update %d left %d of %d traces, %v", i+1, n, verbs, err)
			}
			some += n
		}
		return nil
	})
	if (some > 0) != (f == Persisted) {
		t.Errorf("a commit that was persisted=%v left %d traces", f == Persisted, some)
	}
}
