package daemon

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// LookContainers opens the container tier as a daemon with that configuration
// would, which runs one that does nothing, and closes it: the posture says what was
// found. dir is for it alone.
func LookContainers(ctx context.Context, c SandboxConfig, dir string, programs *process.Tier) (sandbox.Posture, error) {
	t, err := c.Container.open(ctx, container.Config{Dir: filepath.Join(dir, "container"), Programs: programs})
	if err != nil {
		return sandbox.Posture{}, err
	}
	return t.Posture(), t.Close()
}

// LookVM says what a guest would be made of, and starts none: that takes long.
func LookVM(ctx context.Context, c SandboxConfig) (string, error) {
	f, err := vm.Look(ctx, c.VM.config())
	if err != nil {
		return "", err
	}
	how := "KVM, if a guest really runs on it"
	if f.KVM != "" {
		how = "software emulation (" + f.KVM + ")"
	}
	return fmt.Sprintf("%s at %s, kernel %s, %s", f.Version, f.QEMU, f.Kernel, how), nil
}
