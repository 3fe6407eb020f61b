//go:build !linux

package process

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Config is what a tier needs; see the Linux build.
type Config struct {
	Dir    string
	Secret func(string) bool
	Note   func(string)
	Parked int
	Warn   func(string)
}

// Tier does not exist here: its walls are Linux's.
type Tier struct{}

// Launcher does nothing here.
func Launcher() {}

// Open is a SpawnError.
func Open(context.Context, Config) (*Tier, error) {
	return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: "code cannot be run here: the process tier's walls are those of Linux", Hint: "run holdfast on Linux"}
}

// Close does nothing.
func (*Tier) Close() error { return nil }

// Exact is a SpawnError.
func (*Tier) Exact(context.Context, string) (string, error) {
	_, err := Open(nil, Config{})
	return "", err
}

// Prepare is a SpawnError.
func (*Tier) Prepare(context.Context, sandbox.Spec) (sandbox.Spec, error) {
	_, err := Open(nil, Config{})
	return sandbox.Spec{}, err
}

// Run is a SpawnError.
func (*Tier) Run(context.Context, sandbox.Spec) (*posture.Result, error) {
	_, err := Open(nil, Config{})
	return nil, err
}

// Languages are none.
func (*Tier) Languages() ([]string, map[string]string) { return nil, nil }

// Trials are none: there is no wall to try.
func (*Tier) Trials(context.Context) []Trial { return nil }

// Trace is nothing.
func (*Tier) Trace() Trace { return Trace{} }

// Posture is that nothing stands.
func (*Tier) Posture() posture.Posture { return posture.Posture{} }

// Troubles are none.
func (*Tier) Troubles() []string { return nil }

// Settle does nothing.
func (*Tier) Settle(context.Context) {}

// Last does nothing.
func (*Tier) Last() {}

// Beside is a SpawnError.
func (*Tier) Beside(context.Context, string) (Beside, error) {
	_, err := Open(nil, Config{})
	return Beside{}, err
}
