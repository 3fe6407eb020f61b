package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
)

// Stop keeps requests from beginning. Several exist next to each other, and are lifted one
// by one.
type Stop struct {
	// ID is given by the kernel.
	ID string `json:"-"`
	// What is stopped: requests of the tenant, and of those only those of the agent and
	// the agents beneath it, of the intent, of the chain and at the boundary that are
	// named. Empty is all of them; an empty tenant is every tenant.
	Tenant   string `json:"-"`
	Agent    string `json:"agent,omitempty"`
	Intent   string `json:"intent,omitempty"`
	Chain    string `json:"chain,omitempty"`
	Boundary string `json:"boundary,omitempty"`

	// Cause is a code, Why the sentence for people.
	Cause string `json:"cause"`
	Why   string `json:"why"`
	// Feature is whose stop it is, "" of the kernel's.
	Feature string `json:"feature,omitempty"`
	// Review is the question whose answer ends it, "" without one.
	Review string    `json:"review,omitempty"`
	Since  time.Time `json:"since"`
	// Until is when it ends by itself; zero is never.
	Until time.Time `json:"until,omitzero"`
	// Cut also ends crossings in progress.
	Cut bool `json:"cut,omitempty"`
	// Recorded says that its feature records by events of its own that it is put in
	// place and lifted, and shows it.
	Recorded bool `json:"recorded,omitempty"`
	// Refusal is how requests are refused, nil as by any stop. With it Why is the whole
	// reason.
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Refusal is how the requests that a stop stops are refused.
type Refusal struct {
	Kind  holdfast.Kind `json:"kind"`
	State string        `json:"state"`
	Rule  string        `json:"rule,omitempty"`
	Hint  string        `json:"hint,omitempty"`
}

// CauseHandlerFailed is the cause of a stop that lasts until a feature's handler succeeds.
const CauseHandlerFailed = "handler_failed"

type stopKey struct {
	Tenant string `table:"of"` // "" is every tenant, so that it is no tenant's row
	ID     string `table:"id"`
}

var stopRows = table.New[stopKey, Stop]("stop", table.Options{Gates: true})

// stops are the active stops: those of the store, and those that are about to be
// written. A stop counts from the moment at which it is armed.
type stops struct {
	mu  sync.RWMutex
	all []Stop // guarded by mu
}

// maxStops bounds the active stops. With more of them nothing begins.
const maxStops = 10_000

func (k *Kernel) armStop(s Stop) {
	k.stopped.mu.Lock()
	defer k.stopped.mu.Unlock()
	k.stopped.all = append(k.stopped.all, s)
}

func (k *Kernel) disarmStops(gone []Stop) {
	if len(gone) == 0 {
		return
	}
	k.stopped.mu.Lock()
	defer k.stopped.mu.Unlock()
	k.stopped.all = slices.DeleteFunc(k.stopped.all, func(s Stop) bool {
		return slices.ContainsFunc(gone, func(g Stop) bool { return g.ID == s.ID })
	})
}

// oldBlock is how long a stop that ended by itself is kept: a clock that went ahead by a day
// and comes back finds it.
const oldBlock = 48 * time.Hour

// loadStops reads the stops at the start.
func (k *Kernel) loadStops(tx Tx) error {
	var all []Stop
	now, active := k.now(), 0
	err := stopRows.Scan(tx, table.Range{Limit: math.MaxInt32}, func(key stopKey, s Stop, _ int64) error {
		s.Tenant, s.ID = key.Tenant, key.ID
		all = append(all, s)
		if s.isActive(now) {
			active++
		}
		return nil
	})
	if err == nil && active > maxStops {
		err = fmt.Errorf("more than %d stops are active", maxStops)
	}
	if err == nil {
		k.stopped.mu.Lock()
		k.stopped.all = all
		k.stopped.mu.Unlock()
	}
	return err
}

// dropStops deletes the stops that ended by themselves as long ago as a clock may come back.
func (k *Kernel) dropStops(ctx context.Context) error {
	now := k.now()
	var ended []Stop
	k.stopped.mu.RLock()
	for _, s := range k.stopped.all {
		if !s.Until.IsZero() && now.Sub(s.Until) > oldBlock {
			ended = append(ended, s)
		}
	}
	k.stopped.mu.RUnlock()
	if len(ended) == 0 {
		return nil
	}
	ended = ended[:min(len(ended), sweepBatch)]
	return walError(k.runInScope(ctx, func(s *scope) error {
		for _, stop := range ended {
			if err := stopRows.Delete(s.Tx, stopKey{stop.Tenant, stop.ID}); err != nil {
				return err
			}
		}
		s.lifted = append(s.lifted, ended...)
		return nil
	}))
}

// Stops returns the active stops, in the order in which they were put in place, except those
// that their feature shows.
func (k *Kernel) Stops() []Stop {
	k.stopped.mu.RLock()
	defer k.stopped.mu.RUnlock()
	now := k.now()
	return slices.DeleteFunc(slices.Clone(k.stopped.all), func(s Stop) bool {
		return s.Recorded || !s.isActive(now)
	})
}

func (s *Stop) isActive(now time.Time) bool { return s.Until.IsZero() || now.Before(s.Until) }

// appliesTo reports whether the stop is for that request. agents are who asks, and every
// agent above.
func (s *Stop) appliesTo(tenant, intent, chain, boundary string, agents ...string) bool {
	return (s.Tenant == "" || s.Tenant == tenant) && (s.Agent == "" || slices.Contains(agents, s.Agent)) &&
		(s.Intent == "" || s.Intent == intent) && (s.Chain == "" || s.Chain == chain) && (s.Boundary == "" ||
		s.Boundary == boundary)
}

// stopFor returns the refusal by the first active stop for the request, or nil.
func (j *judgement) stopFor() *holdfast.Opinion {
	j.k.stopped.mu.RLock()
	defer j.k.stopped.mu.RUnlock()
	if len(j.k.stopped.all) == 0 {
		return nil
	}
	agents := append([]string{j.who.Agent}, j.branch.names()...)
	for i := range j.k.stopped.all {
		s := &j.k.stopped.all[i]
		if !s.isActive(j.now) || !s.appliesTo(j.who.Tenant, j.who.Intent, j.who.Chain, j.req.Boundary, agents...) {
			continue
		}
		return s.newRefusal()
	}
	return nil
}

// newRefusal returns how a request is refused.
func (s *Stop) newRefusal() *holdfast.Opinion {
	op := deny(holdfast.GateHalt, holdfast.KindPaused, "stopped: "+s.Why, hintOfStop(s))
	op.State, op.Rule = "STOPPED", "stop/"+s.Cause
	if r := s.Refusal; r != nil {
		op = deny(holdfast.GateHalt, r.Kind, s.Why, r.Hint)
		op.State, op.Rule = r.State, r.Rule
	}
	return &op
}

func hintOfStop(s *Stop) string {
	hint := "a person can see why with `holdfast status`"
	if s.Cause == CauseHandlerFailed && s.Agent != "" {
		hint += ", and lift it with `holdfast agent unpause " + pause.ShowAgent(s.Agent) + "`"
	}
	return hint
}

// cutStopped ends the crossings in progress that are stopped.
func (k *Kernel) cutStopped(s Stop) int {
	cause := &holdfast.Error{Kind: holdfast.KindPaused, Why: "stopped: " + s.Why}
	return k.flights.cut(cause, func(f *flight) bool {
		return s.appliesTo(f.tenant, f.intent, f.chain, f.boundary, append([]string{f.agent}, f.within...)...)
	})
}

func (k *Kernel) newStop(feature string, s Stop) (Stop, error) {
	id, err := k.newID()
	if err != nil {
		return s, err
	}
	if s.Cause == "" || s.Why == "" {
		return s, errors.New("cannot stop: a stop has a cause and a reason")
	}
	s.ID, s.Feature, s.Why = id, feature, k.quote(s.Why, 512)
	if s.Since.IsZero() {
		s.Since = k.instant()
	}
	return s, nil
}

// putStop puts a stop in place in a transaction. It is armed before the commit, and disarmed
// where that fails.
func (s *scope) putStop(feature string, stop Stop) (string, error) {
	stop, err := s.k.newStop(feature, stop)
	if err != nil {
		return "", err
	}
	s.k.armStop(stop)
	s.stops = append(s.stops, stop)
	if err := s.writeStop(stop); err != nil {
		s.fault = cmp.Or(s.fault, err)
		return "", err
	}
	return stop.ID, nil
}

func (s *scope) writeStop(stop Stop) error {
	if err := stopRows.Insert(s.Tx, stopKey{stop.Tenant, stop.ID}, stop); err != nil {
		return err
	}
	at := stop.Tenant
	if at == "" {
		at = holdfast.Local
	}
	data, err := s.raiseSignal(signal.Stopped{Tenant: stop.Tenant, Agent: stop.Agent, Stop: stop.ID, Cause: stop.Cause})
	if err != nil || stop.Recorded {
		return err
	}
	data["stop"], data["cause"], data["why"] = stop.ID, stop.Cause, stop.Why
	for name, v := range map[string]string{"agent": stop.Agent, "intent": stop.Intent, "chain": stop.Chain,
		"boundary": stop.Boundary, "review": stop.Review} {
		if v != "" {
			data[name] = v
		}
	}
	return s.k.event(s.Tx, Event{Tenant: at, Name: "stopped", Who: orHoldfast(stop.Feature),
		Subject: orNobody(stop.Agent), Data: data})
}

func orHoldfast(feature string) string {
	if feature == "" {
		return "holdfast"
	}
	return feature
}

// rewordStop gives a stop of the feature another Why.
func (s *scope) rewordStop(feature, tenant, id, why string) error {
	stop, version, err := stopRows.Get(s.Tx, stopKey{tenant, id})
	if err != nil {
		return err
	}
	if stop.Feature != feature {
		return fmt.Errorf("cannot reword the stop %s: it is not the feature's: %w", id, ErrNotFound)
	}
	stop.Why = s.k.quote(why, 512)
	stop.Tenant, stop.ID = tenant, id
	s.changed = append(s.changed, stop)
	return stopRows.Replace(s.Tx, stopKey{tenant, id}, stop, version)
}

func (k *Kernel) rewordStops(changed []Stop) {
	if len(changed) == 0 {
		return
	}
	k.stopped.mu.Lock()
	defer k.stopped.mu.Unlock()
	for _, s := range changed {
		if i := slices.IndexFunc(k.stopped.all, func(o Stop) bool { return o.ID == s.ID }); i >= 0 {
			k.stopped.all[i].Why = s.Why
		}
	}
}

// FindStops returns the stops of a tenant and a feature.
func FindStops(r Reader, tenant, feature string) (out []Stop, err error) {
	err = stopRows.Scan(r, table.Range{Prefix: []any{tenant}, Limit: maxStops}, func(key stopKey, s Stop, _ int64) error {
		if s.Feature == feature {
			s.Tenant, s.ID = key.Tenant, key.ID
			out = append(out, s)
		}
		return nil
	})
	return out, err
}

// liftStop ends a stop of the feature.
func (s *scope) liftStop(feature, tenant, id string) error {
	stop, _, err := stopRows.Get(s.Tx, stopKey{tenant, id})
	if err != nil {
		return err
	}
	if stop.Feature != feature {
		return fmt.Errorf("cannot lift the stop %s: it is not the feature's: %w", id, ErrNotFound)
	}
	if err := stopRows.Delete(s.Tx, stopKey{tenant, id}); err != nil {
		return err
	}
	stop.Tenant, stop.ID = tenant, id
	s.lifted = append(s.lifted, stop)
	at := tenant
	if at == "" {
		at = holdfast.Local
	}
	sig := signal.StopLifted{Tenant: tenant, Agent: stop.Agent, Stop: id, Cause: stop.Cause}
	data, err := s.raiseSignal(sig)
	if err != nil || stop.Recorded {
		return err
	}
	data["stop"], data["cause"] = id, stop.Cause
	return s.k.event(s.Tx, Event{Tenant: at, Name: "stop_lifted", Who: orHoldfast(feature),
		Subject: orNobody(stop.Agent), Data: data})
}

// liftFailures lifts the stops of an agent that are there because a handler failed.
func (k *Kernel) liftFailures(s *scope, tenant, agent string) error {
	for _, stop := range k.Stops() {
		if stop.Cause != CauseHandlerFailed || stop.Feature != "" || stop.Tenant != tenant || stop.Agent != agent {
			continue
		}
		if err := s.liftStop("", tenant, stop.ID); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// stopNow arms a stop, cuts what it stops, and makes it durable. If that fails it remains
// until a restart.
func (k *Kernel) stopNow(ctx context.Context, feature string, s Stop) (string, error) {
	s, err := k.newStop(feature, s)
	if err != nil {
		return "", err
	}
	k.armStop(s)
	if s.Cut {
		k.cutStopped(s)
	}
	return s.ID, walError(k.runInScope(ctx, func(sc *scope) error { return sc.writeStop(s) }))
}
