package daemon

import (
	"context"
	"path/filepath"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// openMore opens a tier that is stronger than the process tier. The error says
// what is missing, and its hint how to have it.
func (s *sandboxes) openMore(ctx context.Context, which sandbox.Tier) (tier, error) {
	programs, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if which == sandbox.TierContainer {
		c := s.d.began.Sandbox.Container
		if c.Image != "" {
			return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: "sandbox.container.image names an image, and containers have none in this version", Hint: "leave it out: code then finds the same as in the process tier"}
		}
		t, err := container.Open(ctx, container.Config{Dir: filepath.Join(s.d.Paths.Dir, "container"), Runtime: c.Runtime, Programs: programs, Secret: s.secret,
			Warn: func(line string) { s.d.log.Warn("sandbox", "tier", "container", "trouble", line) }})
		if err != nil {
			return nil, err
		}
		s.d.log.Info("sandbox", "tier", "container", "runtime", t.Runtime())
		return t, nil
	}
	return s.openVM(vm.Config{Kernel: s.d.began.Sandbox.VM.Kernel, QEMU: s.d.began.Sandbox.VM.QEMU, MemoryMB: s.d.began.Sandbox.VM.Memory})
}
