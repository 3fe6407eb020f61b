package history

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// aggregate is what one past function remembers of one tenant.
type aggregate struct {
	window  int64
	groups  map[string]*group
	list    []*group // the same, to tidy one after another
	broom   int
	held    int64
	entries int64
	pending map[string][]*Ticket // by group, in the tickets' order
	// lost is the latest instant at which something is not known; 0 if all is.
	lost int64
}

// group is what was equal in what same compares.
type group struct {
	key   string
	place int // in the aggregate's list
	marks timeline
	// values are what distinct counts, numbers the same by their number, and
	// lasts their last occurrences.
	values  map[string]*value
	numbers map[int64]*value
	lasts   timeline
	given   int64
}

type value struct {
	key             string
	number, n, last int64
}

func newAggregate(window time.Duration) *aggregate {
	return &aggregate{window: int64(window), groups: map[string]*group{}, pending: map[string][]*Ticket{}}
}

func (a *aggregate) lose(at int64) { a.lost = max(a.lost, at) }

// until is when all is known again: just after what is lost left the window,
// which is closed.
func (a *aggregate) until() time.Time { return time.Unix(0, a.lost+a.window+1).UTC() }

// span is how long a chunk takes in entries: an eighth of how long they are held,
// so that a short window does not make a chunk of each entry.
func (a *aggregate) span() int64 { return (a.window + int64(Slack)) / 8 }

func (a *aggregate) insert(m mark, key, val string, stamp int64) {
	g := a.groups[key]
	if g == nil {
		g = &group{key: key, place: len(a.list)}
		a.groups[key], a.list = g, append(a.list, g)
		a.held += groupWeight
	}
	if val != "" {
		m.amount = a.count(g, val, m.at, stamp)
	}
	g.marks.insert(m, stamp, a.span())
	a.held++
	a.entries++
}

// count notes a value's occurrence and returns its number.
func (a *aggregate) count(g *group, key string, at, stamp int64) int64 {
	v := g.values[key]
	if v == nil {
		if g.values == nil {
			g.values, g.numbers = map[string]*value{}, map[int64]*value{}
		}
		g.given++
		v = &value{key: key, number: g.given, last: at}
		g.values[key], g.numbers[v.number] = v, v
		g.lasts.insert(mark{at: at, id: uint64(v.number)}, stamp, a.span())
		a.held += valueWeight
	} else if at > v.last {
		g.relast(v, at, stamp, a.span())
	}
	v.n++
	return v.number
}

func (g *group) relast(v *value, at, stamp, span int64) {
	g.lasts.remove(v.last, uint64(v.number))
	v.last = at
	g.lasts.insert(mark{at: at, id: uint64(v.number)}, stamp, span)
}

// away notes that an occurrence is no longer held.
func (a *aggregate) away(g *group, m mark) {
	a.held--
	a.entries--
	v := g.numbers[m.amount]
	if v == nil {
		return
	}
	if v.n--; v.n == 0 {
		g.lasts.remove(v.last, uint64(v.number))
		delete(g.values, v.key)
		delete(g.numbers, v.number)
		a.held -= valueWeight
	}
}

// remove takes one crossing out; of a group that is known, or of whichever it
// is in.
func (a *aggregate) remove(at int64, id uint64, key *string) (mark, *group) {
	some := a.list
	if key != nil {
		if some = nil; a.groups[*key] != nil {
			some = []*group{a.groups[*key]}
		}
	}
	for _, g := range some {
		m, found := g.marks.remove(at, id)
		if !found {
			continue
		}
		v := g.numbers[m.amount]
		a.away(g, m)
		if v != nil && v.n > 0 && v.last == at {
			if last, found := g.marks.latest(v.number); found && last != at {
				g.relast(v, last, 0, a.span())
			}
		}
		return m, g
	}
	return mark{}, nil
}

// sweep tidies some groups: what can no longer be within a window is put away.
func (a *aggregate) sweep(elapsed int64, some int) {
	limit := elapsed - a.window - int64(Slack)
	for range min(some, len(a.list)) {
		if a.broom >= len(a.list) {
			a.broom = 0
		}
		g := a.list[a.broom]
		g.marks.discard(limit, func(m mark) { a.away(g, m) })
		if g.marks.n > 0 {
			a.broom++
			continue
		}
		end := len(a.list) - 1
		a.list[a.broom] = a.list[end]
		a.list[a.broom].place = a.broom
		a.list[end] = nil
		a.list = a.list[:end]
		delete(a.groups, g.key)
		a.held -= groupWeight
	}
}

// giveUp forgets everything, and does not answer until it would have left the
// window.
func (a *aggregate) giveUp() {
	for _, g := range a.list {
		if end := len(g.marks.chunks); end > 0 {
			a.lose(g.marks.chunks[end-1].last())
		}
	}
	a.groups, a.list, a.broom, a.held, a.entries = map[string]*group{}, nil, 0, 0, 0
}

// Ask implements constitution.History for the request: what began, without
// itself, and what is judged still under an earlier ticket.
func (t *Ticket) Ask(p *constitution.Past, key string, now time.Time) (constitution.Answer, error) {
	if t == nil || t.h == nil {
		return constitution.Answer{}, ErrNotKept
	}
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	k := t.h.kept[p.ID]
	if k == nil {
		return constitution.Answer{}, ErrNotKept
	}
	if !k.ready {
		return constitution.Answer{}, ErrNotReady
	}
	n, err := instant(now)
	if err != nil {
		return constitution.Answer{}, err
	}
	cut := n - int64(k.past.Window)
	if cut < k.from {
		return constitution.Answer{}, fmt.Errorf("%w: it was set back behind what was read", ErrClock)
	}
	a := k.tenants[t.tenant]
	if a == nil {
		return constitution.Answer{}, nil
	}
	if a.lost != 0 && a.lost >= cut {
		return constitution.Answer{}, unreadable(a)
	}
	if s, saw := t.sees[p.ID]; saw && t.state == began && s.Seen.Matches && s.Seen.Group == key {
		if m, g := a.remove(t.at, t.id.short(), &key); g != nil {
			defer a.insert(m, key, s.Seen.Value, t.stamp)
		}
	}
	return a.answer(p.ID, key, cut, t.n)
}

// answer adds what began to what is judged under an earlier ticket.
func (a *aggregate) answer(id, key string, cut int64, ticket uint64) (constitution.Answer, error) {
	var (
		out  constitution.Answer
		sum  wide
		last int64
	)
	g := a.groups[key]
	if g != nil {
		out.Count, sum, last = g.marks.since(cut)
		if g.values != nil {
			out.Distinct, _, _ = g.lasts.since(cut)
			sum = wide{} // the amounts are values' numbers
		}
	}
	var fresh map[string]bool
	for _, t := range a.pending[key] {
		if t.n >= ticket {
			break
		}
		s := t.sees[id].Seen
		out.Count++
		sum = sum.add(s.Amount)
		last = max(last, t.now)
		if s.Value == "" || g != nil && g.values[s.Value] != nil && g.values[s.Value].last >= cut || fresh[s.Value] {
			continue
		}
		if fresh == nil {
			fresh = map[string]bool{}
		}
		fresh[s.Value] = true
		out.Distinct++
	}
	if last != 0 {
		out.Last = time.Unix(0, last).UTC()
	}
	var ok bool
	if out.Sum, ok = sum.fits(); !ok {
		return constitution.Answer{}, ErrOverflow
	}
	return out, nil
}
