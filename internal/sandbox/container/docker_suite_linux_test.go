//go:build linux

package container_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// suiteEnv holds a number n: one of n attempts of each family is made behind the engine.
// Each, as with the tag endure, takes minutes.
const suiteEnv = "HOLDFAST_TEST_DOCKER_EVERY"

// dockerSuite makes attempts of the escape suite behind the engine.
func dockerSuite(t *testing.T, d *docker, p *process.Tier) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("the suite's calls are numbered for amd64, and this is %s", runtime.GOARCH)
	}
	part := sandboxtest.ChoosePart(suiteEnv, testrepeat.Enduring, fewAttempts())
	sandboxtest.Docker(t, part, func(t *testing.T) sandboxtest.Runner { return smallDocker{d.open(t, p, nil)} })
}

// smallDocker is the tier with the process tier's limits for what asks for none.
type smallDocker struct{ *container.Docker }

// Run implements sandboxtest.Runner.
func (s smallDocker) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	return s.Docker.Run(ctx, modest(spec))
}
