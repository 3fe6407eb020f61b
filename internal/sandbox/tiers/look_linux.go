package tiers

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// ProbeContainers opens the container tier as a Set with c would, which runs a container that does
// nothing, and closes it: the posture shows the walls that it found. dir is for it alone; the image's copy is where the
// Set of the state directory has it, or in dir if state is empty.
func ProbeContainers(
	ctx context.Context, c *Config, dir, state string, programs *process.Tier,
) (posture.Posture, error) {
	t, err := openContainers(ctx, c,
		container.Config{Dir: filepath.Join(dir, "container"), Images: imagesDir(state), Programs: programs})
	if err != nil {
		return posture.Posture{}, err
	}
	return t.Posture(), t.Close()
}

func imagesDir(state string) string {
	if state == "" {
		return ""
	}
	return filepath.Join(state, "container", "images")
}

// ProbeVM returns what a guest would be made of. It starts none, since that takes long.
func ProbeVM(ctx context.Context, c *Config) (string, error) {
	f, err := vm.Look(ctx, c.vmConfig())
	if err != nil {
		return "", err
	}
	how := "KVM, if a guest really runs on it"
	if f.KVM != "" {
		how = "software emulation (" + f.KVM + ")"
	}
	return fmt.Sprintf("%s at %s, kernel %s, %s", f.Version, f.QEMU, f.Kernel, how), nil
}
