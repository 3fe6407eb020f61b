//go:build !linux

package tiers

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// ProbeContainers is a SpawnError.
func ProbeContainers(
	ctx context.Context, _ *Config, _, _ string, _ *process.Tier,
) (posture.Posture, error) {
	_, err := (*Set)(nil).openStronger(ctx, posture.TierContainer)
	return posture.Posture{}, err
}

// ProbeVM is a SpawnError.
func ProbeVM(ctx context.Context, c *Config) (string, error) {
	_, err := vm.Look(ctx, c.vmConfig())
	return "", err
}
