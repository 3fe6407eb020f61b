package kernel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/kernel/flight"
	"github.com/holdfast-dev/holdfast/internal/kernel/stops"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// scope is one transaction in which features take part. What it collects takes effect
// after the commit.
type scope struct {
	Tx
	k *Kernel
	// failed are the handlers that failed in an attempt before, by feature and by what
	// they were given: they are left out.
	failed map[string]*hookError
	raised []raisedSignal // by handlers, not delivered yet
	opened int            // reviews
	depth  int            // of the signal that is being delivered
	nested int            // signals in progress
	// fault is why a stop was not written. It undoes the transaction whatever its feature
	// makes of it: the stop may be half there.
	fault error

	notices []Notice
	after   []func()
	stops   []Stop // put in place, and armed already
	changed []Stop // reworded
	lifted  []Stop
	tasks   bool
}

type raisedSignal struct {
	signal.Signal
	depth int
}

// Bounds of how deep signals that handlers raise may be, and of those in progress, with the
// signals of stops that handlers put in place.
const (
	maxRaised = 8
	maxNested = 2 * maxRaised
)

// hookError is the failure of an entry hook, or of a handler of a critical signal.
type hookError struct {
	feature string
	// what is the name of the signal, or "entry".
	what          string
	tenant, agent string
	task          Task // delivers it again
	err           error
}

func (e *hookError) Error() string {
	return "feature " + e.feature + ", " + e.what + ": " + e.err.Error()
}

func (e *hookError) Unwrap() error { return e.err }

// stopsAgent reports whether nothing has stopped the agent yet: a signal of a stop, or of an
// escape, has.
func (e *hookError) stopsAgent() bool {
	return e.what == whatEntry || e.what == signal.BudgetExceeded{}.SignalName()
}

func (e *hookError) skipKey() string {
	return skipKey(e.feature, e.what, e.tenant, e.agent, e.task.Crossing)
}

// skipKey names what a handler failed at: an entry, or the signals of one name about the same
// agent and crossing.
func skipKey(feature, what, tenant, agent, crossing string) string {
	return strings.Join([]string{feature, what, tenant, agent, crossing}, "\x00")
}

const whatEntry = "entry"

// runInScope runs fn in one transaction of the store. A handler that must not keep an agent
// from being stopped, and failed, is left out of a second attempt, which records that. fn
// may run more than once.
func (k *Kernel) runInScope(ctx context.Context, fn func(*scope) error) error {
	return k.runInScopeOf(ctx, k.store.Update, fn)
}

// runInScopeOf is runInScope with one of the store's updates.
func (k *Kernel) runInScopeOf(ctx context.Context, update func(context.Context, func(Tx) error) error,
	fn func(*scope) error) error {
	failed := map[string]*hookError{}
	for {
		s := &scope{k: k, failed: failed}
		err := update(ctx, func(tx Tx) error {
			s.Tx = tx
			if err := fn(s); err != nil {
				return err
			}
			if err := s.deliverRaised(); err != nil {
				return err
			}
			if s.fault != nil {
				return s.fault
			}
			return s.recordFailures()
		})
		if err == nil {
			k.afterCommit(s)
			return nil
		}
		k.stopped.Disarm(s.stops)
		var hook *hookError
		if !errors.As(err, &hook) || failed[hook.skipKey()] != nil || k.store.Poisoned() != nil {
			return err
		}
		k.log.Error("a feature failed", "feature", hook.feature, "at", hook.what, "err", hook.err)
		failed[hook.skipKey()] = hook
	}
}

