package vm

import (
	"context"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// suiteEnv holds a number n: one of n attempts of each family is made in a guest. Each,
// as with the tag endure, takes minutes.
const suiteEnv = "HOLDFAST_TEST_VM_EVERY"

// TestEscapeSuite makes attempts of the escape suite in guests, a few without the tag
// endure, eight at a time: more than there are processors, so that every guest is slow.
func TestEscapeSuite(t *testing.T) {
	few := sandboxtest.Named("namespace/unshare mount", "files/read /etc/passwd", "limit/threads")
	sandboxtest.VM(t, sandboxtest.ChoosePart(suiteEnv, testrepeat.Enduring, few), func(t *testing.T) sandboxtest.Runner { return modest{tier(t)} })
}

// modest is the tier with the process tier's limits for what asks for none: to
// wait for five minutes shows no more.
type modest struct{ *Tier }

// Run implements sandboxtest.Runner.
func (s modest) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	limits := sandbox.LimitsOf(posture.TierProcess)
	if spec.Timeout == 0 {
		spec.Timeout = limits.Timeout
	}
	if spec.MemoryMB == 0 {
		spec.MemoryMB = limits.MemoryMB
	}
	if spec.CPUQuota == 0 && spec.CPUPeriod == 0 {
		spec.CPUPeriod, spec.CPUQuota = sandbox.DefaultPeriod, sandbox.DefaultPeriod
	}
	return s.Tier.Run(ctx, spec)
}
