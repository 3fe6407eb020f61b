package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Where walls are missing doctor names all of them at once, and the contract that
// takes those that stand.
func TestDoctorNamesEveryMissingWall(t *testing.T) {
	every := sandbox.Posture{Up: sandbox.Walls()}
	if f := seeExec(every); f.How != "ok" || f.Hint != "" {
		t.Errorf("%+v", f)
	}
	fewer := sandbox.Posture{Up: slices.DeleteFunc(sandbox.Walls(), func(w sandbox.Wall) bool {
		return w == sandbox.WallMemory || w == sandbox.WallCPU || w == sandbox.WallPids
	})}
	if f := seeExec(fewer); f.How != "warn" || !strings.HasSuffix(f.Why, "do not stand: memory, cpu, pids") ||
		!strings.Contains(f.Hint, "walls: [pid, net, mount, uts, ipc, user, seccomp, rights, scratch]}") {
		t.Errorf("%+v", f)
	}
}
