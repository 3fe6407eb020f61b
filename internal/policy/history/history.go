// Package history answers the past functions of rules: how many crossings there
// were within a window, how many different ones, the sum of a field, the last
// (spec 001, layer 1; constitution.Past). It is exact and kept in memory; who
// uses it fills it from the ledger. It is pure: every instant comes from outside.
//
// A request that is judged takes a Ticket first, with what the past functions see
// of it. It then asks through its ticket, and counts what began and those before
// it that are being judged still. So of any number of requests that are judged
// at once, no more pass than would one after another: those that pass are all
// counted by the last of them. When it begins the ticket is confirmed, else
// dropped.
//
// A History never answers too little. What it could not read, or has no room
// for, makes the aggregate unreadable until it would have left the window.
//
// Times are the ledger's. A clock that is set back makes what lies ahead of it
// count all the longer. One that jumps ahead loses nothing: what left the window
// by the clock alone is put away only after as much time as that has passed in
// steps of at most ten minutes.
package history

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// Why there is no answer.
var (
	// ErrNotReady says that the ledger has not been read yet.
	ErrNotReady = errors.New("it is still being read from the ledger")
	// ErrUnreadable says that something within the window is not known.
	ErrUnreadable = errors.New("a crossing within the window cannot be read")
	// ErrNotKept says that the function is none of those in force.
	ErrNotKept = errors.New("nothing is kept for it")
	// ErrOverflow says that a sum is beyond 64 bits.
	ErrOverflow = errors.New("the sum is too large")
	// ErrClock says that an instant is no time of these centuries, or lies
	// too far back.
	ErrClock = errors.New("the clock is wrong")
)

const (
	// MaxEntries is a fit bound for New: some 200 MB.
	MaxEntries = 4_000_000
	// Slack is how much longer than its window an entry is held, and how much
	// further back the ledger is read, for clocks that are set back.
	Slack = time.Hour

	// What a group and a value weigh beside an entry of theirs.
	groupWeight, valueWeight = 8, 6
	// A clock's step counts as at most maxStep of time that passed, and one
	// back by more than backStep is a clock that was set.
	maxStep, backStep = 10 * time.Minute, time.Minute
	// sweeps is how many groups are tidied with each entry.
	sweeps = 2
)

// History is the aggregates of the past functions in force. It may be used by
// many goroutines. The zero History keeps nothing.
type History struct {
	mu      sync.Mutex
	max     int64
	held    int64
	kept    map[string]*kept
	pending map[uint64]*Ticket
	next    uint64
	// last is the clock, elapsed the time that passed for certain; both in ns.
	last, elapsed int64
}

// kept is one past function's aggregates, one for each tenant.
type kept struct {
	past    *constitution.Past
	ready   bool
	from    int64                 // the ledger was read from then on
	loaded  map[crossing]struct{} // until it is ready
	tenants map[string]*aggregate
}

// crossing is a crossing's ID, hashed to a fixed size.
type crossing [16]byte

func crossingOf(id string) crossing {
	sum := sha256.Sum256([]byte(id))
	return crossing(sum[:16])
}

func (c crossing) short() uint64 { return binary.BigEndian.Uint64(c[:8]) }

// New makes an empty History of at most so many entries in all; groups and
// values weigh as several. Beyond it the largest aggregate is given up and is
// unreadable until what it held has left its window.
func New(max int) *History {
	return &History{max: int64(max), kept: map[string]*kept{}, pending: map[uint64]*Ticket{}}
}

// Use makes those the past functions in force. What is kept for an ID that was
// in force before stays; what is kept for others is forgotten. It returns those
// that are not ready, one for each ID, and a mark: the ledger is read for them
// once Settled(mark), since what was judged by the rules before may begin until
// then without being seen for the new ones; and from now-Window-Slack on. Where
// the clock was set back behind what was read, Use with the same functions makes
// them unready, to be read again.
func (h *History) Use(now time.Time, pasts []*constitution.Past) (unready []*constitution.Past, mark uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tick(now)
	before := h.kept
	h.kept = map[string]*kept{}
	for _, p := range pasts {
		if h.kept[p.ID] != nil {
			continue
		}
		k := before[p.ID]
		if k != nil && k.ready && h.last-int64(p.Window) < k.from {
			h.forget(k)
			k = nil
		}
		if k == nil {
			k = &kept{past: p, from: h.last - int64(p.Window+Slack), loaded: map[crossing]struct{}{}, tenants: map[string]*aggregate{}}
		}
		delete(before, p.ID)
		h.kept[p.ID] = k
		if !k.ready {
			unready = append(unready, p)
		}
	}
	for _, k := range before {
		h.forget(k)
	}
	return unready, h.next
}

func (h *History) forget(k *kept) {
	for _, a := range k.tenants {
		h.held -= a.held
	}
	h.held -= int64(len(k.loaded))
	k.loaded, k.tenants = nil, nil
}

// Settled says whether every request that took a ticket before the mark has
// begun or was dropped.
func (h *History) Settled(mark uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range h.pending {
		if n <= mark {
			return false
		}
	}
	return true
}

