//go:build !linux

package daemon

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// LookContainers is a SpawnError.
func LookContainers(
	ctx context.Context, _ config.SandboxConfig, _, _ string, _ *process.Tier,
) (posture.Posture, error) {
	_, err := (*sandboxes)(nil).openMore(ctx, posture.TierContainer)
	return posture.Posture{}, err
}

// LookVM is a SpawnError.
func LookVM(ctx context.Context, c config.SandboxConfig) (string, error) {
	_, err := vm.Look(ctx, newVMConfig(c.VM))
	return "", err
}
