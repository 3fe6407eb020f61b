package daemon

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// LookContainers opens the container tier as a daemon with that configuration
// would, which runs one that does nothing, and closes it: the posture says what was
// found. dir is for it alone; the image's copy stands where the daemon of the state
// directory has it, or in dir where state is empty.
func LookContainers(
	ctx context.Context, c config.SandboxConfig, dir, state string, programs *process.Tier,
) (posture.Posture, error) {
	t, err := openContainers(ctx, c.Container,
		container.Config{Dir: filepath.Join(dir, "container"), Images: imagesOf(state), Programs: programs})
	if err != nil {
		return posture.Posture{}, err
	}
	return t.Posture(), t.Close()
}

func imagesOf(state string) string {
	if state == "" {
		return ""
	}
	return filepath.Join(state, "container", "images")
}

// LookVM says what a guest would be made of, and starts none: that takes long.
func LookVM(ctx context.Context, c config.SandboxConfig) (string, error) {
	f, err := vm.Look(ctx, newVMConfig(c.VM))
	if err != nil {
		return "", err
	}
	how := "KVM, if a guest really runs on it"
	if f.KVM != "" {
		how = "software emulation (" + f.KVM + ")"
	}
	return fmt.Sprintf("%s at %s, kernel %s, %s", f.Version, f.QEMU, f.Kernel, how), nil
}
