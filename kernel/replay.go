package kernel

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

// settledResult is what is sealed and given back (D10).
type settledResult struct {
	// Claimed says that nothing has settled: the key is taken.
	Claimed bool `json:"claimed,omitempty"`

	Body []byte        `json:"body,omitempty"`
	Exit int           `json:"exit"`
	Kind holdfast.Kind `json:"kind,omitempty"`
	Why  string        `json:"why,omitempty"`
	Hint string        `json:"hint,omitempty"`
}

// claimReplay takes the key for this crossing, so that two requests with one
// key cannot both act. The claim has nothing sealed yet.
func (k *Kernel) claimReplay(tx Tx, j *judgement) error {
	r, err := tx.Replay(j.scope)
	if err == nil && j.now.Before(r.Expires) {
		return &errRefused{deny(holdfast.K5, holdfast.KindConflict, "the same idempotency key is being used by crossing "+r.Crossing, "wait for it, then ask again")}
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return k.putReplay(tx, j, settledResult{Claimed: true}, j.now.Add(j.pol.replayFor()))
}

// putReplay seals s under the request's scope.
func (k *Kernel) putReplay(tx Tx, j *judgement, s settledResult, until time.Time) error {
	plain, err := json.Marshal(s)
	if err != nil {
		return err
	}
	r := Replay{Key: j.scope, Exact: j.exact(), Crossing: j.id, Expires: until}
	if r.Sealed, err = k.sealer.Seal(plain, []byte(r.Key+r.Exact)); err != nil {
		return err
	}
	return tx.PutReplay(r)
}

// keepReplay seals the settled result, or frees the key where the hand never
// ran.
func (k *Kernel) keepReplay(tx Tx, c *crossing, end *ending) error {
	j := c.j
	if j.scope == "" {
		return nil
	}
	if end.unstarted {
		return k.putReplay(tx, j, settledResult{Claimed: true}, j.now)
	}
	s := settledResult{Exit: end.out.ExitCode}
	if end.err == nil {
		s.Body = end.out.Body
	} else {
		s.Kind, s.Why = holdfast.KindOf(end.err), string(k.mask(end.err.Error()))
		if e, ok := asError(end.err); ok {
			s.Why, s.Hint = string(k.mask(e.Why)), e.Hint
		}
	}
	return k.putReplay(tx, j, s, j.now.Add(j.pol.replayFor()))
}

// replay gives back what was settled, charges nothing, and says so in an entry
// of its own.
func (c *crossing) replay() error {
	j := c.j
	s, err := c.k.unseal(j.replay)
	if err != nil {
		op := refusal(holdfast.K5, "FAULTED", err)
		j.opinions = replaceOpinion(j.opinions, op)
		return c.refuse(op)
	}
	j.draws, j.rates = nil, nil
	end := &ending{outcome: ledger.Replayed, replayOf: j.replay.Crossing, out: holdfast.Output{Body: s.Body, ExitCode: s.Exit}}
	if s.Kind != "" {
		end.err = &holdfast.Error{Kind: s.Kind, Why: s.Why, Hint: s.Hint}
	}
	rec, err := c.entryLeaf(end, nil)
	if err == nil {
		ctx, cancel := edge()
		defer cancel()
		err = walError(c.k.store.Update(ctx, func(tx Tx) error {
			if err := c.k.admitAgent(tx, j); err != nil {
				return err
			}
			_, err := tx.Append(rec)
			return err
		}))
	}
	var no *errRefused
	if errors.As(err, &no) {
		j.opinions = replaceOpinion(j.opinions, no.op)
		return c.refuse(no.op)
	}
	if err != nil {
		return c.refuseKind(holdfast.K6, err)
	}
	c.out.Verdict, c.out.Replayed = holdfast.Allow, true
	c.machine.do(refused) // nothing became active
	if end.err == nil {
		c.out.Output = &end.out
	}
	err = withCrossing(end.err, j.id)
	c.finish(err)
	c.machine.do(consumed)
	return err
}

func (k *Kernel) unseal(r *Replay) (settledResult, error) {
	var s settledResult
	plain, err := k.sealer.Open(r.Sealed, []byte(r.Key+r.Exact))
	if err != nil {
		return s, &holdfast.Error{Kind: holdfast.KindInternal, Gate: holdfast.K5, Why: "the settled result cannot be opened", Hint: "the seal key has changed; use a new idempotency key", Err: err}
	}
	if err := json.Unmarshal(plain, &s); err != nil {
		return s, &holdfast.Error{Kind: holdfast.KindInternal, Gate: holdfast.K5, Why: "the settled result is damaged", Err: err}
	}
	if s.Claimed {
		return s, &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K5,
			Why: "crossing " + r.Crossing + " with this key has not settled", Hint: "wait for it; after a crash its outcome stays unknown, and a new key is a new operation"}
	}
	return s, nil
}
