//go:build linux

package container_test

import (
	"context"
	"os"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// TestEscapeSuite runs every attempt of the suite in containers of runc.
func TestEscapeSuite(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("the suite's calls are numbered for amd64, and this is %s", runtime.GOARCH)
	}
	if testing.Short() {
		t.Skip("the suite takes half a minute")
	}
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user's runtime raises no network wall, which every attempt asks for")
	}
	sandboxtest.Container(t, func(t *testing.T) sandboxtest.Runner {
		c, _ := open(t, nil)
		return small{c}
	})
}

// small is the tier with the process tier's limits for what asks for none: to
// fill 4 GB, or to wait for five minutes, shows no more.
type small struct{ *container.Tier }

// Run implements sandboxtest.Runner.
func (s small) Run(ctx context.Context, spec sandbox.Spec) (*sandbox.Result, error) {
	return s.Tier.Run(ctx, modest(spec))
}

// modest asks for the process tier's limits where spec asks for none.
func modest(spec sandbox.Spec) sandbox.Spec {
	limits := sandbox.LimitsOf(sandbox.TierProcess)
	if spec.Timeout == 0 {
		spec.Timeout = limits.Timeout
	}
	if spec.MemoryMB == 0 {
		spec.MemoryMB = limits.MemoryMB
	}
	if spec.CPUQuota == 0 && spec.CPUPeriod == 0 {
		spec.CPUPeriod, spec.CPUQuota = sandbox.DefaultPeriod, sandbox.DefaultPeriod
	}
	return spec
}
