// Package anomaly feeds what agents do to the watch, learns their past from the ledger, and has what is found
// answered by the kernel (spec 001, layer 5; D41a).
package anomaly

import (
	"context"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/judge"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Agent is who answers what is out of the ordinary, by which the ledger knows
// it.
const Agent = "holdfast-watch"

const (
	// watchEvery is how often it is looked at what time alone changes.
	watchEvery = time.Second
	// maxFindings bounds the findings that wait for their answer. One of an owner
	// and a condition waits once, however often it is found.
	maxFindings = 4096
	// watchEnd is how long the end of the daemon waits for answers.
	watchEnd = 5 * time.Second
)

// Options are what a Watcher is made of.
type Options struct {
	Store  Store
	Latch  *latch.Latch
	Kernel func() Kernel // made after the watcher, which observes it
	// Token returns the token of Agent.
	Token func() (holdfast.Secret, error)
	// Answered counts an answer, and Alert tells people of one that was written, as the channels have it.
	Answered func(f *watch.Finding, times int, err error)
	Alert    func(watch.Finding)
	Notify   func(kernel.Notice)
	Mask     func(string) string
	// Guard calls a function and returns its panic as an error.
	Guard func(func()) error
	Log   *slog.Logger
}

// Store is the open store.
type Store interface {
	kernel.Store
	// Poisoned returns why nothing more can be written, or nil.
	Poisoned() error
}

// Kernel carries answers out.
type Kernel interface {
	Halt(who, why string) (int, error)
	Respond(ctx context.Context, token holdfast.Secret, f watch.Finding, times int) (respond.Responded, error)
}

// Watcher feeds what ends in the kernel to the watch, and carries what that finds
// back to the kernel (spec 001, layer 5; D41a). Crossings never wait for it.
type Watcher struct {
	Options
	Watch *watch.Watch

	seed maphash.Seed

	mu      sync.Mutex
	waiting map[findingKey]*waitingFinding // guarded by mu
	order   []findingKey                   // guarded by mu; the oldest first
	lost    int64                          // guarded by mu; findings for which there was no room
	busy    bool                           // guarded by mu; an answer is under way
	halting bool                           // guarded by mu; a halt for want of room is under way
	failed  string                         // guarded by mu; why the last answer could not be carried out
	learned bool                           // guarded by mu; agents' past is known
	unread  string                         // guarded by mu; why the ledger cannot be read
	wake    chan struct{}
	idle    *sync.Cond // on mu
}

// findingKey is one condition of one owner, found or cleared.
type findingKey struct {
	tenant, agent string
	condition     watch.Name
	cleared       bool
}

type waitingFinding struct {
	watch.Finding
	times int
}

// New returns a watcher with these limits.
func New(o Options, l watch.Limits) *Watcher {
	w := &Watcher{Options: o, Watch: watch.New(l),
		seed: maphash.MakeSeed(), waiting: map[findingKey]*waitingFinding{}, wake: make(chan struct{}, 1)}
	w.idle = sync.NewCond(&w.mu)
	return w
}

// GoalsJudged implements kernel.Observer.
func (w *Watcher) GoalsJudged([]goalrule.Verdict, bool) {}

// Crossed implements kernel.Observer.
func (w *Watcher) Crossed(c kernel.Crossed) {
	if c.Entry == nil {
		return // it is held: asking for its answer again is no action
	}
	if s, ok := w.seen(c.Entry); ok {
		s.OverBudget, s.Passive = c.OverBudget, s.Passive || c.Passive
		w.Take(w.Watch.Add(s))
	}
}

// Escaped implements kernel.Observer.
func (w *Watcher) Escaped(tenant, agent, crossing string) {
	w.Take(w.Watch.Escaped(tenant, agent, crossing, time.Now()))
}

// Attended implements kernel.Observer.
func (w *Watcher) Attended(tenant, agent string) {
	now := time.Now()
	if agent != "" {
		w.Take(w.Watch.Forgive(tenant, agent, now))
		return
	}
	if tenant == "" {
		tenant = holdfast.Local
	}
	w.Take(w.Watch.Person(tenant, now))
}

// seen is what the watch is told of a crossing; ok is false of what is no action:
// Holdfast's own answers, what nobody is known for, and what was refused because
// its agent, or everything, is stopped.
func (w *Watcher) seen(e *ledger.Entry) (s watch.Seen, ok bool) {
	if e.Agent == "" || e.TenantID == holdfast.Unverified || ownCrossing(e) {
		return s, false
	}
	switch e.ErrorKind {
	case holdfast.KindHalted, holdfast.KindPaused, holdfast.KindTenantBlocked, holdfast.KindChainEnded:
		return s, false
	}
	s = watch.Seen{Tenant: e.TenantID, Agent: e.Agent, Crossing: e.ID, Action: maphash.Comparable(w.seed, action{e.Boundary, e.ExactHash}), Kind: maphash.String(w.seed, e.Boundary), At: e.CreatedAt, Step: e.Boundary == "agent/step" && e.BeginSeq != nil,
		Failed: failed(e), Passive: passive(e), Prohibited: e.ErrorKind == holdfast.KindProhibited,
		Escape: e.ErrorKind == holdfast.KindEscape, Cost: story.CostOf(e)}
	if e.Owner != "" {
		s.Above = []string{e.Owner}
	}
	s.Refused = e.Outcome == ledger.Denied || e.Outcome == ledger.HeldExpired
	return s, true
}

// ownCrossing says that it is what Holdfast does of itself: its own agent, where that
// agent acts. The name alone is no reason, for any agent may bear it elsewhere, and
// the boundary alone is none, for any agent may ask there and be refused.
func ownCrossing(e *ledger.Entry) bool {
	return e.Agent == Agent && strings.HasPrefix(e.Boundary, "watch/") ||
		e.Agent == snapshot.Agent && strings.HasPrefix(e.Boundary, snapshot.BoundaryPrefix)
}

// passive says that it is nothing an agent repeats or hastens: the question to a
// model or a judge, and what there was no room for, which limits keep in bounds and
// scripts ask again until there is.
func passive(e *ledger.Entry) bool {
	return e.Model != nil || strings.HasPrefix(e.Boundary, judge.BoundaryPrefix) ||
		e.Outcome == ledger.Denied && e.Gate != nil && *e.Gate == holdfast.K3
}

// action is what two crossings have in common that ask the same boundary for the same.
type action struct{ boundary, exact string }

// failed says whether it was let through and came to nothing. What its caller gave
// up, and what people stopped, has not failed.
func failed(e *ledger.Entry) bool {
	switch e.Outcome {
	case ledger.Failed, ledger.Withheld, ledger.Unknown, ledger.Abandoned:
		return true
	case ledger.Canceled:
		return e.ErrorKind == holdfast.KindTimeout
	}
	return false
}

// Take lets findings wait for their answer. What is found again meanwhile waits
// once, with its newest words. Where there is no room one that is only recorded
// makes it; without one of those everything is halted, for what is out of the
// ordinary would go on unanswered.
func (w *Watcher) Take(found []watch.Finding) {
	if len(found) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range found {
		w.add(&found[i])
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// add queues one; w.mu is held.
func (w *Watcher) add(f *watch.Finding) {
	k := findingKey{f.Tenant, f.Agent, f.Condition, f.Cleared}
	if old := w.waiting[k]; old != nil {
		if f.Response < old.Response {
			f.Response, f.Asks = old.Response, f.Asks || old.Asks // what was to be done still is
		}
		old.Finding = *f
		old.times++
		w.last(k)
		w.hasten(k, f)
		return
	}
	if len(w.waiting) >= maxFindings && !w.makeRoom() {
		w.lost++
		if f.Response > watch.Record {
			w.full()
		}
		return
	}
	w.waiting[k] = &waitingFinding{Finding: *f, times: 1}
	w.order = append(w.order, k)
	w.hasten(k, f)
}

// last lets that a condition holds, and that it does not, be said in the order in which
// they were found last: the other of the two, where it waits behind, goes before; w.mu
// is held.
func (w *Watcher) last(k findingKey) {
	other := k
	other.cleared = !k.cleared
	if w.waiting[other] == nil {
		return
	}
	if to, from := slices.Index(w.order, k), slices.Index(w.order, other); from > to {
		w.order = slices.Insert(slices.Delete(w.order, from, from+1), to, other)
	}
}

// hasten puts what halts everything before all that waits; w.mu is held.
func (w *Watcher) hasten(k findingKey, f *watch.Finding) {
	if f.Response != watch.Halt {
		return
	}
	if i := slices.Index(w.order, k); i > 0 {
		w.order = slices.Insert(slices.Delete(w.order, i, i+1), 0, k)
	}
}

// makeRoom drops the oldest that is only recorded; w.mu is held.
func (w *Watcher) makeRoom() bool {
	for i, k := range w.order {
		if f := w.waiting[k]; f.Response == watch.Record {
			delete(w.waiting, k)
			w.order = append(w.order[:i:i], w.order[i+1:]...)
			w.lost++
			return true
		}
	}
	return false
}

// full halts because there are more findings than can be answered, once at a time;
// w.mu is held.
func (w *Watcher) full() {
	if w.halting {
		return
	}
	w.halting = true
	go func() {
		w.halt("more is out of the ordinary than can be answered, and what was found last would go on")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.halting = false
	}()
}

// halt sets the latch, whatever can be written.
func (w *Watcher) halt(why string) {
	if w.Latch.Halted() {
		return
	}
	if _, err := w.Kernel().Halt(respond.Watcher, why); err != nil {
		w.Log.Error("a halt by the watch was not carried out whole", "err", err)
	}
}

// run answers findings until ctx ends.
func (w *Watcher) run(ctx context.Context) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-t.C:
			w.Tick()
		}
		for w.answerNext(ctx) {
		}
	}
}

// Tick looks at what time alone changes, and at what nobody tells of.
func (w *Watcher) Tick() {
	now := time.Now()
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if w.Store.Poisoned() != nil {
		failed = "nothing can be written down, and everything is refused until a restart"
	}
	w.Take(w.Watch.Set("", "", watch.LedgerFailed, failed != "", now, failed))
	s, err := w.Latch.Read()
	w.Take(w.Watch.Set("", "", watch.LatchFailed, err != nil || s.Err != nil, now, "the halt latch cannot be read"))
	w.Take(w.Watch.Tick(now))
}

// answerNext answers the finding that waits longest, and says whether there was one.
func (w *Watcher) answerNext(ctx context.Context) bool {
	w.mu.Lock()
	if len(w.order) == 0 || ctx.Err() != nil {
		w.busy = false
		w.idle.Broadcast()
		w.mu.Unlock()
		return false
	}
	k := w.order[0]
	w.order = w.order[1:]
	f := w.waiting[k]
	delete(w.waiting, k)
	w.busy = true
	w.mu.Unlock()
	w.answer(ctx, f)
	return true
}
