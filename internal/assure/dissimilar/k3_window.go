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
	if strings.HasPrefix(key, "feature/") {
		return true // a feature's own counter: its rows give the limit, not the policy
	}
	h := digest(strings.Join([]string{c.gate(), r.Policy, key, name, r.Boundary, r.Agent, r.AgentKind, r.Caller, r.Session, r.Chain, r.Tier, strings.Join(r.Roles, "\x01")}, "\x00"))
	id := [16]byte(h[:16])
	was, known := v.t.limits.get(id)
	if !known {
		v.t.limits.put(id, [2]int64{limit, window})
		return true
	}
	if was != [2]int64{limit, window} && (was[1] != window || !v.mayBe(key, was[0], limit)) {
		v.badf(c, fmt.Sprintf("limit %d of %q", limit, name), "under the same policy it was %d before", was[0])
		return false
	}
	return true
}

// How many grants of one counter are kept, and of how many counters. A person
// makes each; what is beyond is judged as if nobody had.
const (
	longestGrants = 64
	mostGranted   = 4096
)

// extended notes that a counter's limit was raised, and judges that the review it
// names was about that agent's spent budget, and approved.
func (v *Verifier) extended(r *record, d *data) {
	if old, known := v.t.granted[d.Key]; len(old) < longestGrants && (known || len(v.t.granted) < mostGranted) {
		v.t.granted[d.Key] = append(old, d.Granted)
	}
	q, known := v.t.reviews.get(d.Review)
	switch {
	case !known && v.t.reviews.forgot:
		v.unknown(K7Person, "older reviews are forgotten")
	case !known:
		v.bad(K7Person, "a budget extended by review "+quote(d.Review), "nothing was asked under that name")
	case q.about != aboutBudget || q.agent != r.Subject || q.decision != "approved" || d.Granted <= 0:
		v.bad(K7Person, "a budget of "+quote(r.Subject)+" extended by review "+quote(d.Review), "that review did not approve it")
	default:
		v.good(K7Person)
	}
}

// mayBe says whether one limit is the other as grants have raised it: a request
// that was judged before a grant may begin after it.
func (v *Verifier) mayBe(key string, was, limit int64) bool {
	totals := append([]int64{0}, v.t.granted[key]...)
	for _, a := range totals {
		for _, b := range totals {
			if limit-a == was-b {
				return true
			}
		}
	}
	return false
}
