package sandbox

import (
	"errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Unbegun is the result of a run of which nothing ran, because of err: exit code
// 1 and its words (D15; 003 2.2, acceptance criterion 9). It is nil of an error
// that is none of a wall: a request at fault has no result. Received, Parsed and
// Ended are there.
func Unbegun(spec Spec, p posture.Posture, at posture.Instants, err error) *posture.Result {
	if posture.StateOf(err) != posture.SpawnError {
		return nil
	}
	why := err.Error()
	if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		why = e.Why
	}
	words := "Spawn failed: " + why
	p.Up, p.Down = []posture.Wall{}, nil
	r := &posture.Result{ID: spec.ID, State: posture.SpawnError, ExitCode: posture.ExitSpawn, Err: words, Stderr: []byte(words + "\n"), Posture: p,
		Start: at.Received, End: at.Ended, Gone: at.Ended, WallTime: at.Ended.Sub(at.Received)}
	r.Walk(at)
	return r
}
