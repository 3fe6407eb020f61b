package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/flight"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// Halt sets the latch, cuts every crossing in flight, and records who, when
// and why. Anybody may halt (D11). The latch is set even where the ledger
// cannot be written, or the latch cannot hold the reason; the error then says
// so, and the number of crossings cut stands beside it.
func (k *Kernel) Halt(who, why string) (int, error) { return k.haltFor("", who, why) }

// haltFor is Halt with the condition that it is for, "" if it is for none.
func (k *Kernel) haltFor(condition watch.Name, who, why string) (int, error) {
	// The latch and the cut wait for nobody, least of all for the ledger.
	was := k.halting.Swap(true)
	n, set, err := k.stop(who, why)
	if !set {
		k.halting.Store(was)
		return n, err
	}
	k.halts.Lock()
	defer k.halts.Unlock()
	if !k.latch.Halted() {
		// A resume lifted this halt together with an earlier one.
		var more int
		if more, set, err = k.stop(who, why); !set {
			return n + more, err
		}
		n += more
	}
	k.halting.Store(true)
	k.said = k.now()
	if rerr := k.recordHalt(who, why, n, true); rerr != nil {
		err = errors.Join(rerr, err)
	}
	k.WakeAll()
	k.notify(Notice{Level: "critical", Event: "halted", Why: string(k.mask(who + ": " + why)), Condition: condition})
	return n, err
}

// stop sets the latch and cuts. A latch that is set may come with an error:
// then it does not say by whom or why.
func (k *Kernel) stop(who, why string) (cut int, set bool, err error) {
	err = k.latch.Set(string(k.mask(who)), string(k.mask(why)), k.now())
	switch {
	case err == nil:
		return k.Cut(), true, nil
	case !k.latch.Halted():
		return 0, false, &holdfast.Error{Kind: holdfast.KindInternal, Why: "the halt latch could not be set", Hint: "stop the process: `kill` it", Err: err}
	}
	return k.Cut(), true, &holdfast.Error{Kind: holdfast.KindInternal, Why: "everything is halted, but the latch could not be written well", Hint: "see `holdfast doctor`", Err: err}
}

// Cut ends every crossing in flight if the latch is set, and returns how many.
// The daemon calls it when it learns that the latch has changed.
func (k *Kernel) Cut() int {
	err := k.asked()
	if err == nil {
		return 0
	}
	n := k.flights.Cut(err, func(*flight.Flight) bool { return true })
	k.cuts.Add(int64(n))
	return n
}

// Flights lists the crossings that begin or are ACTIVE now, in no order.
func (k *Kernel) Flights() []flight.Summary { return k.flights.List() }

// Halted cuts where the latch is set, and records a halt that somebody set past
// the kernel; one that is recorded already is not recorded twice. The daemon
// calls it when it sees the latch, and once after Recover.
func (k *Kernel) Halted() (int, error) {
	k.Cut()
	k.halts.Lock()
	defer k.halts.Unlock()
	n := int(k.cuts.Load())
	s, err := k.latch.Read()
	if err == nil && s.Halted {
		s.Who, s.Why = k.reword(s.Who, s.Why)
	}
	if (err == nil && !s.Halted) || !k.halting.CompareAndSwap(false, true) {
		return n, nil
	}
	who := cmp.Or(s.Who, "unknown")
	rerr := k.recordHalt(who, s.Why, n, false)
	k.WakeAll()
	k.notify(Notice{Level: "critical", Event: "halted", Why: string(k.mask(who + ": " + s.Why))})
	return n, rerr
}

// reword takes out of the latch what must not be written down, where somebody
// set it who knew no better. The caller holds the halts: no resume comes between.
func (k *Kernel) reword(who, why string) (string, string) {
	a, b := string(k.mask(who)), string(k.mask(why))
	if a != who || b != why {
		if err := k.latch.Reword(a, b); err != nil {
			k.log.Error("the latch holds what must not be written down, and could not be reworded", "err", err)
		}
	}
	return a, b
}

// setHalted writes down whether everything is halted.
func setHalted(tx Tx, halted bool) error {
	_, version, err := haltStates.Find(tx, everything)
	if err != nil {
		return err
	}
	return haltStates.Put(tx, everything, haltState{halted}, version)
}

// recordHalt writes the event; where it is not said anew, only once a halt.
func (k *Kernel) recordHalt(who, why string, cut int, anew bool) error {
	ctx, cancel := edge()
	defer cancel()
	return walError(k.store.Update(ctx, func(tx Tx) error {
		if was, _, err := haltStates.Find(tx, everything); err == nil && was.Halted && !anew {
			return nil
		}
		if err := setHalted(tx, true); err != nil {
			return err
		}
		return k.event(tx, Event{Tenant: holdfast.Local, Name: "halted", Who: who, Subject: "everything",
			Data: map[string]any{"why": string(k.mask(why)), "cut": cut}})
	}))
}

