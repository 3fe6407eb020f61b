package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
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

// replayLimit is the largest result, in bytes as it is sealed, that is kept to
// be given back.
const replayLimit = 8 << 20

// claimFor is how long a key stays taken by a crossing that has not settled:
// as long as results are kept, and never less than the crossing can take.
func (j *judgement) claimFor() time.Duration {
	act := j.contract.ActTime()
	if j.contract.Timeout <= 0 {
		act = max(act, MaxLease)
	}
	// Entering, judging the output, waiting for tasks and writing the entry.
	return max(j.pol.replayFor(), act+cancelGrace+gateTime+3*edgeTime)
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
	sealed, err := k.sealResult(j, settledResult{Claimed: true})
	if err != nil {
		return err
	}
	return putReplay(tx, j, sealed, j.now.Add(j.claimFor()))
}

// sealResult seals s under the request's scope. Of a result over replayLimit
// it seals that it is too large to be given back.
func (k *Kernel) sealResult(j *judgement, s settledResult) ([]byte, error) {
	// The body is written in base64, four bytes for three.
	if size := len(s.Body); size/3*4 > replayLimit {
		s = settledResult{Exit: s.Exit, Kind: holdfast.KindPayloadTooLarge,
			Why:  fmt.Sprintf("the operation was done by crossing %s; its result of %d bytes is too large to give back", j.id, size),
			Hint: "ask for what it changed; a new key would do it again"}
	}
	s.Why, s.Hint = excerpt.Of(s.Why, maxSettledText), excerpt.Of(s.Hint, maxSettledText)
	plain, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return k.sealer.Seal(plain, []byte(j.scope+j.exact()))
}

// maxSettledText bounds a settled error's two texts, in bytes.
const maxSettledText = 64 << 10

func putReplay(tx Tx, j *judgement, sealed []byte, until time.Time) error {
	return tx.PutReplay(Replay{Key: j.scope, Exact: j.exact(), Crossing: j.id, Expires: until, Sealed: sealed})
}

// keepReplay keeps the settled result, or frees the key where the hand never
// ran. A result that cannot be sealed keeps no entry from being written: the
// key then stays taken until the claim ends.
func (k *Kernel) keepReplay(tx Tx, c *crossing, end *ending) error {
	j := c.j
	if j.scope == "" {
		return nil
	}
	if end.unstarted {
		sealed, err := k.sealResult(j, settledResult{Claimed: true})
		if err != nil {
			return k.unsealed(j, err)
		}
		// Expired at every time, so that no clock that goes back takes the key again.
		return putReplay(tx, j, sealed, time.Unix(0, 0).UTC())
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
	sealed, err := k.sealResult(j, s)
	if err != nil {
		return k.unsealed(j, err)
	}
	return putReplay(tx, j, sealed, k.now().Add(j.pol.replayFor()))
}

func (k *Kernel) unsealed(j *judgement, err error) error {
	k.log.Error("a result could not be sealed and will not be given back", "crossing", j.id, "err", err)
	return nil
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
	e, leaf, err := c.entryLeaf(end, nil)
	if err == nil {
		ctx, cancel := edge()
		defer cancel()
		err = walError(c.k.store.Update(ctx, func(tx Tx) error {
			if err := c.k.admitAgent(tx, j, false); err != nil {
				return err
			}
			return c.k.appendEntry(tx, e, leaf)
		}))
	}
	if no, denied := findDenial(err); denied {
		j.opinions = replaceOpinion(j.opinions, no)
		return c.refuse(no)
	}
	if err != nil {
		return c.refuseKind(holdfast.K6, err)
	}
	c.out.Verdict, c.out.Replayed = holdfast.Allow, true
	c.machine.do(refused) // nothing became active
	c.count(holdfast.Allow, holdfast.GateHalt, ledger.Replayed, e)
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