// recordFailures records the handlers that were left out, stops the agent, and leaves a
// task that delivers to them again what they were given.
func (s *scope) recordFailures() error {
	for _, key := range slices.Sorted(maps.Keys(s.failed)) {
		h := s.failed[key]
		why := "the feature " + h.feature + " failed at " + h.what
		data := map[string]any{"level": "CRITICAL", "feature": h.feature, "at": h.what,
			"problem": s.k.quote(h.err.Error(), 256)}
		if h.stopsAgent() {
			stop, err := s.stopForFailure(h, why)
			if err != nil {
				return err
			}
			h.task.Stop, data["stop"] = stop, stop
		}
		if err := s.leaveTask(h.feature, h.task); err != nil {
			return err
		}
		err := s.k.event(s.Tx, Event{Tenant: h.tenant, Crossing: h.task.Crossing, Name: "feature_failed",
			Who: "holdfast", Subject: h.feature, Data: data})
		if err != nil {
			return err
		}
		s.notices = append(s.notices, Notice{Level: "critical", Event: "feature_failed", Tenant: h.tenant,
			Agent: h.agent, Crossing: h.task.Crossing,
			Why: why + "; the agent is stopped until it succeeds"})
	}
	return nil
}

// stopForFailure stops the agent, or returns the stop that is in place for a failure before.
func (s *scope) stopForFailure(h *hookError, why string) (id string, err error) {
	err = stopRows.Scan(s.Tx, table.Range{Prefix: []any{h.tenant}, Limit: maxStops}, func(k stopKey, old Stop,
		_ int64) error {
		if old.Feature == "" && old.Cause == stops.CauseHandlerFailed && old.Agent == h.agent {
			id = k.ID
		}
		return nil
	})
	if err != nil || id != "" {
		return id, err
	}
	return s.putStop("", Stop{Tenant: h.tenant, Agent: h.agent, Cause: stops.CauseHandlerFailed, Why: why})
}

// afterCommit lets take effect what the transaction left.
func (k *Kernel) afterCommit(s *scope) {
	for _, stop := range s.stops {
		if stop.Cut {
			k.cutStopped(stop)
		}
	}
	k.stopped.Disarm(s.lifted)
	k.stopped.Reword(s.changed)
	if len(s.stops)+len(s.lifted) > 0 {
		k.Wake()
	}
	for _, fn := range s.after {
		fn()
	}
	for _, n := range s.notices {
		n.Why = string(k.mask(n.Why))
		k.notify(n)
	}
	if s.tasks {
		go k.reactSoon()
	}
}