// Lifted looks whether the latch has gone without a person's word, which is
// recorded and told as an alarm. The daemon calls it when it sees that the
// latch is not there, and once after Recover.
func (k *Kernel) Lifted() error {
	k.halts.Lock()
	defer k.halts.Unlock()
	if k.latch.Halted() {
		return nil
	}
	ctx, cancel := edge()
	defer cancel()
	found := false
	err := k.store.Update(ctx, func(tx Tx) error {
		was, _, err := haltStates.Find(tx, everything)
		if err != nil || !was.Halted {
			return err
		}
		found = true
		if err := setHalted(tx, false); err != nil {
			return err
		}
		return k.event(tx, Event{Tenant: holdfast.Local, Name: "halt_latch_removed", Who: "unknown", Subject: "everything",
			Data: map[string]any{"why": "the latch was removed without a resume"}})
	})
	if found && err == nil {
		k.halting.Store(false)
		k.Wake()
		k.notify(Notice{Level: "critical", Event: "halt_latch_removed", Why: "the halt latch was removed without a resume"})
	}
	return walError(err)
}

// Resume lifts the latch on a person's word. It is recorded first: where the
// ledger cannot be written, everything stays halted. A word given before the
// halt in force is not about that halt and is a ConflictError.
func (k *Kernel) Resume(signed operator.Signed) error {
	k.halts.Lock()
	defer k.halts.Unlock()
	found, _ := k.latch.Read()
	s, err := k.runSigned(signed, operator.Resume, func(tx *scope, w *Word) error {
		if !w.At.After(k.haltedAt(found)) {
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "the statement was made before the halt in force", Hint: "say it again"}
		}
		if err := setHalted(tx, false); err != nil {
			return err
		}
		return k.event(tx, Event{Tenant: holdfast.Local, Name: "resumed", Who: w.Reviewer, Subject: "everything",
			Data: w.Data()})
	})
	if err != nil {
		return err
	}
	k.halting.Store(false)
	if now, _ := k.latch.Read(); now.Halted && !now.When.Equal(found.When) {
		return &holdfast.Error{Kind: holdfast.KindConflict, Why: "everything was halted anew a moment ago", Hint: "say it again"}
	}
	k.cuts.Store(0)
	err = k.latch.Clear()
	if err != nil && k.latch.Halted() {
		k.halting.Store(true)
		// The ledger has it that everything goes on.
		if rerr := k.recordHalt("holdfast", "the halt latch could not be lifted", 0, true); rerr != nil {
			k.log.Error("that everything stays halted could not be recorded", "err", rerr)
		}
		return &holdfast.Error{Kind: holdfast.KindInternal, Why: "the halt latch could not be lifted", Hint: "look at what stands in its place, then say it again", Err: err}
	}
	k.Wake()
	k.notify(Notice{Level: "warning", Event: "resumed", Why: "resumed by " + s.Reviewer})
	if err != nil {
		return &holdfast.Error{Kind: holdfast.KindInternal, Why: "everything goes on, but the halt latch may be back after a crash of the machine", Err: err}
	}
	return nil
}

// haltedAt is when the halt in force was last asked for; zero where nobody can
// tell. The latch's own time is a claim: one that lies ahead would keep
// everybody from resuming, and does not count.
func (k *Kernel) haltedAt(s latch.State) time.Time {
	at := k.said
	if s.Halted && s.When.After(at) && !s.When.After(k.now()) {
		at = s.When
	}
	if at.After(k.now()) {
		return time.Time{} // the clock was set back
	}
	return at
}

// Agents lists a tenant's agents; an empty tenant lists every tenant's.
func (k *Kernel) Agents(ctx context.Context, tenant string) ([]holdfast.Agent, error) {
	var out []holdfast.Agent
	err := k.store.View(ctx, func(tx Tx) error {
		var err error
		out, err = tx.Agents(tenant)
		return err
	})
	return out, err
}

// Pause stops one agent, with those within it, or one of those, AGENT/ID, with those
// beneath: the crossings in flight are cut and it is refused until a person unpauses
// it. Anybody may pause (D11).
func (k *Kernel) Pause(tenant, agent, who, why string) (int, error) {
	ctx, cancel := edge()
	defer cancel()
	err := k.store.Update(ctx, func(tx Tx) error {
		return k.changeAgent(tx, tenant, agent, "agent_paused", who, map[string]any{"why": string(k.mask(why))}, func(a *holdfast.Agent) {
			pause.PauseAgent(a, k.quote(why, 256))
		})
	})
	if err != nil {
		return 0, walError(err)
	}
	cause := &holdfast.Error{Kind: holdfast.KindPaused, Why: "the agent " + pause.ShowAgent(agent) + " was paused" +
		review.SuffixReason(k.quote(why, 256))}
	n := k.flights.Cut(cause, func(f *flight.Flight) bool { return f.BelongsTo(tenant, agent) })
	k.Wake()
	k.notify(Notice{Level: "warning", Event: "agent_paused", Tenant: tenant, Agent: agent, Why: string(k.mask(who + ": " + why))})
	return n, nil
}

