package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// plain does what a History does by keeping a list of all that ever was, and
// walking it.
type plain struct {
	entries []plainEntry
	window  time.Duration
}

type plainEntry struct {
	id    string
	n     int
	at    time.Time
	seen  constitution.Seen
	err   error
	state state
}

// ask answers as the request of a ticket, or says that it cannot.
func (l *plain) ask(n int, group string, now time.Time) (a constitution.Answer, lost bool) {
	values := map[string]bool{}
	for _, e := range l.entries {
		switch {
		case e.state == gone, e.state == judged && e.n >= n:
			continue
		case e.state == began && e.at.Before(now.Add(-l.window)):
			continue
		case e.state == began && e.err != nil:
			lost = true
			continue
		case e.n == n:
			continue
		case e.err != nil, !e.seen.Matches, e.seen.Group != group:
			continue
		}
		a.Count++
		a.Sum += e.seen.Amount
		if e.seen.Value != "" && !values[e.seen.Value] {
			values[e.seen.Value] = true
			a.Distinct++
		}
		if e.at.After(a.Last) {
			a.Last = e.at
		}
	}
	return a, lost
}

// TestAnswersAreThoseOfAWalk: whatever requests do, at whatever pace of the clock,
// every answer is that of a list that is walked.
func TestAnswersAreThoseOfAWalk(t *testing.T) {
	for seed := range 30 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			walk(t, rand.New(rand.NewPCG(uint64(seed), 8)), 1_000)
		})
	}
}

// FuzzAnswersAreThoseOfAWalk lets the fuzzer choose.
func FuzzAnswersAreThoseOfAWalk(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { walk(t, rand.New(rand.NewPCG(a, b)), 300) })
}

func walk(t *testing.T, r *rand.Rand, steps int) {
	p := past("p", time.Hour)
	h := New(1 << 40)
	h.Use(noon, []*constitution.Past{p})
	l := &plain{window: p.Window}
	kind := r.IntN(3) // count, sum, distinct
	now := noon
	some := func() (constitution.Seen, error) {
		s := seen(fmt.Sprint("g", r.IntN(3)), "", 0)
		switch {
		case r.IntN(200) == 0:
			return constitution.Seen{}, ErrClock // any error
		case r.IntN(10) == 0:
			return constitution.Seen{}, nil
		case kind == 1:
			s.Amount = r.Int64N(1_000_000) - 300_000
		case kind == 2:
			s.Value = fmt.Sprint("v", r.IntN(12))
		}
		return s, nil
	}
	for i := range 40 { // what the ledger has
		s, err := some()
		at := noon.Add(-time.Duration(r.IntN(120)) * time.Minute)
		h.Load("p", "t", fmt.Sprint("l", i), at, s, err)
		l.entries = append(l.entries, plainEntry{fmt.Sprint("l", i), -1, at, s, err, began})
	}
	h.Ready("p")
	tickets := map[int]*Ticket{}
	for step := range steps {
		switch r.IntN(20) {
		case 0:
			now = now.Add(time.Duration(r.IntN(30)) * time.Minute)
		case 1:
			now = now.Add(-time.Duration(r.IntN(3_000)) * time.Millisecond)
		default:
			now = now.Add(time.Duration(r.IntN(30)) * time.Second)
		}
		s, err := some()
		n := len(l.entries)
		tickets[n] = h.Add(now, "t", fmt.Sprint(n), []constitution.Sight{{Past: p, Seen: s, Err: err}})
		l.entries = append(l.entries, plainEntry{fmt.Sprint(n), n, now, s, err, judged})
		for range 3 { // something becomes of some of the last ones
			i := max(40, n-r.IntN(8))
			switch e := &l.entries[i]; {
			case e.state == judged && r.IntN(3) == 0:
				tickets[i].Drop()
				e.state = gone
			case e.state == judged:
				e.at = e.at.Add(time.Duration(r.IntN(2_000)) * time.Millisecond)
				tickets[i].Confirm(e.at)
				e.state = began
			case e.state == began && e.err == nil && r.IntN(6) == 0:
				tickets[i].Remove()
				e.state = gone
			}
		}
		i := max(40, n-r.IntN(10))
		group := fmt.Sprint("g", r.IntN(3))
		got, err := tickets[i].Ask(p, group, now)
		want, lost := l.ask(i, group, now)
		if lost != (err != nil) || err == nil && (got.Count != want.Count || got.Sum != want.Sum || got.Distinct != want.Distinct || !got.Last.Equal(want.Last)) {
			t.Fatalf("step %d, request %d, %s at %v: %+v %v, not %+v (lost: %v)", step, i, group, now, got, err, want, lost)
		}
	}
	if h.held != weigh(h) {
		t.Fatalf("%d are counted as held, and %d are", h.held, weigh(h))
	}
}
