//go:build linux && amd64

package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestWarm_servesTheLongestRuns: one that waited serves a run of a guest's time,
// which is beyond this tier's own, and has the processor time that belongs to it;
// so has a fork.
func TestWarm_servesTheLongestRuns(t *testing.T) {
	b := warmed(t, "python3", 2)
	for want, spec := range map[string]sandbox.Spec{
		"4\n":    {Timeout: time.Second},
		"602\n":  {Timeout: 300 * time.Second, Tier: posture.TierVM},
		"7202\n": {Timeout: time.Hour, Tier: posture.TierVM},
	} {
		for _, env := range []map[string]string{nil, {"A": "b"}} { // parked, and forked
			spec.ID, spec.Language, spec.Environment, spec.Need = "long", "python3", env, anyWalls
			spec.Code = []byte("import resource\nprint(*set(resource.getrlimit(resource.RLIMIT_CPU)))")
			res, err := b.Run(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if string(res.Stdout) != want || res.Path == posture.PathCold {
				t.Errorf("%v: %s %q %q", spec.Timeout, res.Path, res.Stdout, res.Stderr)
			}
			b.Settle(t.Context())
		}
	}
	if said := fmt.Sprint(b.Troubles()); said != "[]" {
		t.Error(said)
	}
}
