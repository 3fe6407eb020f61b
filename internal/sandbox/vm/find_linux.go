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
	"github.com/holdfast-dev/holdfast/internal/sandbox"
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

// prepare gathers what the template is made of, and takes one that is kept or
// starts one: on hardware where that was shown to work, else by software.
func (t *Tier) prepare(ctx context.Context) (*template, error) {
	p, err := t.plan(ctx)
	if err != nil {
		return nil, failed("build the guest's file system", err)
	}
	defer p.image.Close()
	t.troubles = nil
	why := t.noKVM()
	if why == "" {
		p.kvm = true
		made, err := t.proven(ctx, p)
		if err == nil {
			made.describe(p, "kvm: the guest's instructions are run by the processor itself")
			return made, nil
		}
		if ctx.Err() != nil {
			return nil, failed("start a machine to restore from", err)
		}
		p.kvm, why = false, "/dev/kvm is there and no guest runs on it: "+err.Error()
	}
	made, err := t.obtain(ctx, p, bootWithin)
	if err != nil {
		return nil, failed("start a machine to restore from", err)
	}
	made.describe(p, "tcg: every instruction of the guest is emulated by software, which is slow; "+why)
	return made, nil
}

// describe says what the machine is, for the posture.
func (t *template) describe(p plan, accelerator string) {
	t.runtime = p.version
	t.notes = []string{"accelerator " + accelerator,
		"the walls named are those in the guest; around the guest stand its own kernel, and QEMU in namespaces of its own, without rights and with a filter",
		"no control group of the host's holds QEMU: its memory is the guest's, of a fixed size, and its processor one thread of it"}
}

// noKVM is why hardware is not even tried, or "".
func (t *Tier) noKVM() string {
	if t.cfg.NoKVM {
		return "the configuration says so"
	}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return "hardware virtualisation is not to be had: " + err.Error()
	}
	f.Close()
	return ""
}

// proven is a template on hardware, from which a machine was restored that ran
// a program: that the device is there says nothing.
func (t *Tier) proven(ctx context.Context, p plan) (*template, error) {
	made, err := t.obtain(ctx, p, kvmWithin)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, kvmWithin)
	defer cancel()
	if err := made.tried(ctx); err != nil {
		made.close()
		os.RemoveAll(filepath.Join(t.cfg.Dir, p.key()))
		return nil, fmt.Errorf("a machine that was restored did not run: %w", err)
	}
	return made, nil
}

// tried runs a program that does nothing in a restored machine.
func (t *template) tried(ctx context.Context) error {
	r, err := t.restore(behindWalls)
	if err != nil {
		return err
	}
	defer r.close()
	spec := sandbox.Spec{ID: "try", Language: t.hello.Languages[0], Code: []byte("0"), Timeout: kvmWithin, Need: []sandbox.Wall{sandbox.WallPID}}
	at := sandbox.Instants{Raised: time.Now()}
	res, err := r.perform(ctx, spec, &at)
	if err == nil && (res.State != sandbox.Completed || res.Reason != "") {
		err = fmt.Errorf("it ended as %s: %s", res.State, res.Err)
	}
	return err
}

// obtain takes the template that is kept, or starts one and keeps it.
func (t *Tier) obtain(ctx context.Context, p plan, within time.Duration) (*template, error) {
	made, err := load(t.cfg.Dir, p)
	if err == nil {
		return made, nil
	}
	if !absent(err) {
		t.cfg.Note(fmt.Sprintf("vm: the template in %s is made anew: %v", t.cfg.Dir, err))
	}
	start := time.Now()
	if made, err = boot(ctx, p, within); err != nil {
		return nil, err
	}
	t.cfg.Note(fmt.Sprintf("vm: started the template in %v", time.Since(start).Round(10*time.Millisecond)))
	if err := made.save(t.cfg.Dir, p); err != nil {
		t.troubles = append(t.troubles, fmt.Sprintf("the VM tier could not keep its template, and starts it anew next time: %v", err))
	}
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
