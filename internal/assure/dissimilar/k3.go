package dissimilar

import (
	"fmt"
	"math"
	"slices"
)

// counter is a usage counter as the ledger adds up to it: what began took its
// amount, what ended was settled at what it used (D9).
type counter struct {
	used, window int64
	// lost says that the counter may have been forgotten, so that its sum is
	// not known.
	lost    bool
	windows windowed
	// past is what it was, newest last; first is how many were dropped.
	past  []moment
	first int64
}

// moment is a counter after a leaf.
type moment struct {
	at           stamp // when the leaf was made
	used, window int64
	// stood is a time at which it stood for certain: the begin that made it has
	// its entry then. 0 where nothing tells.
	stood stamp
}

// history is how many moments of a counter are kept.
const history = 1 << 13

func (v *Verifier) counter(key string) *counter {
	c, known := v.t.counters.get(key)
	if !known {
		c = &counter{lost: v.t.counters.forgot}
		v.t.counters.put(key, c)
	}
	return c
}

// in is the counter as a draw of that window sees it.
func (m moment) in(window int64) int64 {
	if m.window == window {
		return m.used
	}
	return 0
}

// now is the index of the newest moment, -1 before the first.
func (c *counter) now() int64 { return c.first + int64(len(c.past)) - 1 }

func (c *counter) note(at stamp) {
	if len(c.past) >= 2*history {
		n := len(c.past) - history
		c.first += int64(n)
		c.past = append(c.past[:0], c.past[n:]...)
	}
	c.past = append(c.past, moment{at: at, used: c.used, window: c.window})
}

// stood notes a time at which moment i stood for certain.
func (c *counter) stood(i int64, at stamp) {
	if i -= c.first; 0 <= i && i < int64(len(c.past)) {
		c.past[i].stood = at
	}
}

// was searches backwards from index hi for a moment that fits, as far as
// something that a judgement at that time can have seen. sure says that nothing
// was missed.
func (c *counter) was(hi int64, from stamp, fits func(moment) bool) (found, sure bool) {
	if hi > c.now() {
		return false, false
	}
	far, last := false, stamp(0)
	for i := hi - c.first; i >= 0; i-- {
		m := c.past[i]
		if fits(m) {
			return !far, !far
		}
		if far && m.at+minute < last || m.at+minute < from && 0 < m.stood && m.stood < from {
			return false, !c.lost
		}
		if !far && m.at+minute < from {
			far, last = true, m.at
		}
	}
	if c.first > 0 {
		return false, false
	}
	if fits(moment{}) {
		return !far, !far && !c.lost
	}
	return false, !c.lost
}

// fits says whether an amount fits on top of what is used, without overflow.
func fits(used, amount, limit int64) bool {
	return limit >= 0 && amount >= 0 && used >= 0 && amount <= limit && used <= limit-amount
}

// reserve judges that each amount fitted when the begin took it, which is exact:
// begin and reservation are one transaction, so the order of the leaves is the
// order of the reservations. Then it takes them.
func (v *Verifier) reserve(r *record) {
	r.hi = make([]int64, len(r.Draws))
	wrong, lost := false, false
	for i, d := range r.Draws {
		c := v.counter(d.key)
		r.hi[i] = c.now()
		wrong = !v.window(r, d, &c.windows) || wrong
		wrong = !v.sameLimit(K3Room, r, d.key, d.name, d.limit, 0) || wrong
		base := moment{used: c.used, window: c.window}
		// A clock that went backwards draws on the newer window, so that no
		// window is filled twice.
		window := d.window
		if 0 < d.window && d.window < c.window {
			window = c.window
		}
		used := base.in(window)
		switch {
		case fits(used, d.amount, d.limit):
		case c.lost:
			lost = true
		default:
			wrong = true
			v.badf(K3Room, fmt.Sprintf("a begin that takes %d of %q", d.amount, d.name), "%d are used already of %d", used, d.limit)
		}
		lost = lost || c.lost
		c.used, c.window = plus(used, d.amount), window
		c.note(r.Timestamp)
	}
	switch {
	case wrong:
	case lost:
		v.unknown(K3Room, "older counters are forgotten")
	case len(r.Draws) > 0:
		v.good(K3Room)
	}
	v.takeRates(r)
}

