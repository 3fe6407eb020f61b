// Package watch judges what agents did for what is out of the ordinary: loops,
// errors, cost, haste, and what their own past does not make usual (spec 001,
// layer 5, which "the document" is here; D39, D41a). It only proposes: each Finding is carried to the kernel,
// where what is done about it is a crossing.
//
// It is pure: every instant comes from outside. A clock that is set back changes
// nothing, for an action is never before the one that came before it, and time goes
// on from there; one that jumps ahead closes the hour, and what was learned stays,
// since an agent's past is kept by the hours in which it did something.
package watch

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// Limits are what is out of the ordinary whatever was learned. The zero value of
// each is the document's figure, which no other may exceed unless Looser says so
// (D39).
type Limits struct {
	StepsPerHour   float64       // 20
	CostPerHour    int64         // micro-dollars; 5_000_000
	FilesPerCommit int           // 10
	ErrorRate      float64       // 0.05, of the last 100 actions
	Unchecked      time.Duration // 24 h without a person's look
	// Responses are what is done about a condition, other than its severity says.
	Responses map[Name]Response
	// Looser lets limits exceed the document's figures.
	Looser bool
}

// Document is spec 001's figures ("Metrics to Track").
func Document() Limits {
	return Limits{StepsPerHour: 20, CostPerHour: 5_000_000, FilesPerCommit: 10, ErrorRate: 0.05, Unchecked: 24 * time.Hour}
}

// within is l with the document's figures where it names none or larger ones.
func (l Limits) within() Limits {
	d := Document()
	l.StepsPerHour = tighter(l.StepsPerHour, d.StepsPerHour, l.Looser)
	l.CostPerHour = tighter(l.CostPerHour, d.CostPerHour, l.Looser)
	l.FilesPerCommit = tighter(l.FilesPerCommit, d.FilesPerCommit, l.Looser)
	l.ErrorRate = tighter(l.ErrorRate, d.ErrorRate, l.Looser)
	l.Unchecked = tighter(l.Unchecked, d.Unchecked, l.Looser)
	return l
}

func tighter[T cmp.Ordered](own, most T, looser bool) T {
	var none T
	if own > none && (own < most || looser) {
		return own
	}
	return most
}

// Seen is one crossing, as its entry tells of it.
type Seen struct {
	Tenant, Agent, Crossing string
	// Above are the agents that this one is an agent of, the nearest first: what
	// they spend and do in an hour holds what it does. Patterns are its own.
	Above []string
	// Action is the same of two crossings that asked the same boundary for the
	// same. It is a hash, of which nothing else is known.
	Action uint64
	// Kind is the same of two crossings that asked the same boundary, for whatever;
	// 0 where it is not known.
	Kind uint64
	At   time.Time
	Step bool // of agent/step: an iteration (D41)
	// Failed says that it was let through and came to nothing.
	Failed bool
	// Refused says that it was not let through: that is no error, and no success
	// among which errors could hide.
	Refused bool
	// Passive says that it is nothing an agent repeats or hastens, such as the
	// question to a model: it has part in costs and errors, not in patterns.
	Passive    bool
	Prohibited bool  // what nobody may was asked (D37)
	Escape     bool  // D21
	OverBudget bool  // its session has spent what it has (D41)
	Cost       int64 // micro-dollars
}

// MaxAgents bounds how many are watched. Those that did nothing for longest make
// room.
const MaxAgents = 100_000

// owner is whose a condition is.
type owner struct {
	tenant, agent, crossing string
	acts                    bool // it has done something just now
}

type key struct{ tenant, agent string }

// Watch is what is known of every agent. It may be used by many goroutines.
type Watch struct {
	mu         sync.Mutex
	limits     Limits
	conditions []Condition
	at         map[Name]place
	causes     [][]place
	agents     map[key]*agent   // "" is the tenant itself, and of tenant "" everything
	people     map[string]int64 // when somebody looked, or the first crossing was
	looked     map[string]bool  // somebody did
	out        []Finding
	room       int // for agents
	forgotten  int64
	last       int64 // the newest instant
	ahead      int64 // how far the watch's clock is ahead of everybody's, which was set back
}

