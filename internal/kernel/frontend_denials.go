package kernel

import (
	"cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// atDoor is what the door itself found at a gate (Request.Denials): a denial,
// whatever its verdict says. A gate that no door can speak for counts as K1, so
// that nothing a door says is lost.
func (j *judgement) atDoor(g holdfast.Gate) (holdfast.Opinion, bool) {
	for _, op := range j.req.Denials {
		if spokenFor(op.Gate) != g {
			continue
		}
		op.Gate, op.Verdict, op.Kind = g, holdfast.Deny, cmp.Or(op.Kind, holdfast.KindInternal)
		op.Why = cmp.Or(excerpt.Of(op.Why, 512), "the door refused the request")
		op.Hint, op.Rule, op.State = excerpt.Of(op.Hint, 512), excerpt.Of(op.Rule, 256), excerpt.Of(op.State, 64)
		return op, true
	}
	return holdfast.Opinion{}, false
}

// spokenFor is the gate that a door's denial is of: those that D25 gives it.
func spokenFor(g holdfast.Gate) holdfast.Gate {
	switch g {
	case holdfast.K2, holdfast.K3, holdfast.K6:
		return g
	}
	return holdfast.K1
}

// refusals are the boundary's own names of what K3 and K6 refuse.
func (j *judgement) refusals() holdfast.Refusals {
	if j.contract == nil {
		return holdfast.Refusals{}
	}
	return j.contract.Refusals
}

// unrecorded is a failure to write by the boundary's own name of it.
func (j *judgement) unrecorded(err error) error {
	e, ok := asError(err)
	name := j.refusals().Record
	if !ok || name == "" || e.Kind != holdfast.KindWALWrite && e.Kind != holdfast.KindWALFormat {
		return err
	}
	own := *e
	own.Kind = name
	return &own
}
