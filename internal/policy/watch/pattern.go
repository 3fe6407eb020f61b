package watch

import "time"

const (
	// window is how many of the last actions haste and rising costs are looked for
	// in, and enough how many make a pattern (spec 001, layer 5).
	window = 10
	enough = 5
	// rapid is the time between two actions below which they are rapid.
	rapid = 5 * time.Second
)

// series are the last values of something, the newest last.
type series struct {
	values [window]int64
	n      int
}

func (s *series) add(v int64) {
	if s.n == window {
		copy(s.values[:], s.values[1:])
		s.n--
	}
	s.values[s.n] = v
	s.n++
}

func (s *series) list() []int64 { return s.values[:s.n] }

// differs says whether v is not the newest.
func (s *series) differs(v int64) bool { return s.n == 0 || s.values[s.n-1] != v }

// isRapid says whether at least five instants (ns) followed each other within five
// seconds, but for one pause (D39).
func isRapid(times []int64) bool {
	missed, n := 0, 1
	for i := len(times) - 2; i >= 0 && missed <= 1; i-- {
		if times[i+1]-times[i] >= int64(rapid) {
			missed++
		}
		if missed <= 1 {
			n++
		}
	}
	return n >= enough
}

// escalates says whether at least five costs rose with each, whatever one among
// them was (D39), and by half in all. So one dip ends no rise, and no rise is made
// of what goes up and down; the half keeps costs that are the same but for their
// noise from being one.
func escalates(costs []int64) bool {
	for dip := range len(costs) + 1 { // the last leaves nothing out
		if rises(costs, dip) {
			return true
		}
	}
	return false
}

// rises is escalates of all but the one at dip.
func rises(costs []int64, dip int) bool {
	n, first, now := 0, int64(0), int64(0)
	for i := len(costs) - 1; i >= 0; i-- {
		if i == dip {
			continue
		}
		if n > 0 && costs[i] >= first {
			break
		}
		if first = costs[i]; n == 0 {
			now = first
		}
		n++
	}
	return n >= enough && now-first > first/2
}
