package egress

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
)

// maxAtOnce is how many requests of one caller are read, judged or answered at
// a time, over all of its connections.
const maxAtOnce = 256

// owner is what one caller holds, over all of its listeners: no workspace may
// take so much that others find none.
type owner struct {
	name  string
	seats int // guarded by Proxy.mu
	// places has one for each request under way.
	places chan struct{}
	// held is of the memory that all bodies share, in bytes.
	held atomic.Int64
	// away is how many requests through the gateway were turned away and the kernel
	// was not told of.
	away atomic.Int64
	// redirects are those of hosts to the caller.
	redirects cleaner.Redirects
}

type ownerKey struct{}

// owned gives s its caller's owner: the listeners of one flow are one caller's.
// leave must be called when s has ended.
func (p *Proxy) owned(who Caller) (o *owner, leave func()) {
	if who.Correlation == "" {
		return &owner{places: make(chan struct{}, maxAtOnce)}, func() {}
	}
	return p.ownedBy(who.Correlation)
}

// ownedBy is owned by a name.
func (p *Proxy) ownedBy(name string) (o *owner, leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o = p.owners[name]; o == nil {
		o = &owner{name: name, places: make(chan struct{}, maxAtOnce)}
		p.owners[name] = o
	}
	o.seats++
	return o, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if o.seats--; o.seats == 0 {
			delete(p.owners, name)
		}
	}
}

// admitted runs f for a request if its caller has a place for it, and else
// turns it away before anything of it is read: as connections beyond their
// number are, without a record.
func (ch *channel) admitted(w http.ResponseWriter, r *http.Request, f func(*http.Request) (goesOn bool)) {
	own := ch.s.own
	if ch.own != nil {
		own = ch.own
	}
	select {
	case own.places <- struct{}{}:
		goesOn := false
		defer func() {
			if !goesOn {
				<-own.places
			}
		}()
		goesOn = f(r.WithContext(context.WithValue(r.Context(), ownerKey{}, own)))
	default:
		if ch.who != nil {
			ch.s.guestTurnedAway(*ch.who, own)
		} else {
			ch.s.turnedAway()
		}
		e := memory.Busy()
		e.Why, e.Hint = "too many requests of this workspace are under way", "wait for the answers of some"
		ch.s.p.answer(w, r, nil, e)
	}
}

// heldBy returns the count of what the caller holds whose request ctx is of, or nil. One
// caller gets at most half of all memory.
func heldBy(ctx context.Context) *atomic.Int64 {
	if own := ownerOf(ctx); own != nil {
		return &own.held
	}
	return nil
}

// ownerOf returns what the caller holds whose request ctx is of, or nil.
func ownerOf(ctx context.Context) *owner {
	own, _ := ctx.Value(ownerKey{}).(*owner)
	return own
}
