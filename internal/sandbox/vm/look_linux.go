package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Found is what this machine has for guests.
type Found struct {
	QEMU, Version, Kernel string
	// KVM is empty where hardware virtualisation can be asked for; whether a
	// guest really runs on it, the first shows. Else it says why not.
	KVM string
}

// Look says what guests would be made of, and starts none. The error is Open's.
func Look(ctx context.Context, cfg Config) (Found, error) {
	if err := find(&cfg); err != nil {
		return Found{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, cfg.QEMU, "--version").Output()
	if err != nil {
		return Found{}, &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("%s does not say its version: %v", cfg.QEMU, err), Hint: "install QEMU again (Debian: apt-get install qemu-system-x86)", Err: err}
	}
	f := Found{QEMU: cfg.QEMU, Version: firstLine(out), Kernel: cfg.Kernel}
	dev, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	switch {
	case cfg.NoKVM:
		f.KVM = "hardware virtualisation is left alone"
	case err != nil:
		f.KVM = err.Error()
	default:
		dev.Close()
	}
	return f, nil
}
