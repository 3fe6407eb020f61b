package history

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// Ticket is one request that is being judged. Exactly one of Confirm and Drop
// ends that; until then every request with a later ticket counts it. A nil
// Ticket answers nothing, and nothing can be done with it.
type Ticket struct {
	h      *History
	n      uint64
	tenant string
	id     crossing
	now    int64
	sees   map[string]constitution.Sight
	state  state
	at     int64 // when it began,
	stamp  int64 // and how much time had passed
}

type state int

const (
	judged state = iota
	began
	gone
)

var _ constitution.History = (*Ticket)(nil)

// Add takes a ticket for a request that is about to be judged, with what
// constitution.Set.See said of it. Every request takes one, whatever it said. now
// is what the clock says then; by it, and by nothing else, time passes here.
func (h *History) Add(now time.Time, tenant, crossing string, sights []constitution.Sight) *Ticket {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tick(now)
	h.next++
	t := &Ticket{h: h, n: h.next, tenant: tenant, id: crossingOf(crossing), now: h.last, sees: map[string]constitution.Sight{}}
	if n, err := instant(now); err == nil {
		t.now = n
	}
	h.pending[t.n] = t
	for _, s := range sights {
		t.sees[s.Past.ID] = s
		if k := h.kept[s.Past.ID]; k != nil && s.Err == nil && s.Seen.Matches {
			a := k.aggregate(tenant)
			a.pending[s.Seen.Group] = append(a.pending[s.Seen.Group], t)
		}
	}
	return t
}

// Look answers for a request that is only looked at: it counts every request that
// is being judged, and none counts it.
func (h *History) Look(tenant string) *Ticket {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Ticket{h: h, n: h.next + 1, tenant: tenant, state: gone}
}

// Mark is the newest ticket's, for Settled.
func (h *History) Mark() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// Confirm counts the request as one that began at an instant: that of its begin,
// as the ledger has it. What could not be seen of it makes aggregates unreadable.
func (t *Ticket) Confirm(at time.Time) {
	if t == nil {
		return
	}
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	if !t.leave(began) {
		return
	}
	when, err := instant(at)
	if err != nil {
		when = t.now
	}
	t.at, t.stamp = when, t.h.elapsed
	for id, s := range t.sees {
		if k := t.h.kept[id]; k != nil && (s.Seen.Matches || s.Err != nil) && t.h.first(k, t.id) {
			t.h.enter(k, t.tenant, mark{at: when, amount: s.Seen.Amount, id: t.id.short()}, s.Seen, s.Err, t.stamp)
		}
	}
}

// Drop says that the request does not begin: it was refused, or waits for a
// person and is judged again.
func (t *Ticket) Drop() {
	if t == nil {
		return
	}
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	t.leave(gone)
}

// Remove takes back that the request began: it is known never to have started.
func (t *Ticket) Remove() {
	if t == nil {
		return
	}
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	if t.state != began {
		return
	}
	t.state = gone
	t.h.remove(t.tenant, t.id, t.at, t.sees)
}

// leave ends the judging, once.
func (t *Ticket) leave(to state) bool {
	if t.state != judged {
		return false
	}
	t.state = to
	delete(t.h.pending, t.n)
	for id, s := range t.sees {
		k := t.h.kept[id]
		if k == nil || k.tenants[t.tenant] == nil {
			continue
		}
		a := k.tenants[t.tenant]
		a.pending[s.Seen.Group] = without(a.pending[s.Seen.Group], t)
		if len(a.pending[s.Seen.Group]) == 0 {
			delete(a.pending, s.Seen.Group)
		}
	}
	return true
}

// without keeps the order, which is that of the tickets.
func without(list []*Ticket, t *Ticket) []*Ticket {
	for i, o := range list {
		if o == t {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}
