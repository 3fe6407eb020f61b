package streamable

import (
	"errors"
	"sync"
)

// Bounds, in bytes, of what an HTTP front keeps for one group and for all: the
// bodies being read, the requests in flight, and the answers that are not yet on
// their way to the client. A request counts with each core that it stands in, and
// with the router before them, since each has a copy of it. Of answers, one for
// each session may come when there is no room any more.
const (
	maxGroupReading = 128 << 20
	maxGroupAsked   = 128 << 20
	maxFrontAsked   = 256 << 20
	maxGroupHeld    = 64 << 20
	maxFrontHeld    = 256 << 20
	maxGroupOut     = 128 << 20
)

// loads are what the groups of one front keep.
type loads struct {
	asked, out *meter // of all groups

	mu   sync.Mutex
	held int // guarded by mu; of all groups
	// changed is closed and replaced whenever held shrinks; guarded by mu.
	changed chan struct{}
}

// load is what one group keeps in all its sessions. All methods may be called on
// nil, which bounds nothing: a client that is alone has bounds of its own.
type load struct {
	all                 *loads
	reading, asked, out *meter
	held                int // guarded by all's mu
	// uses are the exchanges and cores that have it, runs the cores among
	// them. They belong to the front's lock.
	uses, runs int
}

func newLoads(out *meter) *loads {
	return &loads{asked: &meter{most: maxFrontAsked}, out: out, changed: make(chan struct{})}
}

func (a *loads) group() *load {
	return &load{all: a, reading: &meter{most: maxGroupReading}, asked: &meter{most: maxGroupAsked, whole: a.asked}, out: &meter{most: maxGroupOut, whole: a.out}}
}

// errLoad reports that a load is full.
var errLoad = errors.New("busy: the requests in flight in all sessions of this caller, or of everybody, " +
	"have too many bytes")

// AddRequest implements gateway.Load.
func (l *load) AddRequest(n int) error {
	if l != nil && !l.asked.take(n) {
		return errLoad
	}
	return nil
}

// RemoveRequest implements gateway.Load.
func (l *load) RemoveRequest(n int) {
	if l != nil {
		l.asked.give(n)
	}
}

// AddAnswer implements gateway.Load.
func (l *load) AddAnswer(n int) {
	if l == nil || n == 0 {
		return
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.held += n
	l.all.held += n
	if n < 0 {
		close(l.all.changed)
		l.all.changed = make(chan struct{})
	}
}

// Full implements gateway.Load.
func (l *load) Full() <-chan struct{} {
	if l == nil {
		return nil
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.held > maxGroupHeld || l.all.held > maxFrontHeld {
		return l.all.changed
	}
	return nil
}

// enlist returns a group's load for one more exchange or core, which must dismiss
// it. The caller holds the front's lock.
func (h *Handler) enlist(group string) *load {
	l := h.loads[group]
	if l == nil {
		l = h.all.group()
		h.loads[group] = l
	}
	l.uses++
	return l
}

// dismiss is the end of enlist. The caller holds the front's lock.
func (h *Handler) dismiss(group string) {
	l := h.loads[group]
	if l.uses--; l.uses == 0 {
		delete(h.loads, group)
	}
}
