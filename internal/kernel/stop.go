package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/flight"
	"github.com/holdfast-dev/holdfast/internal/kernel/stops"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
)

// Stop keeps requests from beginning (package stops).
type Stop = stops.Stop

// Refusal is how the requests that a stop stops are refused.
type Refusal = stops.Refusal

type stopKey struct {
	Tenant string `table:"of"` // "" is every tenant, so that it is no tenant's row
	ID     string `table:"id"`
}

var stopRows = table.New[stopKey, Stop]("stop", table.Options{Gates: true})

// maxStops bounds the active stops. With more of them nothing begins.
const maxStops = 10_000

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
		if s.IsActive(now) {
			active++
		}
		return nil
	})
	if err == nil && active > maxStops {
		err = fmt.Errorf("more than %d stops are active", maxStops)
	}
	if err == nil {
		k.stopped.Load(all)
	}
	return err
}

// dropStops deletes the stops that ended by themselves as long ago as a clock may come back.
func (k *Kernel) dropStops(ctx context.Context) error {
	now := k.now()
	ended := k.stopped.List(func(s *Stop) bool { return !s.Until.IsZero() && now.Sub(s.Until) > oldBlock })
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
	now := k.now()
	return k.stopped.List(func(s *Stop) bool { return !s.Recorded && s.IsActive(now) })
}

// stopFor returns the refusal by the first active stop for the request, or nil.
func (j *judgement) stopFor() *holdfast.Opinion {
	var agents []string
	return j.k.stopped.Refuse(func(s *Stop) bool {
		if agents == nil {
			agents = append([]string{j.who.Agent}, j.branch.names()...)
		}
		return s.IsActive(j.now) &&
			s.AppliesTo(j.who.Tenant, j.who.Intent, j.who.Chain, j.req.Boundary, agents...)
	})
}

// cutStopped ends the crossings in progress that are stopped.
func (k *Kernel) cutStopped(s Stop) int {
	cause := &holdfast.Error{Kind: holdfast.KindPaused, Why: "stopped: " + s.Why}
	return k.flights.Cut(cause, func(f *flight.Flight) bool {
		return s.AppliesTo(f.Tenant, f.Intent, f.Chain, f.Boundary, append([]string{f.Agent}, f.Within...)...)
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
	s.k.stopped.Arm(stop)
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
		if stop.Cause != stops.CauseHandlerFailed || stop.Feature != "" || stop.Tenant != tenant ||
			stop.Agent != agent {
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
	k.stopped.Arm(s)
	if s.Cut {
		k.cutStopped(s)
	}
	return s.ID, walError(k.runInScope(ctx, func(sc *scope) error { return sc.writeStop(s) }))
}
