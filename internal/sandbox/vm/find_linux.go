package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// find completes a configuration by what this machine has. The error names
// everything that is missing at once, so that nobody installs one thing only to
// hear of the next.
func find(cfg *Config) error {
	if runtime.GOARCH != "amd64" {
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: "the VM tier is made for amd64, and this is " + runtime.GOARCH, Hint: "run what needs it on such a machine"}
	}
	var missing []*holdfast.Error
	for _, part := range []func(*Config) *holdfast.Error{findQEMU, findKernel, findProgram} {
		if err := part(cfg); err != nil {
			missing = append(missing, err)
		}
	}
	return together(missing)
}

func findQEMU(cfg *Config) *holdfast.Error {
	if cfg.QEMU == "" {
		cfg.QEMU = "qemu-system-x86_64"
	}
	path, err := exec.LookPath(cfg.QEMU)
	if err != nil {
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the VM tier needs QEMU, and there is no %s", cfg.QEMU), Hint: "install it (Debian: apt-get install qemu-system-x86), or name it in holdfast.yaml: sandbox: vm: {qemu: PATH}", Err: err}
	}
	cfg.QEMU = path
	return nil
}

// kernels is where Debian installs its kernels for cloud machines.
const kernels = "/boot/vmlinuz-*-cloud-amd64"

func findKernel(cfg *Config) *holdfast.Error {
	where := cfg.Kernel
	if where == "" {
		where = kernels
		if found, _ := filepath.Glob(kernels); len(found) > 0 {
			slices.Sort(found)
			where, cfg.Kernel = found[len(found)-1], found[len(found)-1]
		}
	}
	info, err := os.Stat(where)
	if err == nil && info.Mode().IsRegular() {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the VM tier needs a kernel to boot, and there is none at %q", where), Hint: "install Debian's (apt-get install linux-image-cloud-amd64), or name one in holdfast.yaml: sandbox: vm: {kernel: PATH}", Err: err}
}

func findProgram(cfg *Config) *holdfast.Error {
	if cfg.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the VM tier could not find its own program: %v", err), Hint: "start holdfast by its path", Err: err}
		}
		cfg.Program = self
	}
	if err := selfContained(cfg.Program); err != nil {
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: "a guest has this program as its first process, and " + err.Error(), Err: err,
			Hint: "build Holdfast without C: `make build`, or `CGO_ENABLED=0 go build ./cmd/holdfast`; `CGO_ENABLED=0 go run ./cmd/holdfast` where it is run from source"}
	}
	return nil
}

// together is one error of several, or nil of none: what each says, and how to
// mend each.
func together(errs []*holdfast.Error) error {
	if len(errs) == 0 {
		return nil
	}
	var whys, hints []string
	var causes []error
	for _, e := range errs {
		whys, hints, causes = append(whys, e.Why), append(hints, e.Hint), append(causes, e.Err)
	}
	return &holdfast.Error{Kind: errs[0].Kind, Why: strings.Join(whys, "; besides, "), Hint: strings.Join(hints, "; and "), Err: errors.Join(causes...)}
}

// prepare gathers what the template is made of, and takes one that is kept or
// starts one: on hardware where that was shown to work, else by software.
func (t *Tier) prepare(ctx context.Context) (*template, error) {
	p, err := t.plan(ctx)
	if err != nil {
		return nil, failed("build the guest's file system", err)
	}
	defer p.image.Close()
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
	word, _, _ := strings.Cut(accelerator, ":")
	t.runtime = p.version + ", " + word
	t.notes = []string{"accelerator " + accelerator,
		"the walls named are those in the guest; around the guest stand its own kernel, and QEMU in namespaces of its own, without rights and with a filter",
		t.guard.says(t.memoryMB)}
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
		forget(ctx, t.cfg.Dir, p)
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
	spec := sandbox.Spec{ID: "try", Language: t.hello.Languages[0], Code: []byte("0"), Timeout: kvmWithin, Need: []posture.Wall{posture.WallPID}}
	at := posture.Instants{Raised: time.Now()}
	res, err := r.perform(ctx, spec, &at)
	if err == nil && (res.State != posture.Completed || res.Reason != "") {
		err = fmt.Errorf("it ended as %s: %s", res.State, res.Err)
	}
	return err
}

// obtain takes the template that is kept, or starts one and keeps it.
func (t *Tier) obtain(ctx context.Context, p plan, within time.Duration) (*template, error) {
	made, err := load(ctx, t.cfg.Dir, p)
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
	if err := made.save(ctx, t.cfg.Dir, p); err != nil {
		t.trouble(fmt.Sprintf("the VM tier could not keep its template, and starts it anew next time: %v", err))
	}
	return made, nil
}

func (t *Tier) plan(ctx context.Context) (plan, error) {
	p := plan{hardware: hardware{qemu: t.cfg.QEMU, memoryMB: t.cfg.MemoryMB, guard: &t.guard}, kernel: t.cfg.Kernel}
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
