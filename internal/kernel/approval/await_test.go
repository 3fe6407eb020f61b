package approval

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// reviews is a Reader of reviews alone.
type reviews struct {
	Reader
	mu sync.Mutex
	m  map[string]review.Review // guarded by mu
}

func (s *reviews) Review(id string) (review.Review, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.m[id]
	if !ok {
		return r, table.ErrNotFound
	}
	return r, nil
}

func (s *reviews) putReview(r review.Review) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[r.ID] = r
}

// newBook returns a Book of these reviews whose callers of Await never read by themselves.
func newBook(s *reviews) *Book {
	b := New(Source{
		View:     func(_ context.Context, fn func(Reader) error) error { return fn(s) },
		Contract: func(string) (*contract.Contract, string) { return nil, "p" },
		Halted:   func() error { return nil },
		Now:      time.Now,
	})
	b.Look = time.Hour
	return b
}

// TestAwaitEndsWhenWoken: many callers wait for two reviews, and each ends with the change of its
// own; watchers receive both, however slow they are.
func TestAwaitEndsWhenWoken(t *testing.T) {
	one := review.Review{ID: "rv_1", State: review.Pending, Binding: review.Binding{Policy: "p"},
		Expires: time.Now().Add(time.Hour)}
	two := one
	two.ID = "rv_2"
	s := &reviews{m: map[string]review.Review{one.ID: one, two.ID: two}}
	b := newBook(s)
	changed, stop := b.Watch()
	defer stop()
	ended := map[string]chan error{one.ID: make(chan error, 8), two.ID: make(chan error, 8)}
	for id, ch := range ended {
		for range cap(ch) {
			go func() { ch <- b.Await(t.Context(), id) }()
		}
	}
	for _, r := range []review.Review{one, two} {
		r.State = review.Approved
		s.putReview(r)
		b.Wake(r.ID)
		for range cap(ended[r.ID]) {
			if err := <-ended[r.ID]; err != nil {
				t.Fatal(err)
			}
		}
		<-changed
	}
	b.wakes.mu.Lock()
	defer b.wakes.mu.Unlock()
	if len(b.wakes.waiting) != 0 {
		t.Errorf("%d reviews are still awaited", len(b.wakes.waiting))
	}
}

// TestAwaitReportsUnknownReviews: by kind, as the list of reviews does.
func TestAwaitReportsUnknownReviews(t *testing.T) {
	b := newBook(&reviews{m: map[string]review.Review{}})
	if err := b.Await(t.Context(), "rv_0"); holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Errorf("%v, want NotFound", err)
	}
}
