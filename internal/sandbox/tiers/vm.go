package tiers

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// openInGuest opens the process tier inside a guest. The environment of its programs was searched for secrets
// before it was sent there.
func openInGuest(ctx context.Context, dir string) (vm.Inside, error) {
	return process.Open(ctx, process.Config{Dir: dir, Secret: func(string) bool { return false }, Parked: 2})
}

// openVM opens the VM tier with what the configuration names. Its guests have the
// runtimes that the process tier copied, and this program as their first process.
func (s *Set) openVM(cfg vm.Config) (tier, error) {
	cfg.Dir = filepath.Join(s.opt.Dir, "sandbox", "vm")
	cfg.Secret = s.HasSecret
	cfg.Note = func(line string) { s.opt.Log.Info("sandbox", "doing", line) }
	cfg.Roots = s.listRoots
	t, err := vm.Open(cfg)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// listRoots returns the private copies of the runtimes of all languages.
func (s *Set) listRoots(ctx context.Context) ([]string, error) {
	t, err := s.OpenProcess(ctx)
	if err != nil {
		return nil, err
	}
	var list []string
	names, _ := t.Languages()
	for _, name := range names {
		if !strings.HasPrefix(name, "python") && !strings.HasPrefix(name, "node") {
			continue // its code is the program
		}
		b, err := t.Beside(ctx, name)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(b.Root); err != nil {
			return nil, err
		}
		list = append(list, b.Root)
	}
	return list, nil
}

// vmConfig returns what the VM tier is opened with.
func (c *Config) vmConfig() vm.Config {
	return vm.Config{Kernel: c.Kernel, QEMU: c.QEMU, MemoryMB: c.MemoryMB}
}