func plus(a, b int64) int64 {
	if s := a + b; b < 0 || s >= a {
		return s
	}
	return math.MaxInt64
}

// settle replaces what a crossing took by what it used.
func (v *Verifier) settle(r, b *record) {
	if b == nil {
		return
	}
	for i, u := range r.Uses {
		c := v.counter(u.key)
		if i < len(b.hi) && r.Outcome != "unknown" {
			c.stood(b.hi[i]+1, r.Created)
		}
		if u.used == nil || r.Outcome == "unknown" {
			continue // recovery leaves what was reserved
		}
		if c.window != u.window {
			continue
		}
		c.used = plus(max(c.used-u.amount, 0), *u.used)
		c.note(r.Created)
	}
}

// bounds judges K3 of an entry: the usage before, the sums, the columns, and a
// refusal.
func (v *Verifier) bounds(r, b *record) {
	v.columns(r)
	uncharged := false
	if o := r.opinion("K3"); o != nil && b == nil {
		// A key that has a result is charged nothing, and no room is asked for.
		uncharged = o.Rule == "replay" && o.Verdict == "allow"
	}
	if r.Within == nil {
		return
	}
	for i, u := range r.Uses {
		v.before(r, b, i, u)
		if b != nil && (u.used == nil || *u.used < 0) {
			v.bad(K3Room, fmt.Sprintf("nothing settled of %q", u.name), "what began is settled at what it used, or what it took")
		}
		if b == nil && u.used != nil {
			v.bad(K3Room, fmt.Sprintf("%d settled of %q", *u.used, u.name), "what never began uses nothing")
		}
	}
	if *r.Within && uncharged {
		return
	}
	if *r.Within {
		for _, u := range r.Uses {
			if !fits(u.before, u.amount, u.limit) {
				v.badf(K3Room, fmt.Sprintf("within the budget: %d used before, %d asked of %q", u.before, u.amount, u.name), "the limit is %d", u.limit)
				return
			}
		}
		if b == nil && len(r.Uses) > 0 {
			v.good(K3Room)
		}
		return
	}
	v.refused(r)
}

// refused judges that a refusal for want of room was right.
func (v *Verifier) refused(r *record) {
	o := r.opinion("K3")
	if o == nil {
		return
	}
	switch o.Kind {
	case "BoundsExceeded", "BudgetExceededError", "RateLimitError", "OverflowError":
	default:
		v.unknown(K3Room, "limits that cannot be asked are not in the ledger")
		return
	}
	i := slices.IndexFunc(r.Uses, func(u use) bool { return u.name == o.Rule })
	if i < 0 {
		v.unknown(K3Rate, "what else was in a rate that refused is not in its record")
		return
	}
	u := r.Uses[i]
	if !fits(u.before, u.amount, u.limit) {
		v.good(K3Room)
		return
	}
	// There was room when it was judged; another was faster.
	c := v.counter(u.key)
	full, sure := c.was(c.now(), r.Timestamp, func(m moment) bool {
		used := m.in(u.window)
		if 0 < u.window && u.window < m.window {
			used = m.used
		}
		return !fits(used, u.amount, u.limit)
	})
	switch {
	case full:
		v.good(K3Room)
	case !sure:
		v.unknown(K3Room, unclear)
	default:
		v.badf(K3Room, fmt.Sprintf("no room for %d of %q", u.amount, u.name), "there was room all the time, of %d", u.limit)
	}
}

// crashed is why an entry of recovery does not show what was used before.
const crashed = "after a crash it is not known what was used before"

// unclear is why a counter's past is not told.
const unclear = "too long ago, or too near a jump of the clock, to know what the counter was"

