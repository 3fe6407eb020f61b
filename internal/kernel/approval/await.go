package approval

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// awaitLook is how often a waiting caller looks at the store by itself: another
// process on the same store may have decided.
const awaitLook = 5 * time.Second

// wakes tell whoever waits that something has changed, after it is durable.
type wakes struct {
	mu      sync.Mutex
	waiting map[string]*wake           // guarded by mu; by review
	watches map[chan struct{}]struct{} // guarded by mu; each of capacity one
}

// wake is closed when its review has changed; n callers hold it.
type wake struct {
	ch chan struct{}
	n  int
}

// Await returns nil as soon as the review no longer waits for a person: it was
// approved, refused or used, or it expired, or the policy it was asked under is
// no longer in force. It says nothing of which: asking again does. Otherwise it
// returns the context's cause, a HaltedError as soon as everything is halted, or a
// NotFoundError; the review waits on. Many may await one review.
func (b *Book) Await(ctx context.Context, id string) error {
	for {
		waits, err := b.awaitOnce(ctx, id)
		if !waits || err != nil {
			return err
		}
	}
}

// awaitOnce looks at the review, and where it waits for a person waits until it
// is time to look again.
func (b *Book) awaitOnce(ctx context.Context, id string) (waits bool, err error) {
	changed, done := b.wakes.addWaiter(id)
	defer done()
	r, err := b.Review(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return true, context.Cause(ctx)
	case err != nil:
		return true, err
	case r.Answer(b.src.Now(), b.policyAt(r.Boundary)) != review.Pending:
		return false, nil
	}
	if err := b.src.Halted(); err != nil {
		return true, err // nobody's answer would let it act now
	}
	wait := cmp.Or(b.Look, awaitLook)
	if !r.Expires.IsZero() {
		wait = min(wait, max(r.Expires.Sub(b.src.Now()), time.Millisecond))
	}
	look := time.NewTimer(wait)
	defer look.Stop()
	select {
	case <-ctx.Done():
		return true, context.Cause(ctx)
	case <-changed:
	case <-look.C:
	}
	return true, nil
}

// policyAt returns the policy to which an approval at the boundary is bound now.
func (b *Book) policyAt(boundary string) string {
	_, policy := b.src.Contract(boundary)
	return policy
}

// Watch gives a channel that receives after reviews, the halt or agents have
// changed, several changes at once where the receiver is slow, and what ends
// it. The channel is never closed.
func (b *Book) Watch() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	w := &b.wakes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches == nil {
		w.watches = map[chan struct{}]struct{}{}
	}
	w.watches[ch] = struct{}{}
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watches, ch)
	}
}

// of is what is closed when the review changes next, and what gives it bacb.
func (w *wakes) addWaiter(id string) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[string]*wake{}
	}
	one := w.waiting[id]
	if one == nil {
		one = &wake{ch: make(chan struct{})}
		w.waiting[id] = one
	}
	one.n++
	return one.ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if one.n--; one.n == 0 && w.waiting[id] == one {
			delete(w.waiting, id)
		}
	}
}

// Wake wakes the callers of Await for these reviews, and those of Watch.
func (b *Book) Wake(reviews ...string) {
	w := &b.wakes
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range reviews {
		if one := w.waiting[id]; one != nil {
			close(one.ch)
			delete(w.waiting, id)
		}
	}
	for ch := range w.watches {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// WakeAll wakes all callers: what governs has changed, and with it what reviews
// are worth.
func (b *Book) WakeAll() {
	b.wakes.mu.Lock()
	ids := make([]string, 0, len(b.wakes.waiting))
	for id := range b.wakes.waiting {
		ids = append(ids, id)
	}
	b.wakes.mu.Unlock()
	b.Wake(ids...)
}
