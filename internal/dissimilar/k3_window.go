package dissimilar

import (
	"fmt"
	"strings"
)

// windowed is what a counter's windows tell of their length, which no record
// holds. Windows start at multiples of it (D9): it divides every start, and
// each lasted longer than the oldest draw that was made in it.
type windowed struct {
	known   bool
	divisor int64 // of every start, in seconds; 0 for windows that never end
	age     int64 // of the oldest draw, in seconds after its window's start
}

// window judges the window that a begin draws on: it had started, it had not
// ended, and it is as long as the others of its counter.
func (v *Verifier) window(r *record, d draw, w *windowed) bool {
	says := fmt.Sprintf("a window of %q that starts at second %d", d.name, d.window)
	// The clock may be a second behind the record's time.
	at, age := int64(r.clock()/second), int64(r.clock()/second)-1-d.window
	switch {
	case d.window < 0 || d.window > at:
		v.badf(K3Room, says, "it was second %d", at)
		return false
	case w.known && (w.divisor == 0) != (d.window == 0):
		v.bad(K3Room, says, "windows of one counter are all of one length, or never end")
		return false
	case d.window == 0:
		w.known = true
		return true
	}
	div, old := divisor(w.divisor, d.window), max(w.age, age)
	if div <= old {
		v.badf(K3Room, says, "windows of that counter are longer than %d seconds, and start at multiples of their length", old)
		return false
	}
	w.known, w.divisor, w.age = true, div, old
	return true
}

// divisor is the greatest that both have.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// sameLimit judges that one policy gives one limit to one and the same asker.
// What it gives is not in the ledger.
func (v *Verifier) sameLimit(c Check, r *record, key, name string, limit, window int64) bool {
	h := digest(strings.Join([]string{c.gate(), r.Policy, key, name, r.Boundary, r.Agent, r.AgentKind, r.Caller, r.Session, r.Chain, r.Tier, strings.Join(r.Roles, "\x01")}, "\x00"))
	id := [16]byte(h[:16])
	was, known := v.t.limits.get(id)
	if !known {
		v.t.limits.put(id, [2]int64{limit, window})
		return true
	}
	if was != [2]int64{limit, window} {
		v.badf(c, fmt.Sprintf("limit %d of %q", limit, name), "under the same policy it was %d before", was[0])
		return false
	}
	return true
}