// runBeginHooks lets the features take part in a begin, whose leaf is in the transaction already.
func (s *scope) runBeginHooks(j *judgement, b *ledger.Begin) error {
	if j.feats == nil {
		return nil
	}
	for _, p := range j.feats.parts {
		if p.f.begins == nil {
			continue
		}
		_, err := s.callHook(p.f, func(tx FeatureTx) (map[string]any, error) {
			return nil, p.f.begins.OnBegin(tx,
				p.part, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// joinedParts returns the parts that features have in a crossing.
func (j *judgement) joinedParts() []joined {
	if j.feats == nil {
		return nil
	}
	return j.feats.parts
}

// runEntryHooks lets the features take part in an entry, which is in the transaction already.
func (s *scope) runEntryHooks(parts []joined, e *ledger.Entry) error {
	for _, f := range s.k.features.all {
		if f.enters == nil || s.failed[skipKey(f.spec.Name, whatEntry, e.TenantID, agentOfEntry(e), e.ID)] != nil {
			continue
		}
		if f.filters != nil && !f.filters.WantsEntry(e) {
			continue
		}
		var part Part
		if i := slices.IndexFunc(parts, func(p joined) bool { return p.f == f }); i >= 0 {
			part = parts[i].part
		}
		_, err := s.callHook(f, func(tx FeatureTx) (map[string]any, error) {
			return nil, f.enters.OnEntry(tx,
				part, e)
		})
		if err != nil {
			return &hookError{feature: f.spec.Name, what: whatEntry, tenant: e.TenantID, agent: agentOfEntry(e),
				err:  err,
				task: Task{Kind: taskEntry, Tenant: e.TenantID, Crossing: e.ID}}
		}
	}
	return nil
}

func agentOfEntry(e *ledger.Entry) string {
	agent, _ := e.Who()
	return agent
}

// raiseSignal delivers a signal to the handlers, in the order of the composition, and then what
// they raise. It returns what they add to the signal's event.
func (s *scope) raiseSignal(sig signal.Signal) (map[string]any, error) {
	if s.nested++; s.nested > maxNested {
		return nil, fmt.Errorf("signals of signals are more than %d deep", maxNested)
	}
	defer func() { s.nested-- }()
	data := map[string]any{}
	var left []string
	tenant, agent, crossing := sig.SignalAbout()
	for _, f := range s.k.features.all {
		if f.handles == nil {
			continue
		}
		if s.failed[skipKey(f.spec.Name, sig.SignalName(), tenant, agent, crossing)] != nil {
			left = append(left, f.spec.Name)
			continue
		}
		more, err := s.callHook(f, func(tx FeatureTx) (map[string]any, error) { return f.handles.OnSignal(tx, sig) })
		if err != nil {
			return nil, failedAt(f, sig, err)
		}
		maps.Copy(data, more)
	}
	if len(left) > 0 {
		data["failed_handlers"] = left
	}
	return data, s.deliverRaised()
}

// failedAt returns the failure of a handler.
func failedAt(f *feature, sig signal.Signal, err error) error {
	if !signal.Critical(sig) {
		return fmt.Errorf("feature %s: %w", f.spec.Name, err)
	}
	task, fault := signalTask(sig)
	if fault != nil {
		return fault
	}
	tenant, agent, _ := sig.SignalAbout()
	return &hookError{feature: f.spec.Name, what: sig.SignalName(), tenant: tenant, agent: agent, err: err, task: task}
}

// deliverRaised delivers the signals that handlers raised.
func (s *scope) deliverRaised() error {
	before := s.depth
	defer func() { s.depth = before }()
	for len(s.raised) > 0 {
		next := s.raised[0]
		s.raised = s.raised[1:]
		if next.depth > maxRaised {
			return fmt.Errorf("signals of signals are more than %d deep", maxRaised)
		}
		s.depth = next.depth
		if _, err := s.raiseSignal(next.Signal); err != nil {
			return err
		}
	}
	return nil
}

// errHookTime is the failure of a hook that is too slow.
var errHookTime = errors.New("it took longer than " + HookTime.String())

// callHook runs a hook of a feature for at most HookTime. A hook that continues after that finds
// a transaction in which nothing can be done.
func (s *scope) callHook(f *feature, fn func(FeatureTx) (map[string]any, error)) (map[string]any, error) {
	tx := s.txFor(f)
	type result struct {
		data map[string]any
		err  error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				s.k.log.Error("a feature panicked", "feature", f.spec.Name, "panic", fmt.Sprint(r), "stack",
					string(debug.Stack()))
				done <- result{err: fmt.Errorf("it panicked: %v", r)}
			}
		}()
		data, err := fn(tx)
		done <- result{data, err}
	}()
	t := time.NewTimer(HookTime)
	defer t.Stop()
	select {
	case r := <-done:
		tx.endHook()
		return r.data, r.err
	case <-t.C:
		tx.endHook()
		select {
		case r := <-done: // both were ready, as after the process was stopped
			return r.data, r.err
		default:
			return nil, errHookTime
		}
	}
}

// txFor returns what the feature may do in the transaction.
func (s *scope) txFor(f *feature) *featureTx { return &featureTx{s: s, f: f} }

// featureTx implements FeatureTx. It is safe for concurrent use, so that a hook that is
// too slow cannot meet what comes after it.
type featureTx struct {
	mu   sync.Mutex
	s    *scope // guarded by mu
	f    *feature
	over bool // guarded by mu
}

var errHookOver = errors.New("the transaction is over for this feature")

// endHook refuses every further call.
func (t *featureTx) endHook() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// withScope runs fn unless the transaction is over.
func (t *featureTx) withScope(fn func(s *scope) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return errHookOver
	}
	return fn(t.s)
}

// readWith is withScope for a call that returns a value.
func readWith[T any](t *featureTx, fn func(Tx) (T, error)) (out T, err error) {
	err = t.withScope(func(s *scope) (err error) { out, err = fn(s.Tx); return err })
	return out, err
}

func (t *featureTx) Row(d *table.Def, key []any) (table.Row, error) {
	return readWith(t, func(tx Tx) (table.Row, error) { return tx.Row(d, key) })
}

// collect reads rows, leaves or counters before fn is called with them, so that fn may use
// the transaction.
func collect[T any](t *featureTx, read func(Tx, func(T) error) error, fn func(T) error) error {
	var all []T
	err := t.withScope(func(s *scope) error {
		return read(s.Tx, func(one T) error {
			all = append(all, one)
			return nil
		})
	})
	for i := 0; i < len(all) && err == nil; i++ {
		err = fn(all[i])
	}
	return err
}

func (t *featureTx) Scan(d *table.Def, in table.Range, fn func(table.Row) error) error {
	return collect(t, func(tx Tx, one func(table.Row) error) error { return tx.Scan(d, in, one) }, fn)
}

func (t *featureTx) Agent(tenant, name string) (holdfast.Agent, error) {
	return readWith(t, func(tx Tx) (holdfast.Agent, error) { return tx.Agent(tenant, name) })
}

func (t *featureTx) Agents(tenant string) ([]holdfast.Agent, error) {
	return readWith(t, func(tx Tx) ([]holdfast.Agent, error) { return tx.Agents(tenant) })
}

func (t *featureTx) Review(id string) (review.Review, error) {
	return readWith(t, func(tx Tx) (review.Review, error) { return tx.Review(id) })
}

func (t *featureTx) Counter(d budget.Draw) (budget.Counter, error) {
	return readWith(t, func(tx Tx) (budget.Counter, error) { return tx.Counter(d) })
}

// keyedCounter is a counter with its key.
type keyedCounter struct {
	key string
	c   budget.Counter
}

func (t *featureTx) Counters(prefix string, fn func(string, budget.Counter) error) error {
	return collect(t, func(tx Tx, one func(keyedCounter) error) error {
		return tx.Counters(prefix, func(key string, c budget.Counter) error { return one(keyedCounter{key, c}) })
	}, func(k keyedCounter) error { return fn(k.key, k.c) })
}

func (t *featureTx) Heads() ([]ledger.Head, error) {
	return readWith(t, func(tx Tx) ([]ledger.Head, error) { return tx.Heads() })
}

func (t *featureTx) Leaf(tenant string, seq int64) (ledger.Stored, error) {
	return readWith(t, func(tx Tx) (ledger.Stored, error) { return tx.Leaf(tenant, seq) })
}

func (t *featureTx) Leaves(tenant string, from, to int64, fn func(ledger.Stored) error) error {
	return collect(t, func(tx Tx, one func(ledger.Stored) error) error { return tx.Leaves(tenant, from, to, one) }, fn)
}

func (t *featureTx) Crossing(tenant, id string) ([]ledger.Stored, error) {
	return readWith(t, func(tx Tx) ([]ledger.Stored, error) { return tx.Crossing(tenant, id) })
}

func (t *featureTx) Open(fn func(ledger.Stored) error) error {
	return collect(t, func(tx Tx, one func(ledger.Stored) error) error { return tx.Open(one) }, fn)
}

func (t *featureTx) InsertRow(d *table.Def, r table.Row) error {
	return t.withScope(func(s *scope) error { return s.InsertRow(d, r) })
}

func (t *featureTx) ReplaceRow(d *table.Def, r table.Row) error {
	return t.withScope(func(s *scope) error { return s.ReplaceRow(d, r) })
}

func (t *featureTx) DeleteRow(d *table.Def, key []any) error {
	return t.withScope(func(s *scope) error { return s.DeleteRow(d, key) })
}

func (t *featureTx) AddToRow(d *table.Def, key []any, n []int64) error {
	return t.withScope(func(s *scope) error { return s.AddToRow(d, key, n) })
}

func (t *featureTx) Event(e Event) error {
	return t.withScope(func(s *scope) error { return s.k.event(s.Tx, e) })
}

func (t *featureTx) Raise(sig signal.Signal) error {
	return t.withScope(func(s *scope) error {
		s.raised = append(s.raised, raisedSignal{sig, s.depth + 1})
		return nil
	})
}

func (t *featureTx) Stop(stop Stop) (id string, err error) {
	err = t.withScope(func(s *scope) (err error) { id, err = s.putStop(t.f.spec.Name, stop); return err })
	return id, err
}

func (t *featureTx) Lift(tenant, id string) error {
	return t.withScope(func(s *scope) error { return s.liftStop(t.f.spec.Name, tenant, id) })
}

func (t *featureTx) Reword(tenant, id, why string) error {
	return t.withScope(func(s *scope) error { return s.rewordStop(t.f.spec.Name, tenant, id, why) })
}

func (t *featureTx) After(fn func()) {
	_ = t.withScope(func(s *scope) error { s.after = append(s.after, fn); return nil })
}

func (t *featureTx) OpenReview(about, domain string, shown any, fill func(*review.Review)) (*review.Review, error) {
	var r review.Review
	err := t.withScope(func(s *scope) (err error) {
		if r, err = s.k.NewQuestion(about, domain, shown); err != nil {
			return err
		}
		r.Policy = s.k.policy.Load().Version
		fill(&r)
		if err := s.PutReview(r, review.None); err != nil {
			return err
		}
		s.opened++
		s.after = append(s.after, func() { s.k.Wake(r.ID) })
		s.notices = append(s.notices, Opened(&r))
		return s.k.event(s.Tx, approval.Proposed(&r))
	})
	return &r, err
}

func (t *featureTx) WaitingReviews(tenant, agent string, about ...string) ([]review.Review, error) {
	return readWith(t, func(tx Tx) ([]review.Review, error) { return approval.Waiting(tx, tenant, agent, about...) })
}

func (t *featureTx) PauseAgent(a *holdfast.Agent, r *review.Review, cut bool, e Event) (paused bool, err error) {
	err = t.withScope(func(s *scope) error {
		if a.State != holdfast.AgentRunning {
			return nil // who stopped it before, and why, still counts
		}
		pause.PauseFor(a, r, s.k.quote)
		if err := s.PutAgent(*a); err != nil {
			return err
		}
		paused, e.Data["why"] = true, a.Why
		s.after = append(s.after, func() {
			cause := &holdfast.Error{Kind: holdfast.KindPaused, Why: "the agent " + pause.ShowAgent(a.Name) +
				" was paused" + review.SuffixReason(a.Why), Hint: pause.Hint(a)}
			s.k.flights.Cut(cause, func(f *flight.Flight) bool { return cut && f.BelongsTo(a.Tenant, a.Name) })
			s.k.Wake()
		})
		return s.k.event(s.Tx, e)
	})
	return paused, err
}

func (t *featureTx) EndChain(tenant, chain string, e EndedChain) error {
	return t.withScope(func(s *scope) error {
		s.after = append(s.after, func() { s.k.Wake() })
		return endedChains.Insert(s.Tx, chainKey(tenant, chain), e)
	})
}

func (t *featureTx) Later(task Task) error {
	task.Kind = taskReact
	return t.withScope(func(s *scope) error { return s.leaveTask(t.f.spec.Name, task) })
}

func (t *featureTx) Notify(n Notice) {
	_ = t.withScope(func(s *scope) error { s.notices = append(s.notices, n); return nil })
}
