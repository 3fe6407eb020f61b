package process

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/cgroup"
)

// withoutGroups is a tier that makes no control groups, wherever it runs.
func withoutGroups(t *testing.T) *Tier {
	t.Helper()
	b := tier(t)
	b.groups.Close()
	b.groups = cgroup.Find("/nowhere", hostUser)
	return b
}

// TestLessIsRefusedWithWhatToWrite: a run that needs every wall is refused where
// some do not stand, and the contract in the hint is one that lets it run (D20).
func TestLessIsRefusedWithWhatToWrite(t *testing.T) {
	b := withoutGroups(t)
	spec := sandbox.Spec{ID: "less", Language: sandbox.Static, Code: probe()}
	_, err := b.Run(t.Context(), spec)
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Kind != holdfast.KindCgroup || e.Why != "the sandbox is missing walls here: memory, cpu, pids (open /nowhere/self/stat: no such file or directory)" {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(e.Hint, "{boundary: exec/static, risk: MEDIUM, permissions: [\"exec:run\"], walls: [")
	list, _, ends := strings.Cut(rest, "]}")
	if !ok || !ends {
		t.Fatal(e.Hint)
	}
	for _, w := range strings.Split(list, ", ") {
		spec.Need = append(spec.Need, posture.Wall(w))
	}
	if len(spec.Need) < 9 {
		t.Errorf("the hint takes %v, and more stands", spec.Need)
	}
	if res, err := b.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
		t.Error(err, res)
	}
}