// New makes one that knows nothing yet. A limit beyond the document's figure is
// that figure.
func New(l Limits) *Watch {
	w := &Watch{limits: l.within(), room: MaxAgents, conditions: Conditions(), agents: map[key]*agent{}, people: map[string]int64{}, looked: map[string]bool{}}
	w.at = places(w.conditions)
	w.causes = causes(w.conditions, w.at)
	return w
}

// Use puts other limits in force. What is known stays.
func (w *Watch) Use(l Limits) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limits = l.within()
}

// maxAbove bounds how many above an agent a crossing counts for, the nearest first.
const maxAbove = 64

// Add takes a crossing that has ended and returns what is to be done about it. The
// findings belong to the caller. What is no agent's is no more than a sign that the
// tenant's agents act.
func (w *Watch) Add(s Seen) []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.clock(s.At)
	t := w.agent(s.Tenant, "")
	if t.last == 0 {
		if _, ok := w.people[s.Tenant]; !ok {
			w.people[s.Tenant] = at
		}
	}
	t.last = at
	s.Cost = max(s.Cost, 0)
	if s.Agent != "" {
		w.judge(&s, s.Agent, at, true)
	}
	for i := range s.above() {
		w.judge(&s, s.Above[i], at, false)
	}
	return w.take()
}

// above yields where in Above those stand that the crossing counts for, each once.
func (s *Seen) above() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, name := range s.Above[:min(len(s.Above), maxAbove)] {
			if name != "" && name != s.Agent && !slices.Contains(s.Above[:i], name) && !yield(i) {
				return
			}
		}
	}
}

// judge enters a crossing for an agent and looks at what then holds.
func (w *Watch) judge(s *Seen, name string, at int64, own bool) {
	a := w.agent(s.Tenant, name)
	o := owner{tenant: s.Tenant, agent: name, crossing: s.Crossing, acts: own}
	a.last = at
	if a.enter(at, s) {
		w.hourEnded(a, o, a.hours[len(a.hours)-2], at)
		a.learn()
	}
	a.outcome(s, own)
	if a.now == nil {
		a.now = &recent{at: at / slot}
	}
	a.now.add(at, s, own)
	if own {
		w.events(a, o, s, at)
		w.patterns(a, o, s, at)
	}
	w.rates(a, o, at)
}

// events looks at what one crossing is by itself.
func (w *Watch) events(a *agent, o owner, s *Seen, at int64) {
	if s.Escape {
		w.escaped(a, o, at)
	}
	if s.Prohibited {
		w.holds(a, o, atProhibited, 1, at, words("what nobody may was asked for"))
	}
	if s.OverBudget {
		w.holds(a, o, atSessionBudget, 1, at, words("a session spent what it has"))
	}
}

// patterns looks for what an agent does again and again, in haste, and dearer
// each time.
func (w *Watch) patterns(a *agent, o owner, s *Seen, at int64) {
	if !s.Passive {
		n, period := a.now.turns.loop()
		w.holds(a, o, atLoop, is(n > 0 || a.now.same.is), at, func() string { return looped(n, period) })
		w.holds(a, o, atRapid, is(isRapid(a.now.times.list())), at, words("at least 5 actions, each within 5 seconds of the one before"))
		w.holds(a, o, atEscalating, is(escalates(a.now.costs.list())), at, words("at least 5 actions, each dearer than the one before"))
		w.holds(a, o, atRepetition, is(a.now.kind.is), at, words("the same kind of action over and over, whatever it asks for"))
	}
	w.holds(a, o, atErrors, is(max(a.acts.row, a.questions.row) >= inRow), at, func() string {
		return fmt.Sprintf("%d actions failed in a row", max(a.acts.row, a.questions.row))
	})
}

// is is the size of what has none.
func is(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// beyond is how many times a limit a value is, 0 where it is within it.
func beyond(value, limit float64) float64 {
	if value > limit {
		return value / limit
	}
	return 0
}

func words(s string) func() string { return func() string { return s } }

func looped(n, period int) string {
	switch period {
	case 0:
		return "the same action more than three times of four"
	case 1:
		return fmt.Sprintf("the same action %d times in a row", n)
	}
	return fmt.Sprintf("the same %d actions in turns, %d in all", period, n)
}
