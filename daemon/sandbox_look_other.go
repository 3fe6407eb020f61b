//go:build !linux

package daemon

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// LookContainers is a SpawnError.
func LookContainers(ctx context.Context, _ SandboxConfig, _, _ string, _ *process.Tier) (sandbox.Posture, error) {
	_, err := (*sandboxes)(nil).openMore(ctx, sandbox.TierContainer)
	return sandbox.Posture{}, err
}

// LookVM is a SpawnError.
func LookVM(ctx context.Context, c SandboxConfig) (string, error) {
	_, err := vm.Look(ctx, c.VM.config())
	return "", err
}