// before judges that the usage before is one that the counter had, at some
// leaf between when the request was made and when it began or was refused.
func (v *Verifier) before(r, b *record, i int, u use) {
	if r.Outcome == "unknown" {
		v.unknown(K3Before, crashed)
		return
	}
	c := v.counter(u.key)
	hi := c.now()
	if b != nil {
		if i >= len(b.hi) {
			return // begin and entry differ, which is said already
		}
		hi = b.hi[i]
	}
	saw, sure := c.was(hi, r.Timestamp, func(m moment) bool { return m.in(u.window) == u.before })
	switch {
	case saw:
		v.good(K3Before)
	case !sure:
		v.unknown(K3Before, unclear)
	default:
		now := moment{}
		if k := hi - c.first; k >= 0 && k < int64(len(c.past)) {
			now = c.past[k]
		}
		v.badf(K3Before, fmt.Sprintf("%d used before of %q", u.before, u.name), "the ledger adds up to %d", now.in(u.window))
	}
}

// columns holds the document's four columns against all of them.
func (v *Verifier) columns(r *record) {
	if r.Outcome == "unknown" {
		v.unknown(K3Columns, crashed)
		return
	}
	if len(r.Uses) == 0 {
		if r.Resource != nil || r.Limit != nil || r.Before != nil || r.Requested != nil {
			v.bad(K3Columns, "a resource", "nothing was counted")
		}
		return
	}
	best, least := -1, int64(0)
	for i, u := range r.Uses {
		if left := u.limit - u.before - u.amount; best < 0 || left < least {
			best, least = i, left
		}
	}
	u := r.Uses[best]
	if !r.showsRefused() && !r.shows(&u) {
		v.badf(K3Columns, fmt.Sprintf("limit %s, before %s, requested %s", number(r.Limit), number(r.Before), number(r.Requested)),
			"the tightest is %q: limit %d, before %d, requested %d", u.name, u.limit, u.before, u.amount)
		return
	}
	v.good(K3Columns)
}

// shows says whether the columns are those of u.
func (r *record) shows(u *use) bool {
	return r.Resource != nil && *r.Resource == u.resource && r.Limit != nil && *r.Limit == u.limit &&
		r.Before != nil && *r.Before == u.before && r.Requested != nil && *r.Requested == u.amount
}

// showsRefused says whether the columns are those of what had no room. Entries of
// old show the tightest there, too, which may be another.
func (r *record) showsRefused() bool {
	o := r.opinion("K3")
	if o == nil || r.Within == nil || *r.Within {
		return false
	}
	return slices.ContainsFunc(r.Uses, func(u use) bool { return u.name == o.Rule && r.shows(&u) })
}

// taken are the newest takings of a rate, oldest first.
type taken struct {
	at   []stamp
	lost bool
}

// takeRates judges that there were fewer than limit takings in the window before
// the begin (D9), then takes one place in each.
func (v *Verifier) takeRates(r *record) {
	for _, want := range r.Rates {
		key := want.key
		t, known := v.t.rates.get(key)
		if !known {
			t = &taken{lost: v.t.rates.forgot}
			v.t.rates.put(key, t)
		}
		switch nth := len(t.at) - int(min(want.limit, history)); {
		case want.limit < 1 || want.window < 1:
			v.badf(K3Rate, fmt.Sprintf("a place in the rate %q", want.name), "%d in %d microseconds has no place", want.limit, want.window)
		case want.limit > history:
			v.unknown(K3Rate, "the rate is larger than what is remembered")
		case nth >= 0 && t.at[nth]+stamp(want.window) > r.clock()+second:
			v.badf(K3Rate, fmt.Sprintf("a place in the rate %q", want.name), "%d were taken since %s", want.limit, t.at[nth])
		case !v.sameLimit(K3Rate, r, key, want.name, want.limit, want.window):
		case t.lost:
			v.unknown(K3Rate, "older rates are forgotten")
		default:
			v.good(K3Rate)
		}
		at := r.clock()
		if n := len(t.at); n > 0 {
			at = max(at, t.at[n-1])
		}
		if t.at = append(t.at, at); len(t.at) > 2*history {
			t.at = append(t.at[:0], t.at[len(t.at)-history:]...)
		}
	}
}