// Load adds what the ledger says of a crossing that began at an instant, to what
// is kept for one ID that is not ready. One that is known already is not counted
// twice. A seen with an error (what became of it cannot be read) makes the
// tenant's aggregate unreadable until it has left the window. The order is free.
func (h *History) Load(id, tenant, crossing string, at time.Time, seen constitution.Seen, unread error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.kept[id]
	if k == nil || k.ready || unread == nil && !seen.Matches || !h.first(k, crossingOf(crossing)) {
		return
	}
	when, err := instant(at)
	if err != nil {
		unread, when = err, h.last
	}
	passed := max(0, h.last-when)
	if passed > int64(k.past.Window+Slack) {
		return
	}
	h.enter(k, tenant, mark{at: when, amount: seen.Amount, id: crossingOf(crossing).short()}, seen, unread, h.elapsed-passed)
}

// first says whether a crossing is not known yet, while the ledger is read.
func (h *History) first(k *kept, c crossing) bool {
	if k.ready {
		return true
	}
	if _, known := k.loaded[c]; known {
		return false
	}
	if h.held >= h.max {
		return true // there is no room: enter gives something up
	}
	k.loaded[c] = struct{}{}
	h.held++
	return true
}

// Ready says that the ledger was read for an ID.
func (h *History) Ready(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.kept[id]; k != nil && !k.ready {
		h.held -= int64(len(k.loaded))
		k.ready, k.loaded = true, nil
	}
}

// Remove takes back a crossing that began at an instant and of which it turned
// out that it never started, where no Ticket is at hand.
func (h *History) Remove(tenant, id string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, err := instant(at); err == nil {
		h.remove(tenant, crossingOf(id), n, nil)
	}
}

// remove takes a crossing out, of the group that sees tell where they know it,
// else of whichever it is in.
func (h *History) remove(tenant string, c crossing, at int64, sees map[string]constitution.Sight) {
	for _, k := range h.kept {
		if !k.ready {
			h.first(k, c) // the ledger may still tell of it
		}
		if a := k.tenants[tenant]; a != nil {
			var key *string
			if s, saw := sees[k.past.ID]; saw {
				key = &s.Seen.Group
			}
			before := a.held
			a.remove(at, c.short(), key)
			h.held += a.held - before
		}
	}
}

// enter counts a crossing that began. Its stamp is the elapsed time at which it
// did.
func (h *History) enter(k *kept, tenant string, m mark, seen constitution.Seen, unread error, stamp int64) {
	if unread == nil && !seen.Matches {
		return
	}
	a := k.aggregate(tenant)
	if unread != nil {
		a.lose(m.at)
		return
	}
	before := a.held
	a.insert(m, seen.Group, seen.Value, stamp)
	a.sweep(h.elapsed, sweeps)
	if h.held += a.held - before; h.held > h.max {
		h.relieve()
	}
}

func (k *kept) aggregate(tenant string) *aggregate {
	a := k.tenants[tenant]
	if a == nil {
		a = newAggregate(k.past.Window)
		k.tenants[tenant] = a
	}
	return a
}

// relieve makes room: what has left its window goes first, then the largest
// aggregates.
func (h *History) relieve() {
	room := h.max - h.max/8
	for _, k := range h.kept {
		for _, a := range k.tenants {
			before := a.held
			a.sweep(h.elapsed, len(a.list))
			h.held += a.held - before
		}
	}
	for h.held > room {
		var largest *aggregate
		for _, k := range h.kept {
			for _, a := range k.tenants {
				if largest == nil || a.held > largest.held {
					largest = a
				}
			}
		}
		if largest == nil || largest.held == 0 {
			return
		}
		h.held -= largest.held
		largest.giveUp()
	}
}

// tick follows the clock. An instant that is a little behind, as those of
// requests that are judged at once are, changes nothing.
func (h *History) tick(now time.Time) {
	n, err := instant(now)
	if err != nil {
		return
	}
	switch d := n - h.last; {
	case h.last == 0:
		h.last = n
	case d > 0:
		h.elapsed += min(d, int64(maxStep))
		h.last = n
	case -d > int64(backStep):
		h.last = n
	}
}

// instant is a time in nanoseconds since 1970.
func instant(t time.Time) (int64, error) {
	if y := t.UTC().Year(); y < 1971 || y > 2200 {
		return 0, ErrClock
	}
	return t.UnixNano(), nil
}

// Status is how it stands with one past function.
type Status struct {
	Past *constitution.Past
	// Ready says that the ledger was read; before, no question is answered.
	Ready bool
	// Entries is how many crossings are held, over all tenants.
	Entries int64
	// Unreadable has the tenants whose questions are not answered, and until
	// when.
	Unreadable map[string]time.Time
}

// Status tells how it stands at an instant, in no order.
func (h *History) Status(now time.Time) []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := instant(now)
	var out []Status
	for _, k := range h.kept {
		s := Status{Past: k.past, Ready: k.ready}
		for tenant, a := range k.tenants {
			s.Entries += a.entries
			if a.lost != 0 && (err != nil || a.lost >= n-a.window) {
				if s.Unreadable == nil {
					s.Unreadable = map[string]time.Time{}
				}
				s.Unreadable[tenant] = a.until()
			}
		}
		out = append(out, s)
	}
	return out
}

// unreadable names until when.
func unreadable(a *aggregate) error {
	return fmt.Errorf("%w, until %s", ErrUnreadable, a.until().Format(time.RFC3339))
}
