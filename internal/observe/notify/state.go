package notify

import (
	"cmp"
	"slices"
	"time"
)

// State is how it stands with one channel.
type State struct {
	Channel string
	// Since is since when each try fails, and Why why the last did; zero where the
	// last one told.
	Since time.Time
	Why   string
	// Waiting are alerts that it was not told, Sent and Failed its tries since the
	// start.
	Waiting      int
	Sent, Failed int64
}

// States are those of every channel that something was for, by name.
func (q *Queue) States() []State {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := map[string]*State{}
	of := func(name string) *State {
		if all[name] == nil {
			all[name] = &State{Channel: name}
		}
		return all[name]
	}
	for name, l := range q.lanes {
		s := of(name)
		s.Since, s.Why, s.Sent, s.Failed = l.since, l.why, l.sent, l.failing
	}
	for _, w := range q.all {
		for _, c := range w.To {
			of(c).Waiting++
		}
	}
	out := make([]State, 0, len(all))
	for _, s := range all {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b State) int { return cmp.Compare(a.Channel, b.Channel) })
	return out
}

// Waiting is how many alerts wait.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.all)
}

// Fault is why what waits cannot be kept, such as a full disk; nil where it is.
func (q *Queue) Fault() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.file.fault
}
