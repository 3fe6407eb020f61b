package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// slow is a store whose commits stop before the log is written while stop is
// set, each telling at.
func slow(t *testing.T) (s *Store, stop *atomic.Bool, at, on chan struct{}) {
	t.Helper()
	stop, at, on = new(atomic.Bool), make(chan struct{}), make(chan struct{})
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "db"), Fault: func(step string) error {
		if step == "commit" && stop.Load() {
			at <- struct{}{}
			<-on
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, stop, at, on
}

func put(s *Store, v string) error {
	return s.Update(context.Background(), func(tx kernel.Tx) error { return putValue(tx, "alone", v) })
}

func get(ctx context.Context, s *Store) (v string, err error) {
	err = s.View(ctx, func(tx kernel.Tx) error {
		b, err := getValue(tx, "alone")
		v = b
		return err
	})
	return v, err
}

// TestAloneViewWaits: a view that begins during the commit of an update that is
// alone sees that update, and gives up with its context; one that had begun
// before sees what was before, and is not waited for.
func TestAloneViewWaits(t *testing.T) {
	s, stop, at, on := slow(t)
	if err := put(s, "one"); err != nil {
		t.Fatal(err)
	}
	stop.Store(true)
	done := make(chan error, 1)
	go func() { done <- put(s, "two") }()
	<-at
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if v, err := get(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a view without time saw %q, %v", v, err)
	}
	saw := make(chan string, 1)
	go func() { v, err := get(t.Context(), s); saw <- fmt.Sprint(v, err) }()
	on <- struct{}{}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if v := <-saw; v != "two<nil>" {
		t.Errorf("a view that waited saw %s", v)
	}
	err := s.View(t.Context(), func(tx kernel.Tx) error {
		go func() { done <- put(s, "three") }()
		<-at
		stop.Store(false)
		if v, err := get(t.Context(), s); v != "two" || err != nil {
			t.Errorf("beside a view, another saw %q, %v", v, err)
		}
		on <- struct{}{}
		if err := <-done; err != nil {
			return err
		}
		if b, err := getValue(tx, "alone"); b != "two" {
			t.Errorf("a view that began before sees %q, %v", b, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := get(t.Context(), s); v != "three" || err != nil {
		t.Errorf("at the end: %q, %v", v, err)
	}
}

// TestAloneThenNot: updates that come during the commit of one that is alone are
// committed after it, and none is forgotten.
func TestAloneThenNot(t *testing.T) {
	s, stop, at, on := slow(t)
	stop.Store(true)
	done := make(chan error, 10)
	go func() { done <- put(s, "first") }()
	<-at
	for i := range 9 {
		go func() { done <- put(s, fmt.Sprint(i)) }()
	}
	for len(s.slots) < 10 {
		time.Sleep(time.Millisecond)
	}
	stop.Store(false)
	on <- struct{}{}
	for range 10 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestAloneFails: where the commit of an update that is alone fails, the store
// is poisoned, and views go on.
func TestAloneFails(t *testing.T) {
	f := new(faulty)
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "db"), Fault: f.fault})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := put(s, "one"); err != nil {
		t.Fatal(err)
	}
	f.step = "commit"
	if err := put(s, "two"); !errors.Is(err, kernel.ErrPoisoned) {
		t.Errorf("a failed commit: %v", err)
	}
	if v, err := get(t.Context(), s); v != "one" || err != nil {
		t.Errorf("after it: %q, %v", v, err)
	}
}
