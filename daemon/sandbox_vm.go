package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// inGuest opens the process tier inside a guest. What its programs find in their
// environment was searched for secrets before it came there.
func inGuest(ctx context.Context, dir string) (vm.Inside, error) {
	return process.Open(ctx, process.Config{Dir: dir, Secret: func(string) bool { return false }, Parked: 2})
}

// openVM opens the VM tier with what the configuration names. Its guests have the
// runtimes that the process tier copied, and this program as their first process.
func (s *sandboxes) openVM(cfg vm.Config) (tier, error) {
	cfg.Dir = filepath.Join(s.d.Paths.Dir, "sandbox", "vm")
	cfg.Secret = s.secret
	cfg.Note = func(line string) { s.d.log.Info("sandbox", "doing", line) }
	cfg.Roots = s.roots
	t, err := vm.Open(cfg)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// roots are the private copies of the runtimes of every language that is found.
func (s *sandboxes) roots(ctx context.Context) ([]string, error) {
	t, err := s.open(ctx)
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

// newVMConfig returns what the VM tier is opened with.
func newVMConfig(c config.VMConfig) vm.Config {
	return vm.Config{Kernel: c.Kernel, QEMU: c.QEMU, MemoryMB: c.Memory}
}
