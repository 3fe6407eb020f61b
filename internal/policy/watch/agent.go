package watch

import "math"

const (
	// slots of slot nanoseconds each are the last hour, and one that it is leaving:
	// that one counts whole, so that in no hour more can be done unseen than a limit
	// lets pass.
	slots = 31
	slot  = hour / (slots - 1)
)

// agent is what is kept of one.
type agent struct {
	hours  []bucket // in order; the last is the one that goes on
	span   [3]span  // of the hours before it
	closed int32    // the hour that was judged last

	// What it does, what it asks of models and what its sub-agents do come to an end
	// apart, so that none of them hides another's errors.
	acts, questions, below endings

	now    *recent // nil of an agent that did nothing for an hour
	alarms []alarm
	last   int64 // its newest action, ns
}

// recent is what only an agent has that does something.
type recent struct {
	times series // of its actions, ns
	costs series // of those that cost something other than the one before, micro-dollars
	turns turns
	same  most // of actions
	kind  most // of kinds of them
	cost  [slots]int64
	steps [slots]uint16
	files [slots]uint16 // of the largest commit
	at    int64         // the newest slot's number
	// What the slots come to, so that a crossing need not add them up.
	spent int64
	done  uint32
}

// outcome notes how a crossing ended, of its own or of a sub-agent's.
func (a *agent) outcome(s *Seen, own bool) {
	switch {
	case s.Refused:
	case !own:
		a.below.add(s.Failed)
	case s.Passive:
		a.questions.add(s.Failed)
	default:
		a.acts.add(s.Failed)
	}
}

// errorRate is the worst share of errors, of how many, and whether there were enough
// of any to say.
func (a *agent) errorRate() (rate float64, of int, known bool) {
	for _, e := range [...]*endings{&a.acts, &a.questions, &a.below} {
		if r, ok := e.rate(); ok && (r > rate || !known) {
			rate, of, known = r, int(e.judged), true
		}
	}
	if !known {
		of = int(max(a.acts.judged, a.questions.judged, a.below.judged))
	}
	return rate, of, known
}

// enter adds to the hour that the instant is in, and says whether another ended. An
// hour that is yet to come, which a clock that was ahead has left, is forgotten.
func (a *agent) enter(at int64, s *Seen) (ended bool) {
	h := int32(at / hour)
	for n := len(a.hours); n > 0 && a.hours[n-1].hour > h; n-- {
		a.hours = a.hours[:n-1]
	}
	if n := len(a.hours); n == 0 || a.hours[n-1].hour < h {
		ended = n > 0
		if n >= keep {
			a.hours = append(a.hours[:0:0], a.hours[n-keep+1:]...)
		}
		a.hours = append(a.hours, bucket{hour: h})
	}
	a.hours[len(a.hours)-1].count(s)
	return ended
}

// count adds a crossing.
func (b *bucket) count(s *Seen) {
	b.actions = more(b.actions)
	if s.Step {
		b.steps = more(b.steps)
	}
	if s.Failed {
		b.errors = more(b.errors)
	}
	b.cost = sum(b.cost, s.Cost)
}

// learn computes what is usual, from the hours that ended.
func (a *agent) learn() {
	past := a.hours[:max(len(a.hours)-1, 0)]
	values := make([]float64, len(past))
	for i, m := range measures() {
		for j, b := range past {
			values[j] = m.of(b)
		}
		a.span[i] = usual(values, m.floor, m.counted)
	}
}

// thisHour is how many actions the hour of the clock has seen so far.
func (a *agent) thisHour(at int64) uint32 {
	if n := len(a.hours); n > 0 && a.hours[n-1].hour == int32(at/hour) {
		return a.hours[n-1].actions
	}
	return 0
}

// lastHour is about how many actions the last hour had.
func (a *agent) lastHour(at int64) int {
	n := float64(a.thisHour(at))
	for _, b := range a.hours[max(len(a.hours)-2, 0):] {
		if int64(b.hour) == at/hour-1 {
			n += math.Ceil(float64(b.actions) * float64(hour-at%hour) / float64(hour))
		}
	}
	return int(n)
}

// add notes a crossing for the last hour, and one that is an action of the agent's
// own for the patterns.
func (r *recent) add(at int64, s *Seen, own bool) {
	r.advance(at)
	r.cost[r.at%slots], r.spent = sum(r.cost[r.at%slots], s.Cost), sum(r.spent, s.Cost)
	if n := &r.steps[r.at%slots]; s.Step && *n < 1<<16-1 {
		*n++
		r.done++
	}
	if s.Passive || !own {
		return
	}
	r.times.add(at)
	if s.Cost > 0 && r.costs.differs(s.Cost) {
		r.costs.add(s.Cost)
	}
	r.turns.add(s.Action)
	r.same.add(s.Action, actionAway, actionMost)
	if s.Kind != 0 {
		r.kind.add(s.Kind, kindAway, kindMost)
	}
}

// forget ends the patterns; what was spent and done stays.
func (r *recent) forget() {
	*r = recent{cost: r.cost, steps: r.steps, files: r.files, at: r.at, spent: r.spent, done: r.done}
}

// advance empties the slots that the clock has passed.
func (r *recent) advance(at int64) {
	now := at / slot
	if now <= r.at {
		return
	}
	for n := max(r.at+1, now-slots+1); n <= now; n++ {
		r.cost[n%slots], r.steps[n%slots], r.files[n%slots] = 0, 0, 0
	}
	r.at, r.spent, r.done = now, 0, 0
	for i := range r.cost {
		r.spent = sum(r.spent, r.cost[i])
		r.done += uint32(r.steps[i])
	}
}

// hourly is what the last hour came to, and what came before it in its first slot.
func (r *recent) hourly(at int64) (cost int64, steps float64) {
	r.advance(at)
	return r.spent, float64(r.done)
}

// committed notes how many files a commit changed.
func (r *recent) committed(at int64, files int) {
	r.advance(at)
	if n := &r.files[r.at%slots]; files > int(*n) {
		*n = uint16(min(files, 1<<16-1))
	}
}

// largest is the largest commit of the last hour, in files; 65,535 at most.
func (r *recent) largest(at int64) (files int) {
	r.advance(at)
	for _, n := range r.files {
		files = max(files, int(n))
	}
	return files
}

// sum adds amounts that are not below zero, and stops at the most there is.
func sum(a, b int64) int64 {
	if a = max(a, 0); b <= 0 {
		return a
	} else if a > 1<<63-1-b {
		return 1<<63 - 1
	}
	return a + b
}

func more(n uint32) uint32 { return max(n, n+1) }