// changeAgent changes an agent's record and writes the event of it.
func (k *Kernel) changeAgent(tx Tx, tenant, name, event, who string, data map[string]any, change func(*holdfast.Agent)) error {
	a, err := tx.Agent(tenant, name)
	if errors.Is(err, ErrNotFound) {
		return &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no agent %q", excerpt.Of(name, 64)), Hint: "`holdfast agent ls` lists them"}
	}
	if err != nil {
		return err
	}
	change(&a)
	if err := tx.PutAgent(a); err != nil {
		return err
	}
	return k.event(tx, Event{Tenant: tenant, Name: event, Who: who, Subject: name, Data: data})
}

// Trust sets an agent's level on a person's word: the statement's Subject is
// the agent's name, its Value the level, and its Tenant is compared with
// tenant.
func (k *Kernel) Trust(tenant string, signed operator.Signed) error {
	_, err := k.runSigned(signed, operator.Trust, func(tx *scope, w *Word) error {
		if err := w.CheckTenant(tenant); err != nil {
			return err
		}
		var level holdfast.Level
		if err := level.UnmarshalText([]byte(w.Value)); err != nil {
			return &holdfast.Error{Kind: holdfast.KindUsage, Why: err.Error()}
		}
		if a, err := tx.Agent(tenant, w.Subject); err == nil && a.Owner != "" {
			return &holdfast.Error{Kind: holdfast.KindUsage, Why: pause.ShowAgent(a.Name) + " is an agent within " + excerpt.Of(a.Owner, 64) + ", and is trusted as that one",
				Hint: "`holdfast agent trust " + excerpt.Of(a.Owner, 64) + " " + level.String() + "` is for both"}
		}
		data := w.Data()
		data["level"] = level.String()
		return k.changeAgent(tx, tenant, w.Subject, "trust_level_changed", w.Reviewer, data, func(a *holdfast.Agent) {
			data["from"] = a.Level.String()
			a.Level = level
		})
	})
	k.Wake()
	return err
}

// Revoke makes a token id worthless for ever (D8), and cuts what is under way
// with it. Anybody may revoke.
func (k *Kernel) Revoke(tenant, jti, who, why string) error {
	if k.redact.TellsSecret(jti) {
		return &holdfast.Error{Kind: holdfast.KindValue, Why: "that holds a secret: it is no token's number", Hint: "`holdfast agent token` says the number"}
	}
	ctx, cancel := edge()
	defer cancel()
	err := k.store.Update(ctx, func(tx Tx) error {
		if err := tx.Revoke(tenant, jti, k.now()); err != nil {
			return err
		}
		return k.event(tx, Event{Tenant: tenant, Name: "token_revoked", Who: who, Subject: jti, Data: map[string]any{"why": string(k.mask(why))}})
	})
	if err != nil {
		return walError(err)
	}
	cause := &holdfast.Error{Kind: holdfast.KindRevokedToken, Why: "the token was revoked"}
	k.flights.Cut(cause, func(f *flight.Flight) bool { return f.Tenant == tenant && f.Token == jti })
	return nil
}

// SetPolicy swaps the policy whole or not at all, and records who and the hash
// of what changed (D49). A policy with the version in force changes nothing.
func (k *Kernel) SetPolicy(p *Policy, who string) error {
	k.turn.Lock()
	defer k.turn.Unlock()
	old := k.policy.Load()
	if p.Version == old.Version {
		return nil
	}
	made, err := k.preparePolicy(p)
	if err != nil {
		return err
	}
	if err := k.govern(made.Policy, Event{Tenant: holdfast.Local, Name: "policy_changed", Who: who, Subject: p.Version,
		Data: map[string]any{"from": old.Version, "files": p.From, "weakened": p.Weakened, "settings": p.Settings}}); err != nil {
		return err
	}
	k.policy.Store(made)
	k.past.UseActive()
	k.swaps.tell()
	k.WakeAll()
	k.notify(Notice{Level: "info", Event: "policy_changed", Why: "the policy is now " + excerpt.Of(p.Version, 12)})
	return nil
}

// Started records that this process owns the state, under which policy, whether
// everything is halted, and whether this process is, by HOLDFAST_ENABLED.
func (k *Kernel) Started(who string) error {
	p := k.policy.Load()
	return k.govern(p.Policy, Event{Tenant: holdfast.Local, Name: "started", Who: who, Subject: p.Version,
		Data: map[string]any{"files": p.From, "weakened": p.Weakened, "settings": p.Settings, "halted": k.latch.Halted(), "disabled": k.disabled != "", "at": k.now().UTC().Format(time.RFC3339)}})
}
