package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// find completes a configuration by what this machine has.
func find(cfg *Config) error {
	if runtime.GOARCH != "amd64" {
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: "the VM tier is made for amd64, and this is " + runtime.GOARCH, Hint: "run what needs it on such a machine"}
	}
	if cfg.QEMU == "" {
		cfg.QEMU = "qemu-system-x86_64"
	}
	path, err := exec.LookPath(cfg.QEMU)
	if err != nil {
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the VM tier needs QEMU, and there is no %s", cfg.QEMU), Hint: "install it (Debian: apt-get install qemu-system-x86), or name it in holdfast.yaml: sandbox: vm: {qemu: PATH}", Err: err}
	}
	cfg.QEMU = path
	if cfg.Kernel == "" {
		found, _ := filepath.Glob("/boot/vmlinuz-*-cloud-amd64")
		if slices.Sort(found); len(found) > 0 {
			cfg.Kernel = found[len(found)-1]
		}
	}
	if info, err := os.Stat(cfg.Kernel); cfg.Kernel == "" || err != nil || !info.Mode().IsRegular() {
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the VM tier needs a kernel to boot, and there is none at %q", cfg.Kernel), Hint: "install Debian's (apt-get install linux-image-cloud-amd64), or name one in holdfast.yaml: sandbox: vm: {kernel: PATH}", Err: err}
	}
	if cfg.Program == "" {
		if cfg.Program, err = os.Executable(); err != nil {
			return failed("find its own program", err)
		}
	}
	return nil
}

// prepare gathers what the template is made of, and starts it.
func (t *Tier) prepare(ctx context.Context) (*template, error) {
	p, err := t.plan(ctx)
	if err != nil {
		return nil, failed("build the guest's file system", err)
	}
	defer p.image.Close()
	start := time.Now()
	made, err := boot(ctx, p, bootWithin)
	if err != nil {
		return nil, failed("start a machine to restore from", err)
	}
	t.cfg.Note(fmt.Sprintf("vm: started the template in %v", time.Since(start).Round(10*time.Millisecond)))
	return made, nil
}

func (t *Tier) plan(ctx context.Context) (plan, error) {
	p := plan{hardware: hardware{qemu: t.cfg.QEMU, memoryMB: t.cfg.MemoryMB}, kernel: t.cfg.Kernel}
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(asking, p.qemu, "--version").Output()
	if err != nil {
		return p, fmt.Errorf("%s does not say its version: %w", p.qemu, err)
	}
	p.version = firstLine(out)
	roots, err := t.cfg.Roots(ctx)
	if err != nil {
		return p, err
	}
	for _, name := range []string{p.qemu, p.kernel} {
		sum, err := hashFile(name)
		if err != nil {
			return p, err
		}
		p.digests = append(p.digests, sum)
	}
	image, sum, err := packImage(t.cfg.Program, roots)
	if err != nil {
		return p, err
	}
	p.image = image
	p.digests = append(p.digests, sum, strconv.Itoa(boxBytes))
	return p, nil
}
