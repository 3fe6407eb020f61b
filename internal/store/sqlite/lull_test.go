package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// attempts is how often a test tries to come while an update is lulled: on a
// slow day it comes after.
const attempts = 500

// lulling begins an update that nobody waits for, and returns when it is in the
// batch and waits, or was committed.
func lulling(s *Store, v string) chan error {
	done, ran := make(chan error, 1), make(chan struct{})
	go func() {
		done <- s.UpdateUnhurried(context.Background(), func(tx kernel.Tx) error {
			close(ran)
			return putValue(tx, "lulled", v)
		})
	}()
	<-ran
	s.run.Lock() // it has run
	defer s.run.Unlock()
	return done
}

// TestLullShares: an update that nobody waits for goes to disk with the commit of
// the next that somebody waits for, which sees what it wrote; no view sees it
// before.
func TestLullShares(t *testing.T) {
	var commits atomic.Int32
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "db"), Fault: func(step string) error {
		if step == "commit" {
			commits.Add(1)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	shared, unseen := 0, 0
	for i := range attempts {
		before, v := commits.Load(), fmt.Sprint(i)
		done := lulling(s, v)
		err := s.View(t.Context(), func(tx kernel.Tx) error {
			if got, err := getValue(tx, "lulled"); got == v {
				return err
			}
			unseen++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx kernel.Tx) error {
			got, err := getValue(tx, "lulled")
			if string(got) != v || err != nil {
				return fmt.Errorf("the next update sees %q, %w, not %q", got, err, v)
			}
			return putValue(tx, "waited", v)
		})
		if err != nil {
			t.Fatal(err)
		}
		// Its commit is the lulled one's too, or was after it.
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if commits.Load() == before+1 {
			shared++
		}
	}
	if shared == 0 || unseen == 0 {
		t.Errorf("of %d updates that nobody waited for %d shared a commit, and %d were not viewed before", attempts, shared, unseen)
	}
}

// TestLullEnds: without another update it is durable all the same.
func TestLullEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-lulling(s, "alone"); err != nil {
		t.Fatal(err)
	}
	beside, err := Open(t.Context(), Options{Path: path, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, beside, "alone")
	if err := errors.Join(beside.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, s *Store, want string) {
	t.Helper()
	err := s.View(t.Context(), func(tx kernel.Tx) error {
		if got, err := getValue(tx, "lulled"); got != want {
			return fmt.Errorf("the store holds %q, %w, not %q", got, err, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLullCloses: a store that is closed meanwhile loses nothing.
func TestLullCloses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	for i := range testrepeat.Times(20, 5) {
		s, err := Open(t.Context(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		done := lulling(s, fmt.Sprint(i))
		if err := errors.Join(s.Close(), <-done); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(t.Context(), Options{Path: path}); err != nil {
			t.Fatal(err)
		}
		holds(t, s, fmt.Sprint(i))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLullFails: where the commit that it shares fails, it failed too.
func TestLullFails(t *testing.T) {
	f, path := new(faulty), filepath.Join(t.TempDir(), "db")
	s, err := Open(t.Context(), Options{Path: path, Fault: f.fault})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-lulling(s, "kept"); err != nil {
		t.Fatal(err)
	}
	f.step = "commit"
	done := lulling(s, "lost")
	if err := put(s, "lost"); !errors.Is(err, kernel.ErrPoisoned) {
		t.Errorf("the update whose commit failed: %v", err)
	}
	if err := <-done; !errors.Is(err, kernel.ErrPoisoned) {
		t.Errorf("the update that shared it: %v", err)
	}
	err = s.UpdateUnhurried(t.Context(), func(kernel.Tx) error { return nil })
	if !errors.Is(err, kernel.ErrPoisoned) {
		t.Errorf("one after it: %v", err)
	}
	_ = s.Close()
	if s, err = Open(t.Context(), Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	holds(t, s, "kept")
}
