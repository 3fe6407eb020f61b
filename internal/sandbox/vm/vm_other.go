//go:build !linux

package vm

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Tier does not exist here: guests are supervised as Linux lets one.
type Tier struct{}

// Launcher does nothing here.
func Launcher() {}

// Guest does nothing here.
func Guest(func(context.Context, string) (Inside, error)) {}

// Open is a SpawnError.
func Open(Config) (*Tier, error) {
	return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: "code cannot be run here: the VM tier is made for Linux", Hint: "run holdfast on Linux"}
}

// Close does nothing.
func (*Tier) Close() error { return nil }

// Prepare is a SpawnError.
func (*Tier) Prepare(context.Context, sandbox.Spec) (sandbox.Spec, error) {
	_, err := Open(Config{})
	return sandbox.Spec{}, err
}

// Run is a SpawnError.
func (*Tier) Run(context.Context, sandbox.Spec) (*posture.Result, error) {
	_, err := Open(Config{})
	return nil, err
}

// Posture is that nothing stands.
func (*Tier) Posture() posture.Posture { return posture.Posture{} }

// Languages are none.
func (*Tier) Languages() ([]string, map[string]string) { return nil, nil }

// Troubles are none.
func (*Tier) Troubles() []string { return nil }

// Found is what this machine has for guests; see the Linux build.
type Found struct{ QEMU, Version, Kernel, KVM string }

// Look is Open's error.
func Look(context.Context, Config) (Found, error) {
	_, err := Open(Config{})
	return Found{}, err
}
